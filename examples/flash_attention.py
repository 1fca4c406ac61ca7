"""Flash attention, forward: softmax(q kᵀ · scale) v without the score matrix in memory, causal or not."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def attend(acc, l_i, m_i, q, k_ptrs, v_ptrs, stride_kn, stride_vn, lo, hi, offs_m, offs_n, n_ctx, scale,
           BLOCK_N: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """Folds the keys lo..hi into the running maximum, denominator and output."""
    for start in range(lo, hi, BLOCK_N):
        cols = start + offs_n
        if MASKED:
            k = tl.load(k_ptrs + start * stride_kn, mask=cols[None, :] < n_ctx, other=0.0)
        else:
            k = tl.load(k_ptrs + start * stride_kn)
        s = tl.dot(q, k)
        if MASKED:
            s = tl.where(cols[None, :] < n_ctx, s, -1.0e6)
        if CAUSAL:
            s = tl.where(offs_m[:, None] >= cols[None, :], s, -1.0e6)
        m_new = tl.maximum(m_i, tl.max(s, 1) * scale)
        p = tl.exp2(s * scale - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        if MASKED:
            v = tl.load(v_ptrs + start * stride_vn, mask=cols[:, None] < n_ctx, other=0.0)
        else:
            v = tl.load(v_ptrs + start * stride_vn)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new
    return acc, l_i, m_i


@triton.jit
def flash_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, n_ctx, stride_h, stride_n,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr,
    GROUP: tl.constexpr = 1,
):  # fmt: skip
    start_m = tl.program_id(0) * BLOCK_M
    if CAUSAL:  # the longest rows first: what is left for the end is short
        start_m = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M
    base = tl.program_id(1).to(tl.int64) * stride_h
    base_kv = (tl.program_id(1) // GROUP).to(tl.int64) * stride_h
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    q_ptrs = q_ptr + base + offs_m[:, None] * stride_n + offs_d[None, :]
    k_ptrs = k_ptr + base_kv + offs_n[None, :] * stride_n + offs_d[:, None]
    v_ptrs = v_ptr + base_kv + offs_n[:, None] * stride_n + offs_d[None, :]
    if EVEN:
        q = tl.load(q_ptrs)
    else:
        q = tl.load(q_ptrs, mask=offs_m[:, None] < n_ctx, other=0.0)
    m_i = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    scale *= 1.4426950408889634  # log2(e): exponentials are taken to base 2
    # Whole blocks of keys that all queries see, and then the others.
    if CAUSAL:
        whole = start_m // BLOCK_N * BLOCK_N
        end = min(start_m + BLOCK_M, n_ctx)
    else:
        whole = n_ctx if EVEN else n_ctx // BLOCK_N * BLOCK_N
        end = n_ctx
    acc, l_i, m_i = attend(acc, l_i, m_i, q, k_ptrs, v_ptrs, stride_n, stride_n, 0, whole, offs_m, offs_n, n_ctx,
                           scale, BLOCK_N, False, False)  # fmt: skip
    if CAUSAL or not EVEN:
        acc, l_i, m_i = attend(acc, l_i, m_i, q, k_ptrs, v_ptrs, stride_n, stride_n, whole, end, offs_m, offs_n, n_ctx,
                               scale, BLOCK_N, not EVEN, CAUSAL)  # fmt: skip
    acc = acc * (1.0 / l_i)[:, None]  # one division a row
    o_ptrs = o_ptr + base + offs_m[:, None] * stride_n + offs_d[None, :]
    if EVEN:
        tl.store(o_ptrs, acc.to(o_ptr.dtype.element_ty))
    else:
        tl.store(o_ptrs, acc.to(o_ptr.dtype.element_ty), mask=offs_m[:, None] < n_ctx)


def flash_attention(
    q, k, v, o, causal: bool, block=(128, 64), num_warps: int = 8, num_stages: int = 3, **options
) -> None:
    """o = softmax(q kᵀ / sqrt(D)) v for contiguous (heads, sequence, D) arrays; D is any odd × 2^k from 16.

    k and v may have fewer heads, each for as many heads of q in a row.
    """
    heads, n_ctx, d = q.shape
    block_m, block_n = block
    even = n_ctx % block_m == 0 and n_ctx % block_n == 0
    flash_kernel[(triton.cdiv(n_ctx, block_m), heads)](
        q, k, v, o, d**-0.5, n_ctx, n_ctx * d, d,
        D=d, BLOCK_M=block_m, BLOCK_N=block_n, CAUSAL=causal, EVEN=even, GROUP=heads // k.shape[0],
        num_warps=num_warps, num_stages=num_stages, **options,
    )  # fmt: skip


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool) -> np.ndarray:
    """Attention in float64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[0] // x.shape[0], axis=0) for x in (k, v))
    s = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    if causal:
        s = np.where(np.tri(s.shape[1], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True) @ v


def example(device) -> None:
    """Flash attention at head sizes 64, 80, 96 and 128, causal and not, with and without a ragged end, with two heads of queries for one of keys."""
    rng = np.random.default_rng(0)
    for d, n_ctx, causal, kv_heads in ((64, 128, False, 2), (80, 128, True, 1), (96, 100, False, 1), (128, 128, True, 2)):  # fmt: skip
        q, k, v = (rng.standard_normal((heads, n_ctx, d)).astype(np.float16) for heads in (2, kv_heads, kv_heads))  # fmt: skip
        o = device.empty(q.shape, np.float16)
        flash_attention(*(device.array(x) for x in (q, k, v)), o, causal, block=(64, 32), num_warps=4)
        np.testing.assert_allclose(device.numpy(o), reference(q, k, v, causal), rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    from common import run

    run(example)
