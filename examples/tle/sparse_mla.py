"""Sparse attention, forward, with roles: each query attends to the rows that its list of indices names, as in multi-head latent attention.

Keys and values are one array with one head: a row's first D_VALUE elements are the values, and all of them the key. A program has 64 heads of a query, whose
results are too large for one warp group: two have half of the columns each. Each multiplies the queries with one of two blocks of rows; they
tell each other the maxima, then the weights, through shared memory, and both add what both blocks give to their columns. Four warps beside them gather
rows by asynchronous copies into the slots of a pipe. (The division of labour is that of FlashMLA, DeepSeek, 2025.) Hopper only; on the CPU executor
as it stands.
"""

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def gather(
    writer, kv_ptr, index_ptr, topk, blocks, N: tl.constexpr, HALF: tl.constexpr, REST: tl.constexpr
):  # fmt: skip
    """Fills the slots with the rows of a query."""
    at, rest = tl.arange(0, HALF)[None, :], tl.arange(0, REST)[None, :]
    for i in range(blocks):
        n = i * N + tl.arange(0, N)
        index = tl.load(index_ptr + n, mask=n < topk, other=-1)
        there = (index >= 0)[:, None]
        row = kv_ptr + (index.to(tl.int64) * (2 * HALF + REST))[:, None]
        slot = writer.acquire(i)
        tle.gpu.copy(row + at, slot.left, [N, HALF], mask=there)
        tle.gpu.copy(row + HALF + at, slot.right, [N, HALF], mask=there)
        tle.gpu.copy(row + 2 * HALF + rest, slot.rest, [N, REST], mask=there)
        writer.commit(i)


