"""Attention forward on both cores of a block: the cube core multiplies, the vector core has the softmax.

The kernel is plain Triton. ``tilewright compile --target ascend:910b`` makes two functions of it, which hand each other scores,
probabilities and products through a workspace; ``TILEWRIGHT_BACKEND=npusim`` runs both at once.
"""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def attention_kernel(
    Q, K, V, Out, N, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    head = tl.program_id(1) * N * D
    d = tl.arange(0, D)
    q = tl.load(Q + head + m[:, None] * D + d[None, :], m[:, None] < N, other=0.0)
    q = (q * scale).to(tl.float16)
    largest = tl.full((BM,), -float("inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = N
    if CAUSAL:
        end = tl.minimum(N, (tl.program_id(0) + 1) * BM)
    for first in tl.range(0, end, BN, num_stages=2):
        n = first + tl.arange(0, BN)
        k = tl.load(K + head + n[None, :] * D + d[:, None], n[None, :] < N, other=0.0)
        s = tl.dot(q, k)
        s = tl.where(n[None, :] < N, s, -float("inf"))
        if CAUSAL:
            s = tl.where(n[None, :] <= m[:, None], s, -float("inf"))
        larger = tl.maximum(largest, tl.max(s, 1))
        p = tl.exp2(s - larger[:, None])
        keep = tl.exp2(largest - larger)
        weight = weight * keep + tl.sum(p, 1)
        v = tl.load(V + head + n[:, None] * D + d[None, :], n[:, None] < N, other=0.0)
        acc = acc * keep[:, None] + tl.dot(p.to(tl.float16), v)
        largest = larger
    out = (acc / weight[:, None]).to(tl.float16)
    tl.store(Out + head + m[:, None] * D + d[None, :], out, m[:, None] < N)


def attention(q, k, v, causal=False):
    """Attention of heads of queries, keys and values, fp16, each head N×D; rows by 16."""
    heads, rows, depth = q.shape
    out = np.zeros_like(q)
    scale = 1.4426950408889634 / depth**0.5  # log2(e): exponentials are taken to base 2
    attention_kernel[(triton.cdiv(rows, 16), heads)](q, k, v, out, rows, scale, 16, 16, depth, causal)
    return out


def reference(q, k, v, causal=False):
    """The same in NumPy, of any leading dimensions."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    s = q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
    if causal:
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p @ v / p.sum(-1, keepdims=True)


def main():
    """Checks two heads of 40 rows, all keys and those up to each row."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 40, 32)).astype(np.float16) for _ in range(3))
    for causal in (False, True):
        np.testing.assert_allclose(
            attention(q, k, v, causal), reference(q, k, v, causal), rtol=1e-2, atol=5e-3
        )
    print("attention: right")


if __name__ == "__main__":
    main()
