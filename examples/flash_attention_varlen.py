"""Flash attention, forward, of sequences of different lengths one behind the other, as engines that serve models batch them."""

import itertools

import numpy as np
from flash_attention import attend, reference

import tilewright as triton
import tilewright.language as tl


@triton.jit
def flash_varlen_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, begins_ptr, scale, stride_q, stride_kv,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    begin = tl.load(begins_ptr + tl.program_id(2))
    n_ctx = tl.load(begins_ptr + tl.program_id(2) + 1) - begin
    start_m = tl.program_id(0) * BLOCK_M
    if start_m >= n_ctx:
        return
    head = tl.program_id(1)
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    q_ptr += begin.to(tl.int64) * stride_q + head * D
    o_ptr += begin.to(tl.int64) * stride_q + head * D
    k_ptr += begin.to(tl.int64) * stride_kv + head // GROUP * D
    v_ptr += begin.to(tl.int64) * stride_kv + head // GROUP * D
    inside = offs_m[:, None] < n_ctx
    q = tl.load(q_ptr + offs_m[:, None] * stride_q + offs_d[None, :], mask=inside, other=0.0)
    k_ptrs = k_ptr + offs_n[None, :] * stride_kv + offs_d[:, None]
    v_ptrs = v_ptr + offs_n[:, None] * stride_kv + offs_d[None, :]
    m_i = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    scale *= 1.4426950408889634  # log2(e): exponentials are taken to base 2
    # Whole blocks of keys that all queries see, and then the others.
    whole = (start_m if CAUSAL else n_ctx) // BLOCK_N * BLOCK_N
    end = min(start_m + BLOCK_M, n_ctx) if CAUSAL else n_ctx
    acc, l_i, m_i = attend(acc, l_i, m_i, q, k_ptrs, v_ptrs, stride_kv, stride_kv, 0, whole, offs_m, offs_n, n_ctx, scale,
                           BLOCK_N, False, False)  # fmt: skip
    acc, l_i, m_i = attend(acc, l_i, m_i, q, k_ptrs, v_ptrs, stride_kv, stride_kv, whole, end, offs_m, offs_n, n_ctx, scale,
                           BLOCK_N, True, CAUSAL)  # fmt: skip
    acc = acc * (1.0 / l_i)[:, None]  # one division a row
    tl.store(
        o_ptr + offs_m[:, None] * stride_q + offs_d[None, :], acc.to(o_ptr.dtype.element_ty), mask=inside
    )


def flash_attention_varlen(
    q, k, v, o, begins, longest: int, causal: bool, block=(128, 64), num_warps: int = 8, num_stages: int = 3
) -> None:
    """o = softmax(q kᵀ / sqrt(D)) v within each sequence, for contiguous (tokens, heads, D) arrays.

    ``begins``: where sequences begin among the tokens, and the number of tokens, int32. k and v may have fewer heads, each for as many heads of q in
    a row.

    :param longest: the length of the longest sequence.
    """
    _, heads, d = q.shape
    kv_heads = k.shape[1]
    block_m, block_n = block
    flash_varlen_kernel[(triton.cdiv(longest, block_m), heads, begins.shape[0] - 1)](
        q, k, v, o, begins, d**-0.5, heads * d, kv_heads * d,
        D=d, BLOCK_M=block_m, BLOCK_N=block_n, CAUSAL=causal, GROUP=heads // kv_heads, num_warps=num_warps, num_stages=num_stages,
    )  # fmt: skip


def example(device) -> None:
    """Three sequences, one of them of one token, causal and not, with two heads of queries for one of keys."""
    rng = np.random.default_rng(0)
    begins = np.array([0, 70, 71, 199], np.int32)
    for d, causal in ((64, False), (80, True)):
        q, k, v = (rng.standard_normal((199, heads, d)).astype(np.float16) for heads in (2, 1, 1))
        o = device.empty(q.shape, np.float16)
        flash_attention_varlen(
            *(device.array(x) for x in (q, k, v)), o, device.array(begins), 128, causal, block=(64, 32), num_warps=4
        )  # fmt: skip
        for a, b in itertools.pairwise(begins):
            want = reference(*(x[a:b].transpose(1, 0, 2) for x in (q, k, v)), causal).transpose(1, 0, 2)
            np.testing.assert_allclose(device.numpy(o)[a:b], want, rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    from common import run

    run(example)
