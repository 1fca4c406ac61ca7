"""Paged attention, decode: one query a sequence against keys and values that lie in pages, found by a block table.

Query heads in groups share a head of keys and values (GQA), so a group is the rows of one small product. A sequence is cut
into parts that run side by side; a second kernel combines them by their maxima and denominators (flash decoding, Dao et
al., 2023).
"""

from functools import partial

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, o_ptr, lse_ptr, scale, table_width, page_stride, row_stride, part,
    D: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Attention of one group of heads to one part of its sequence: GROUP of the ROWS rows are heads, the others padding."""
    # The programs of all heads of a page read it at about the same time.
    group = tl.program_id(0)
    sequence = tl.program_id(1)
    which = tl.program_id(2)
    length = tl.load(length_ptr + sequence)
    lo = which * part
    hi = min(lo + part, length)
    heads = tl.arange(0, ROWS)
    offs_d = tl.arange(0, D)
    offs_n = tl.arange(0, BLOCK)
    head = (sequence * tl.num_programs(0) + group) * GROUP + heads
    q = tl.load(q_ptr + head[:, None] * D + offs_d[None, :], mask=heads[:, None] < GROUP, other=0.0)
    m_i = tl.full([ROWS], -float("inf"), dtype=tl.float32)
    l_i = tl.zeros([ROWS], dtype=tl.float32)
    acc = tl.zeros([ROWS, D], dtype=tl.float32)
    scale *= 1.4426950408889634  # log2(e): exponentials are taken to base 2
    for start in range(lo, hi, BLOCK):
        n = start + offs_n
        inside = n < hi
        page = tl.load(table_ptr + sequence * table_width + n // PAGE, mask=inside, other=0)
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
        to = head * tl.num_programs(2) + which
        mine = heads < GROUP
        tl.store(lse_ptr + to, m_i + tl.log2(l_i), mask=mine)
        tl.store(o_ptr + to[:, None] * D + offs_d[None, :], acc / l_i[:, None], mask=mine[:, None])


@triton.jit
def combine_kernel(
    part_ptr, lse_ptr, length_ptr, o_ptr, heads, parts, part,
    D: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """The parts of one head, each weighted by its share of the denominator."""
    head = tl.program_id(0)
    which = tl.arange(0, PARTS)
    offs_d = tl.arange(0, D)
    inside = which * part < tl.load(length_ptr + head // heads)
    lse = tl.load(lse_ptr + head * parts + which, mask=inside, other=-float("inf"))
    weight = tl.exp2(lse - tl.max(lse, 0))
    at = (head * parts + which)[:, None] * D + offs_d[None, :]
    o = tl.load(part_ptr + at, mask=inside[:, None], other=0.0)
    o = tl.sum(o * weight[:, None], 0) / tl.sum(weight, 0)
    tl.store(o_ptr + head * D + offs_d, o.to(o_ptr.dtype.element_ty))


def paged_decode(
    q, k, v, table, lengths, o, o_parts, lse_parts, block: int = 64, num_warps: int = 4, num_stages: int = 3
) -> None:
    """Attention of q (sequences, heads, D) to the pages that ``table`` (sequences, pages) names, into o.

    :param k, v: (pages, rows in a page, heads of keys and values, D); ``lengths`` says how many rows a sequence has, at
        least one.
    :param o_parts, lse_parts: room for (sequences, heads, parts, D) and (sequences, heads, parts) float32.
    :param block: rows in a step of the loop.
    """
    sequences, heads, d = q.shape
    _, page, kv_heads, _ = k.shape
    parts = lse_parts.shape[2]
    group = heads // kv_heads
    part = triton.cdiv(triton.cdiv(table.shape[1] * page, parts), block) * block
    part_kernel[(kv_heads, sequences, parts)](
        q, k, v, table, lengths, o_parts, lse_parts, d**-0.5, table.shape[1], page * kv_heads * d, kv_heads * d, part,
        D=d, GROUP=group, ROWS=max(16, triton.next_power_of_2(group)), PAGE=page, BLOCK=block,
        num_warps=num_warps, num_stages=num_stages,
    )  # fmt: skip
    combine_kernel[(sequences * heads,)](
        o_parts,
        lse_parts,
        lengths,
        o,
        heads,
        parts,
        part,
        D=d,
        PARTS=triton.next_power_of_2(parts),
        num_warps=4,
    )


def reference(q, k, v, table, lengths) -> np.ndarray:
    """Attention in float64, page by page as the table says."""
    out = np.empty(q.shape)
    group = q.shape[1] // k.shape[2]
    for i, length in enumerate(lengths):
        keys, values = (x[table[i]].reshape(-1, *x.shape[2:])[:length].astype(np.float64) for x in (k, v))
        keys, values = (x.repeat(group, 1) for x in (keys, values))
        s = np.einsum("hd,nhd->hn", q[i].astype(np.float64), keys) / np.sqrt(q.shape[2])
        p = np.exp(s - s.max(-1, keepdims=True))
        out[i] = np.einsum("hn,nhd->hd", p / p.sum(-1, keepdims=True), values)
    return out


def check(device, decode) -> None:
    """Holds a decoder, called as :func:`paged_decode` is, to :func:`reference`: groups of 1, 4 and 5 heads, pages of 16 and 32 rows, sequences that end
    anywhere."""
    rng = np.random.default_rng(0)
    for heads, kv_heads, d, page, parts, dtype in (
        (8, 2, 64, 16, 2, np.float16),
        (10, 2, 128, 32, 3, np.float16),
        (2, 2, 64, 16, 1, np.float16),
    ):
        sequences, width = 3, 160 // page
        q = rng.standard_normal((sequences, heads, d)).astype(dtype)
        k, v = (rng.standard_normal((sequences * width, page, kv_heads, d)).astype(dtype) for _ in range(2))
        table = rng.permutation(sequences * width).astype(np.int32).reshape(sequences, width)
        lengths = np.array([160, 1, 77], np.int32)
        o = device.empty(q.shape, dtype)
        decode(
            *(device.array(x) for x in (q, k, v, table, lengths)), o,
            device.empty((sequences, heads, parts, d), np.float32), device.empty((sequences, heads, parts), np.float32),
        )  # fmt: skip
        np.testing.assert_allclose(device.numpy(o), reference(q, k, v, table, lengths), rtol=1e-2, atol=1e-2)


def example(device) -> None:
    check(device, partial(paged_decode, block=32))


if __name__ == "__main__":
    from common import run

    run(example)
