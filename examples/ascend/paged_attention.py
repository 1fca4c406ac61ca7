"""Paged attention, decode, on both cores of a block: a group of heads of one sequence against the pages that a block table names.

The scalar units read the table, so each page is a block that is copied at once.
"""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def paged_kernel(
    Q, K, V, table, lengths, Out, scale, pages, PAGE: tl.constexpr, G: tl.constexpr, D: tl.constexpr
):
    sequence = tl.program_id(0)
    g, d, t = tl.arange(0, G), tl.arange(0, D), tl.arange(0, PAGE)
    length = tl.load(lengths + sequence)
    q = tl.load(Q + (sequence * G + g[:, None]) * D + d[None, :])
    largest = tl.full((G,), -float("inf"), tl.float32)
    weight = tl.zeros((G,), tl.float32)
    acc = tl.zeros((G, D), tl.float32)
    for page in range(0, tl.cdiv(length, PAGE)):
        block = tl.load(table + sequence * pages + page)
        there = page * PAGE + t < length
        k = tl.load(K + (block * PAGE + t[:, None]) * D + d[None, :], there[:, None], other=0.0)
        v = tl.load(V + (block * PAGE + t[:, None]) * D + d[None, :], there[:, None], other=0.0)
        s = tl.where(there[None, :], tl.dot(q, tl.trans(k)) * scale, -float("inf"))
        larger = tl.maximum(largest, tl.max(s, 1))
        p = tl.exp(s - larger[:, None])
        keep = tl.exp(largest - larger)
        weight = weight * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(tl.float16), v)
        largest = larger
    tl.store(Out + (sequence * G + g[:, None]) * D + d[None, :], acc / weight[:, None])


def paged_attention(q, k, v, table, lengths):
    """Attention of q (sequence, head, D) to the first ``lengths`` rows of the pages of k and v (page, row, D) that ``table`` names."""
    sequences, group, depth = q.shape
    out = np.zeros(q.shape, np.float32)
    scale = depth**-0.5
    paged_kernel[(sequences,)](q, k, v, table, lengths, out, scale, table.shape[1], k.shape[1], group, depth)
    return out


def main():
    """Checks three sequences of several lengths."""
    from attention_on_two_cores import reference

    rng = np.random.default_rng(0)
    lengths = np.array([5, 40, 16], np.int32)
    table = rng.permutation(9).astype(np.int32).reshape(3, 3)
    q = rng.standard_normal((3, 16, 32)).astype(np.float16)
    k, v = (rng.standard_normal((9, 16, 32)).astype(np.float16) for _ in range(2))
    out = paged_attention(q, k, v, table, lengths)
    for s, length in enumerate(lengths):
        keys, values = (x[table[s]].reshape(-1, 32)[:length] for x in (k, v))
        np.testing.assert_allclose(out[s], reference(q[s], keys, values), rtol=1e-2, atol=5e-3)
    print("paged attention: right")


if __name__ == "__main__":
    main()
