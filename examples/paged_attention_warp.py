"""Paged attention, decode, as one warp sees it (ML-Triton, section 3.2): the warps of a program share out the blocks of keys and values.

`paged_decode.py` is the same at the level of work groups: there each block is divided among the warps, which have one small product to
share, and meet at every step. Here a warp has blocks of its own, with their maxima, denominators and results; the warps meet once, behind
the loop.
"""

from paged_decode import check, combine_kernel

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def store_merged(m_i, l_i, acc, o_ptr, lse_ptr, stride, GROUP: tl.constexpr):
    """Stores what all warps have, of their first GROUP rows: maxima, denominators and results. Each warp adds up some of the columns."""
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
    m_of = tl.load(every_m)
    m = tl.max(m_of, 0)
    weights = tl.exp2(m_of - m[None, :])
    total = tl.sum(tl.load(every_l) * weights, 0)
    row = tl.arange(0, kept)
    columns: tl.constexpr = D // warps
    column = tl.warp_id() * columns + tl.arange(0, columns)
    acc = tl.zeros([kept, columns], dtype=tl.float32)
    for of in tl.static_range(warps):
        weight = tl.exp2(tl.load(tle.gpu.local_ptr(every_m, (of, row))) - m) / total
        acc += tl.load(tle.gpu.local_ptr(every_acc, (of, row[:, None], column[None, :]))) * weight[:, None]
    there = row < GROUP
    tl.store(lse_ptr + row * stride, m + tl.log2(total), mask=there & (tl.warp_id() == 0))
    tl.store(o_ptr + row[:, None] * (stride * D) + column[None, :], acc, mask=there[:, None])


@triton.jit(warp_level=True)
def part_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, o_ptr, lse_ptr, scale, table_width, page_stride, row_stride, part,
    D: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Attention of one group of heads to one part of its sequence: GROUP of the ROWS rows are heads, the others padding."""
    warps: tl.constexpr = tl.num_warps()
    sequence = tl.program_id(0)
    group = tl.program_id(1)
    which = tl.program_id(2)
    length = tl.load(length_ptr + sequence)
    lo = which * part
    hi = min(lo + part, length)
    heads = tl.arange(0, ROWS)
    offs_d = tl.arange(0, D)
    offs_n = tl.arange(0, BLOCK)
    head = (sequence * tl.num_programs(1) + group) * GROUP + heads
    mine = heads < GROUP
    table_ptr += sequence * table_width
    q = tl.load(q_ptr + head[:, None] * D + offs_d[None, :], mask=mine[:, None], other=0.0)
    m_i = tl.full([ROWS], -float("inf"), dtype=tl.float32)
    l_i = tl.zeros([ROWS], dtype=tl.float32)
    acc = tl.zeros([ROWS, D], dtype=tl.float32)
    scale *= 1.4426950408889634  # log2(e): exponentials are taken to base 2
    for start in range(lo + tl.warp_id() * BLOCK, hi, warps * BLOCK):
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
        to = (sequence * tl.num_programs(1) + group) * GROUP * tl.num_programs(2) + which
        store_merged(m_i, l_i, acc, o_ptr + to * D, lse_ptr + to, tl.num_programs(2), GROUP)


def paged_decode(
    q, k, v, table, lengths, o, o_parts, lse_parts, block: int = 16, num_warps: int = 4, num_stages: int = 2
) -> None:
    """Attention of q (sequences, heads, D) to the pages that ``table`` (sequences, pages) names, into o.

    :param k, v: (pages, rows in a page, heads of keys and values, D); ``lengths`` says how many rows a sequence has, at
        least one.
    :param o_parts, lse_parts: room for (sequences, heads, parts, D) and (sequences, heads, parts) float32.
    :param block: rows in a step of a warp's loop.
    """
    sequences, heads, d = q.shape
    _, page, kv_heads, _ = k.shape
    parts = lse_parts.shape[2]
    group = heads // kv_heads
    part = triton.cdiv(triton.cdiv(table.shape[1] * page, parts), block) * block
    part_kernel[(sequences, kv_heads, parts)](
        q, k, v, table, lengths, o_parts, lse_parts, d**-0.5, table.shape[1], page * kv_heads * d, kv_heads * d, part,
        D=d, GROUP=group, ROWS=max(16, triton.next_power_of_2(group)), PAGE=page, BLOCK=block,
        num_warps=num_warps, num_stages=num_stages,
    )  # fmt: skip
    combine_kernel[(sequences * heads,)](
        o_parts, lse_parts, lengths, o, heads, parts, part, D=d, PARTS=triton.next_power_of_2(parts), num_warps=4
    )  # fmt: skip


def example(device) -> None:
    """Of the sequences one ends before the last warps have a block."""
    check(device, paged_decode)


if __name__ == "__main__":
    from common import run

    run(example)