@triton.jit
def attend(
    reader, q, p, maxima, asked, rated, weighed, done, o_ptr, lse_ptr, index_ptr, topk, blocks, scale,
    WHO: tl.constexpr, H: tl.constexpr, N: tl.constexpr, HALF: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """Weighs every other block of rows, and adds up the columns of one half: those on the left for the first warp group."""
    OTHER: tl.constexpr = 1 - WHO
    scale *= 1.4426950408889634  # log2(e): exponentials are taken to base 2
    # The last part of the queries stays in registers; there is no room for it beside the slots.
    tle.gpu.barrier_wait(asked, phaseIdx=0)
    q_rest = p.slot(WHO).load()
    largest = tl.full([H], -1.0e30, tl.float32)
    total = tl.zeros([H], tl.float32)
    acc = tl.zeros([H, HALF], tl.float32)
    for pair in range(blocks // 2):
        i = 2 * pair
        mine = reader.wait(i + WHO).slot
        s = tle.gpu.wgmma(q.slot(0), mine.left, trans_b=True)
        s = tle.gpu.wgmma(q.slot(1), mine.right, s, trans_b=True)
        s = tle.gpu.wgmma(q_rest, mine.rest, s, trans_b=True)
        n = (i + WHO) * N + tl.arange(0, N)
        there = tl.load(index_ptr + n, mask=n < topk, other=-1) >= 0
        s = tle.gpu.wgmma_wait(0, s)
        s = tl.where(there[None, :], s, float("-inf"))
        before, largest = largest, tl.maximum(largest, tl.max(s, 1))
        maxima.slot(WHO).store(largest)
        tle.gpu.barrier_arrive(rated[WHO], phaseIdx=pair)
        tle.gpu.barrier_wait(rated[OTHER], phaseIdx=pair)
        largest = tl.maximum(largest, maxima.slot(OTHER).load())
        weights = tl.exp2(s * scale - (largest * scale)[:, None])
        p.slot(WHO).store(weights.to(q.dtype))
        tle.gpu.barrier_arrive(weighed[WHO], phaseIdx=pair)
        shrink = tl.exp2((before - largest) * scale)
        total = total * shrink + tl.sum(weights, 1)
        acc *= shrink[:, None]
        # Whoever has told the maxima of a pair is done with the weights of the one before.
        tle.gpu.barrier_wait(weighed[OTHER], phaseIdx=pair)
        slot = reader.wait(i).slot
        acc = tle.gpu.wgmma(p.slot(0), slot.left if WHO == 0 else slot.right, acc)
        slot = reader.wait(i + 1).slot
        acc = tle.gpu.wgmma(p.slot(1), slot.left if WHO == 0 else slot.right, acc)
        acc = tle.gpu.wgmma_wait(1, acc)
        reader.release(i)
        acc = tle.gpu.wgmma_wait(0, acc)
        reader.release(i + 1)
    maxima.slot(WHO).store(total)
    tle.gpu.barrier_arrive(done[WHO], phaseIdx=0)
    tle.gpu.barrier_wait(done[OTHER], phaseIdx=0)
    total += maxima.slot(OTHER).load()
    total = tl.where(total == 0.0, 1.0, total)  # a query that attends to nothing gives zeros
    # Nobody needs the queries any more: the results are put in order where they were.
    q.slot(WHO).store((acc / total[:, None]).to(q.dtype))
    o = o_ptr + tl.arange(0, H)[:, None] * (2 * HALF) + WHO * HALF + tl.arange(0, HALF)[None, :]
    tl.store(o, q.slot(WHO).load())
    if WHO == 0:
        tl.store(lse_ptr + tl.arange(0, H), largest * scale + tl.log2(total))


@triton.jit
def sparse_mla_kernel(
    q_desc, rest_desc, kv_ptr, index_ptr, o_ptr, lse_ptr, scale, heads, topk,
    D: tl.constexpr, D_VALUE: tl.constexpr, H: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """``H`` heads of one query. A block has ``N`` rows, as many as its rows have elements that are no value: weights lie where these were."""
    HALF: tl.constexpr = D_VALUE // 2
    REST: tl.constexpr = D - D_VALUE
    query = tl.program_id(1)
    first = query * heads + tl.program_id(0) * H
    index_ptr += query.to(tl.int64) * topk
    o_ptr += first.to(tl.int64) * D_VALUE
    lse_ptr += first
    q = tle.gpu.alloc([2, H, HALF], dtype=q_desc.dtype)
    left = tle.gpu.alloc([2, N, HALF], dtype=q_desc.dtype)
    right = tle.gpu.alloc([2, N, HALF], dtype=q_desc.dtype)
    rest = tle.gpu.alloc([2, N, REST], dtype=q_desc.dtype)
    pipe = tle.pipe(capacity=2, readers=("left", "right"), left=left, right=right, rest=rest)
    p = tle.gpu.alloc([2, H, N], dtype=q_desc.dtype)
    maxima = tle.gpu.alloc([2, H], dtype=tl.float32)
    rated, weighed, done = tle.gpu.alloc_barriers(2), tle.gpu.alloc_barriers(2), tle.gpu.alloc_barriers(2)
    asked = tle.gpu.alloc_barrier(expect_bytes=H * (D + REST) * q_desc.dtype.primitive_bitwidth // 8)
    for half in tl.static_range(2):
        tle.gpu.copy(q_desc, q.slot(half), [H, HALF], [first, half * HALF], barrier=asked)
        tle.gpu.copy(rest_desc, p.slot(half), [H, REST], [first, D_VALUE], barrier=asked)
    blocks = 2 * tl.cdiv(topk, 2 * N)
    tle.gpu.warp_specialize(
        [
            (attend, (pipe.reader("left"), q, p, maxima, asked, rated, weighed, done, o_ptr, lse_ptr, index_ptr,
                      topk, blocks, scale, 0, H, N, HALF, REST)),
            (attend, (pipe.reader("right"), q, p, maxima, asked, rated, weighed, done, o_ptr, lse_ptr, index_ptr,
                      topk, blocks, scale, 1, H, N, HALF, REST)),
            (gather, (pipe.writer(), kv_ptr, index_ptr, topk, blocks, N, HALF, REST)),
        ],
        [4, 4],
        [224, 56],
    )  # fmt: skip


def sparse_mla(q, kv, index, o, lse):
    """o = softmax(q kvᵀ / sqrt(D)) kv[:, :D_VALUE] over the rows that ``index`` names, for contiguous arrays of 16-bit floats.

    :param q: (queries, heads, D), the heads a multiple of 64.
    :param kv: (rows, D).
    :param index: (queries, top k) int32; a negative index is none.
    :param o: (queries, heads, D_VALUE), D_VALUE + 64 = D. ``lse``: (queries, heads) float32, logarithms to base 2 of the denominators.
    """
    queries, heads, d = q.shape
    d_value = o.shape[2]
    if heads % 64:
        raise ValueError(f"heads come in groups of 64, not {heads}")
    if d - d_value != 64:
        raise ValueError(f"keys have 64 elements beside the values, not {d - d_value}")
    flat = q.reshape(queries * heads, d)
    return sparse_mla_kernel[(heads // 64, queries)](
        TensorDescriptor.from_tensor(flat, [64, d_value // 2]),
        TensorDescriptor.from_tensor(flat, [64, d - d_value]),
        kv,
        index,
        o,
        lse,
        d**-0.5,
        heads,
        index.shape[1],
        d,
        d_value,
        64,
        64,
        num_warps=4,
    )


def reference(q, kv, index, d_value):
    """What NumPy finds: results, and logarithms to base 2 of the denominators."""
    import numpy as np

    q, kv = q.astype(np.float32), kv.astype(np.float32)
    out, lse = np.zeros((*q.shape[:2], d_value), np.float32), np.zeros(q.shape[:2], np.float32)
    for i in range(q.shape[0]):
        there = kv[index[i][index[i] >= 0]]
        if there.size:
            s = q[i] @ there.T * q.shape[2] ** -0.5
            largest = s.max(1, keepdims=True)
            p = np.exp(s - largest)
            out[i] = p / p.sum(1, keepdims=True) @ there[:, :d_value]
            lse[i] = np.log2(np.e) * largest[:, 0] + np.log2(p.sum(1))
    return out, lse


def main():
    """Lists with gaps, against NumPy."""
    import numpy as np

    rng = np.random.default_rng(0)
    queries, heads, d, d_value, topk = 2, 64, 192, 128, 200
    q, kv = (rng.standard_normal(shape).astype(np.float16) for shape in ((queries, heads, d), (300, d)))
    index = np.array([rng.permutation(300)[:topk] for _ in range(queries)], np.int32)
    index[0, 90:] = -1
    o, lse = (
        np.full((queries, heads, d_value), np.nan, np.float16),
        np.full((queries, heads), np.nan, np.float32),
    )
    sparse_mla(q, kv, index, o, lse)
    want, denominators = reference(q, kv, index, d_value)
    np.testing.assert_allclose(o, want, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(lse, denominators, rtol=1e-3, atol=1e-2)
    print(f"{queries} queries of {heads} heads, {topk} rows of {d} each")


if __name__ == "__main__":
    main()
