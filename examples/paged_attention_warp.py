"""Paged attention, decode, as one warp sees it (ML-Triton, section 3.2): the warps of a program share out the blocks of keys and values.

`paged_decode.py` is the same at the level of work groups: there each block is divided among the warps, which have one small product to
share, and meet at every step. Here a warp has blocks of its own, with their maxima, denominators and results; the warps meet once, behind
the loop, or not at all where each has a head of keys and values for itself.

A context may be cut into parts, for more programs to run side by side. There is no second kernel that combines them: of the warps that
have the same columns of a result, the last to finish does.
"""

import numpy as np
from paged_decode import check

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def merged(m_i, l_i, acc, first, OF: tl.constexpr, GROUP: tl.constexpr):
    """What OF warps have, from warp ``first`` on, of their first GROUP rows: the largest, the denominator, and the results in the columns that are this
    warp's share to add up."""
    warps: tl.constexpr = tl.num_warps()
    ROWS: tl.constexpr = acc.shape[0]
    D: tl.constexpr = acc.shape[1]
    kept: tl.constexpr = triton.next_power_of_2(GROUP)
    every_m, every_l = tl.alloc((warps, kept), tl.float32), tl.alloc((warps, kept), tl.float32)
    every_acc = tl.alloc((warps, kept, D), tl.float32)
    own = tl.full([ROWS], tl.warp_id(), tl.int32)
    row = tl.arange(0, ROWS)
    there = row < kept
    tl.store(tle.gpu.local_ptr(every_m, (own, row)), m_i, mask=there)
    tl.store(tle.gpu.local_ptr(every_l, (own, row)), l_i, mask=there)
    at = (own[:, None], row[:, None], tl.arange(0, D)[None, :])
    tl.store(tle.gpu.local_ptr(every_acc, at), acc, mask=there[:, None])
    tl.barrier()
    of = first + tl.arange(0, OF)[:, None]
    row = tl.arange(0, kept)
    m_of = tl.load(tle.gpu.local_ptr(every_m, (of, row[None, :])))
    m = tl.max(m_of, 0)
    total = tl.sum(tl.load(tle.gpu.local_ptr(every_l, (of, row[None, :]))) * tl.exp2(m_of - m[None, :]), 0)
    columns: tl.constexpr = D // OF
    column = (tl.warp_id() - first) * columns + tl.arange(0, columns)
    acc = tl.zeros([kept, columns], dtype=tl.float32)
    for i in tl.static_range(OF):
        weight = tl.exp2(tl.load(tle.gpu.local_ptr(every_m, (first + i, row))) - m)
        acc += (
            tl.load(tle.gpu.local_ptr(every_acc, (first + i, row[:, None], column[None, :])))
            * weight[:, None]
        )
    return m, total, acc


@triton.jit
def combined(
    part_ptr, lse_ptr, group, parts, share, column, GROUP: tl.constexpr, D: tl.constexpr, SHARES: tl.constexpr, PARTS: tl.constexpr
):  # fmt: skip
    """The parts of a group of heads in some columns, each weighted by its share of the denominator."""
    part, row = tl.arange(0, PARTS)[:, None], tl.arange(0, triton.next_power_of_2(GROUP))[None, :]
    inside = (part < parts) & (row < GROUP)
    at = (group * GROUP + row) * tl.num_programs(2) + part
    lse = tl.load(lse_ptr + at * SHARES + share, mask=inside, other=-float("inf"))
    weight = tl.exp2(lse - tl.max(lse, 0)[None, :])
    o = tl.load(part_ptr + at[:, :, None] * D + column[None, None, :], mask=inside[:, :, None], other=0.0)
    return tl.sum(o * weight[:, :, None], 0) / tl.sum(weight, 0)[:, None]


@triton.jit
def store(o, o_ptr, group, column, GROUP: tl.constexpr, D: tl.constexpr):
    """The results of a group of heads in some columns."""
    row = tl.arange(0, o.shape[0])[:, None]
    to = o_ptr + (group * GROUP + row) * D + column[None, :]
    tl.store(to, o.to(o_ptr.dtype.element_ty), mask=row < GROUP)


@triton.jit
def finish(
    m, total, acc, o_ptr, part_ptr, lse_ptr, arrived_ptr, group, which, parts, share, GROUP: tl.constexpr, D: tl.constexpr, PARTS: tl.constexpr
):  # fmt: skip
    """What one part of a context gives a group of heads, in the warp's share of the columns: the result, if there is no other part. Otherwise it is
    left in memory, and who is the last of ``parts`` to come combines them."""
    COLUMNS: tl.constexpr = acc.shape[1]
    SHARES: tl.constexpr = D // COLUMNS
    column = share * COLUMNS + tl.arange(0, COLUMNS)
    acc /= total[:, None]
    if parts == 1:
        store(acc, o_ptr, group, column, GROUP, D)
    else:
        row = tl.arange(0, acc.shape[0])
        at = (group * GROUP + row) * tl.num_programs(2) + which
        tl.store(lse_ptr + at * SHARES + share, m + tl.log2(total), mask=row < GROUP)
        tl.store(part_ptr + at[:, None] * D + column[None, :], acc, mask=(row < GROUP)[:, None])
        arrived_ptr += group * SHARES + share
        if tl.atomic_add(arrived_ptr, 1) == parts - 1:
            tl.store(arrived_ptr, 0)  # as the next launch wants it
            o = combined(part_ptr, lse_ptr, group, parts, share, column, GROUP, D, SHARES, PARTS)
            store(o, o_ptr, group, column, GROUP, D)


