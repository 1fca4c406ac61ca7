"""Sparse attention, forward: each query attends to the rows that its list of indices names (the top k of an indexer).

Keys and values are one array with one head, as in multi-head latent attention (DeepSeek-V2, 2024): a row's first D_VALUE
elements are the values, and all of them the key; all query heads share the rows, so the heads are the rows of the products.
"""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def sparse_kernel(
    q_ptr, kv_ptr, index_ptr, o_ptr, lse_ptr, scale, heads, topk,
    D: tl.constexpr, D_VALUE: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """BLOCK_H heads of one query. The dimension is cut into the part that is also the values, and the rest."""
    query = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    offs_n = tl.arange(0, BLOCK_N)
    offs_v = tl.arange(0, D_VALUE)
    offs_r = D_VALUE + tl.arange(0, D - D_VALUE)
    mine = head[:, None] < heads
    q_row = (query * heads + head)[:, None] * D
    q = tl.load(q_ptr + q_row + offs_v[None, :], mask=mine, other=0.0)
    q_rest = tl.load(q_ptr + q_row + offs_r[None, :], mask=mine, other=0.0)
    m_i = tl.full([BLOCK_H], -1.0e30, dtype=tl.float32)
    l_i = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, D_VALUE], dtype=tl.float32)
    scale *= 1.4426950408889634  # log2(e): exponentials are taken to base 2
    for start in range(0, topk, BLOCK_N):
        n = start + offs_n
        index = tl.load(index_ptr + query * topk + n, mask=n < topk, other=-1)
        there = index >= 0
        row = index.to(tl.int64)[:, None] * D
        kv = tl.load(kv_ptr + row + offs_v[None, :], mask=there[:, None], other=0.0)
        rest = tl.load(kv_ptr + row + offs_r[None, :], mask=there[:, None], other=0.0)
        s = tl.dot(q, tl.trans(kv))
        s = tl.dot(q_rest, tl.trans(rest), s) * scale
        s = tl.where(there[None, :], s, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp2(s - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(kv.dtype), kv, acc * alpha[:, None])
        m_i = m_new
    l_i = tl.where(l_i == 0.0, 1.0, l_i)  # a query that attends to nothing gives zeros
    o = o_ptr + (query * heads + head)[:, None] * D_VALUE + offs_v[None, :]
    tl.store(o, (acc / l_i[:, None]).to(o_ptr.dtype.element_ty), mask=mine)
    tl.store(lse_ptr + query * heads + head, m_i + tl.log2(l_i), mask=head < heads)


def sparse_attention(q, kv, index, o, lse, block=(64, 64), num_warps: int = 8, num_stages: int = 2) -> None:
    """o = softmax(q kvᵀ / sqrt(D)) kv[:, :D_VALUE] over the rows that ``index`` names.

    :param q: (queries, heads, D); D and D_VALUE are odd × 2^k.
    :param kv: (rows, D).
    :param index: (queries, top k) int32; a negative index is none.
    :param o: (queries, heads, D_VALUE). ``lse``: (queries, heads) float32, logarithms to base 2 of the denominators.
    :param block: heads of a program and rows in a step of the loop.
    """
    queries, heads, d = q.shape
    sparse_kernel[(queries, triton.cdiv(heads, block[0]))](
        q, kv, index, o, lse, d**-0.5, heads, index.shape[1],
        D=d, D_VALUE=o.shape[2], BLOCK_H=block[0], BLOCK_N=block[1], num_warps=num_warps, num_stages=num_stages,
    )  # fmt: skip


def reference(q: np.ndarray, kv: np.ndarray, index: np.ndarray, d_value: int) -> np.ndarray:
    """Sparse attention in float64; every query has at least one index."""
    out = np.empty((*q.shape[:2], d_value))
    for i in range(q.shape[0]):
        rows = kv[index[i][index[i] >= 0]].astype(np.float64)
        s = q[i].astype(np.float64) @ rows.T / np.sqrt(q.shape[2])
        p = np.exp(s - s.max(-1, keepdims=True))
        out[i] = p / p.sum(-1, keepdims=True) @ rows[:, :d_value]
    return out


def example(device) -> None:
    """Causal lists with gaps, with heads that fill the tile and that don't."""
    rng = np.random.default_rng(0)
    for heads, d, d_value, topk, block, num_warps in (
        (64, 80, 64, 64, (64, 32), 4),
        (20, 144, 128, 40, (16, 32), 4),
        (64, 288, 256, 32, (64, 32), 8),
        (64, 288, 256, 60, (64, 48), 8),
    ):
        queries = 3
        q, kv = (rng.standard_normal(s).astype(np.float16) for s in ((queries, heads, d), (96, d)))
        index = np.full((queries, topk), -1, np.int32)
        for i in range(queries):
            count = min(1 + i * 30, topk)
            index[i, :count] = rng.permutation(1 + i * 30)[:count]
        o, lse = (
            device.empty((queries, heads, d_value), np.float16),
            device.empty((queries, heads), np.float32),
        )
        sparse_attention(*(device.array(x) for x in (q, kv, index)), o, lse, block, num_warps)
        np.testing.assert_allclose(device.numpy(o), reference(q, kv, index, d_value), rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    from common import run

    run(example)