@triton.jit(warp_level=True)
def decode_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, o_ptr, part_ptr, lse_ptr, arrived_ptr, scale, table_width, page_stride, row_stride, part,
    D: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr,
    GROUPS: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Attention of GROUPS groups of heads to one part of their sequence: GROUP of the ROWS rows are heads, the others padding.

    The warps share out the groups, and where they are more the blocks of their group."""
    warps: tl.constexpr = tl.num_warps() // GROUPS
    group = tl.program_id(0) * GROUPS + tl.warp_id() // warps
    groups = tl.num_programs(0) * GROUPS
    sequence = tl.program_id(1)
    which = tl.program_id(2)
    length = tl.load(length_ptr + sequence)
    lo = which * part
    hi = min(lo + part, length)
    heads = tl.arange(0, ROWS)
    offs_d = tl.arange(0, D)
    offs_n = tl.arange(0, BLOCK)
    head = (sequence * groups + group) * GROUP + heads
    table_ptr += sequence * table_width
    q = tl.load(q_ptr + head[:, None] * D + offs_d[None, :], mask=(heads < GROUP)[:, None], other=0.0)
    m_i = tl.full([ROWS], -float("inf"), dtype=tl.float32)
    l_i = tl.zeros([ROWS], dtype=tl.float32)
    acc = tl.zeros([ROWS, D], dtype=tl.float32)
    scale *= 1.4426950408889634  # log2(e): exponentials are taken to base 2
    for start in range(lo + tl.warp_id() % warps * BLOCK, hi, warps * BLOCK):
        n = start + offs_n
        inside = n < hi
        if PAGE % BLOCK == 0:  # all of the block in one page
            page = tl.load(table_ptr + start // PAGE)
            row = page.to(tl.int64) * page_stride + (start % PAGE + offs_n) * row_stride + group * D
        else:
            page = tl.load(table_ptr + n // PAGE, mask=inside, other=0)
            row = page.to(tl.int64) * page_stride + (n % PAGE) * row_stride + group * D
        at = row[:, None] + offs_d[None, :]
        k = tl.load(k_ptr + at, mask=inside[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        s = tl.where(inside[None, :], s, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp2(s - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + at, mask=inside[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    if lo < hi:
        share = tl.warp_id() % warps
        m, total, sums = m_i, l_i, acc
        if warps > 1:
            m, total, sums = merged(m_i, l_i, acc, tl.warp_id() - share, warps, GROUP)
        group += sequence * groups
        finish(m, total, sums, o_ptr, part_ptr, lse_ptr, arrived_ptr, group, which, tl.cdiv(length, part), share, GROUP, D, PARTS)  # fmt: skip


def paged_decode(
    q,
    k,
    v,
    table,
    lengths,
    o,
    o_parts,
    lse_parts,
    arrived,
    block: int = 16,
    num_warps: int = 4,
    num_stages: int = 2,
    groups: int = 1,
    rows: int = 16,
) -> None:
    """Attention of q (sequences, heads, D) to the pages that ``table`` (sequences, pages) names, into o.

    :param k, v: (pages, rows in a page, heads of keys and values, D); ``lengths`` says how many rows a sequence has, at
        least one.
    :param o_parts, lse_parts: room for (sequences, heads, parts, D) and (sequences, heads, parts, num_warps // groups) float32.
    :param arrived: (sequences, heads of keys and values, num_warps // groups) int32, zeros before and after.
    :param block: rows in a step of a warp's loop. :param groups: heads of keys and values that the warps of a program share out.
    :param rows: those of a product, at least, which heads fill: 16 of NVIDIA's, 8 of Intel's, where what 16 have of D = 128 is all registers.
    """
    sequences, heads, d = q.shape
    _, page, kv_heads, _ = k.shape
    parts = o_parts.shape[2]
    group = heads // kv_heads
    part = triton.cdiv(triton.cdiv(table.shape[1] * page, parts), block) * block
    decode_kernel[(kv_heads // groups, sequences, parts)](
        q, k, v, table, lengths, o, o_parts, lse_parts, arrived, d**-0.5, table.shape[1], page * kv_heads * d, kv_heads * d, part,
        D=d, GROUP=group, ROWS=max(rows, triton.next_power_of_2(group)), PAGE=page, BLOCK=block, GROUPS=groups,
        PARTS=triton.next_power_of_2(parts), num_warps=num_warps, num_stages=num_stages,
    )  # fmt: skip


def hold(device, groups: int = 1, num_warps: int = 4, rows: int = 16) -> None:
    """Holds :func:`paged_decode` to its reference, and its counters to zeros."""
    warps = num_warps // groups

    def decode(q, k, v, table, lengths, o, o_parts, _):
        lse_parts = device.empty((*o_parts.shape[:3], warps), np.float32)
        arrived = device.zeros((len(q), k.shape[2], warps), np.int32)
        room = o_parts, lse_parts, arrived
        paged_decode(q, k, v, table, lengths, o, *room, num_warps=num_warps, groups=groups, rows=rows)
        assert not device.numpy(arrived).any()

    check(device, decode)


def example(device) -> None:
    """Of the sequences one ends before the last warps have a block. A warp each for two heads of keys and values, and two."""
    hold(device)
    hold(device, groups=2, num_warps=2)
    hold(device, groups=2)


if __name__ == "__main__":
    from common import run

    run(example)
