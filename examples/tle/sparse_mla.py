"""Sparse attention, forward, with roles: each query attends to the rows that its list of indices names, as in multi-head latent attention.

Keys and values are one array with one head: a row's first D_VALUE elements are the values, and all of them the key. A program has 64 heads of a query, whose
results are too large for one warp group: two have half of the columns each. Each weighs one of two blocks of rows, and both add what both blocks
give to their columns; maxima and weights go from one to the other through shared memory. Four warps beside them gather rows by asynchronous copies.
(The division of labour is that of FlashMLA, DeepSeek, 2025.)

There is room for two blocks. One is multiplied with the queries, weighed, multiplied with its weights, and filled again, while the other one is half a
turn behind: so both warp groups take the first block of a pair first. Halves of a block are pipes of one slot, since their last readers differ. Hopper
only; on the CPU executor as it stands.
"""

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tools.tensor_descriptor import TensorDescriptor

# Eight threads copy 128 bytes of a row. So a thread has few rows, whose pointers stay in its registers, and many columns of each.
ROWS = tle.gpu.BlockEncoding([1, 8], [4, 8], [4, 1], [1, 0])


@triton.jit
def indices(index_ptr, block, topk, N: tl.constexpr, EVEN: tl.constexpr):
    """Which rows a block has; a negative index is none."""
    n = block * N + tl.arange(0, N)
    if EVEN:
        return tl.load(index_ptr + n)
    return tl.load(index_ptr + n, mask=n < topk, other=-1)


@triton.jit
def copy(kv_ptr, index, buffer, FIRST: tl.constexpr, D: tl.constexpr, WIDTH: tl.constexpr):
    """``WIDTH`` elements from ``FIRST`` on of rows of ``D``; zeros where there is no row."""
    row = kv_ptr + (index.to(tl.int64) * D)[:, None] + FIRST + tl.arange(0, WIDTH)[None, :]
    buffer.store(tle.gpu.set_layout(tl.load(row, mask=(index >= 0)[:, None], other=0.0), ROWS))


@triton.jit
def gather(
    left_0, right_0, left_1, right_1, kv_ptr, index_ptr, topk, pairs,
    N: tl.constexpr, HALF: tl.constexpr, REST: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Fills the slots with the rows of a query, in the order in which they become free. Indices are loaded a pair ahead."""
    D: tl.constexpr = 2 * HALF + REST
    next_0 = indices(index_ptr, 0, topk, N, EVEN)
    next_1 = indices(index_ptr, 1, topk, N, EVEN)
    for pair in range(pairs):
        index_0, index_1 = next_0, next_1
        if pair + 1 < pairs:
            next_0 = indices(index_ptr, 2 * pair + 2, topk, N, EVEN)
            next_1 = indices(index_ptr, 2 * pair + 3, topk, N, EVEN)
        copy(kv_ptr, index_0, left_0.acquire(pair).rows, 0, D, HALF)
        left_0.commit(pair)
        slot = right_0.acquire(pair)
        copy(kv_ptr, index_0, slot.rows, HALF, D, HALF)
        copy(kv_ptr, index_0, slot.rest, 2 * HALF, D, REST)
        right_0.commit(pair)
        copy(kv_ptr, index_1, right_1.acquire(pair).rows, HALF, D, HALF)
        right_1.commit(pair)
        slot = left_1.acquire(pair)
        copy(kv_ptr, index_1, slot.rows, 0, D, HALF)
        copy(kv_ptr, index_1, slot.rest, 2 * HALF, D, REST)
        left_1.commit(pair)


@triton.jit
def finish(acc, total, q, maxima, bars, o_ptr, WHO: tl.constexpr, H: tl.constexpr, HALF: tl.constexpr):
    """Divides by the sum of all weights, which is given, and stores one half of the columns."""
    maxima.slot(1 - WHO).store(total)  # which this warp group alone has read
    tle.gpu.barrier_wait(bars[3])
    total += maxima.slot(WHO).load()
    total = tl.where(total == 0.0, 1.0, total)  # a query that attends to nothing gives zeros
    # Nobody needs the queries any more: the results are put in order where they were.
    q.slot(WHO).store((acc / total[:, None]).to(q.dtype))
    o = o_ptr + tl.arange(0, H)[:, None] * (2 * HALF) + WHO * HALF + tl.arange(0, HALF)[None, :]
    tl.store(o, q.slot(WHO).load())
    return total


# Of the barriers the first says that the maxima of a pair's first block are there, the next one that its weights are; the third one says both of the
# second block, and the last one that all is added up.


@triton.jit
def attend_left(
    left_0, right_0, left_1, q, p, maxima, asked, bars, o_ptr, lse_ptr, index_ptr, topk, pairs, scale,
    H: tl.constexpr, N: tl.constexpr, HALF: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Weighs the first block of each pair, and adds up the left columns of both."""
    scale *= 1.4426950408889634  # log2(e): exponentials are taken to base 2
    # The last part of the queries stays in registers; there is no room for it beside the slots.
    tle.gpu.barrier_wait(asked, phaseIdx=0)
    q_rest = p.slot(0).load()
    largest = tl.full([H], -1.0e30, tl.float32)
    total = tl.zeros([H], tl.float32)
    acc = tl.zeros([H, HALF], tl.float32)
    for pair in range(pairs):
        left = left_0.wait(pair).slot.rows
        s = tle.gpu.wgmma(q.slot(0), left, trans_b=True)
        right = right_0.wait(pair).slot
        s = tle.gpu.wgmma(q.slot(1), right.rows, s, trans_b=True)
        s = tle.gpu.wgmma(q_rest, right.rest, s, trans_b=True)
        there = indices(index_ptr, 2 * pair, topk, N, EVEN) >= 0
        s = tle.gpu.wgmma_wait(0, s)
        right_0.release(pair)
        s = tl.where(there[None, :], s, float("-inf"))
        before, largest = largest, tl.maximum(largest, tl.max(s, 1))
        maxima.slot(0).store(largest)
        tle.gpu.barrier_arrive(bars[0])
        weights = tl.exp2(s * scale - (largest * scale)[:, None])
        shrink = tl.exp2((before - largest) * scale)
        total = total * shrink + tl.sum(weights, 1)
        weights = weights.to(p.dtype)
        p.slot(0).store(weights)
        tle.gpu.barrier_arrive(bars[1])
        acc *= shrink[:, None]
        acc = tle.gpu.wgmma(weights, left, acc)
        tle.gpu.barrier_wait(bars[2])
        before, largest = largest, maxima.slot(1).load()
        shrink = tl.exp2((before - largest) * scale)
        total *= shrink
        acc = tle.gpu.wgmma_wait(0, acc)
        left_0.release(pair)
        acc *= shrink[:, None]
        acc = tle.gpu.wgmma(p.slot(1), left_1.wait(pair).slot.rows, acc)
        acc = tle.gpu.wgmma_wait(0, acc)
        left_1.release(pair)
    total = finish(acc, total, q, maxima, bars, o_ptr, 0, H, HALF)
    tl.store(lse_ptr + tl.arange(0, H), largest * scale + tl.log2(total))


@triton.jit
def attend_right(
    right_0, left_1, right_1, q, p, maxima, asked, bars, o_ptr, index_ptr, topk, pairs, scale,
    H: tl.constexpr, N: tl.constexpr, HALF: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Weighs the second block of each pair, while its tensor cores are at the first one, and adds up the right columns of both."""
    scale *= 1.4426950408889634
    tle.gpu.barrier_wait(asked, phaseIdx=0)
    q_rest = p.slot(1).load()
    largest = tl.full([H], -1.0e30, tl.float32)
    total = tl.zeros([H], tl.float32)
    acc = tl.zeros([H, HALF], tl.float32)
    for pair in range(pairs):
        right = right_1.wait(pair).slot.rows
        s = tle.gpu.wgmma(q.slot(1), right, trans_b=True)
        left = left_1.wait(pair).slot
        s = tle.gpu.wgmma(q.slot(0), left.rows, s, trans_b=True)
        s = tle.gpu.wgmma(q_rest, left.rest, s, trans_b=True)
        there = indices(index_ptr, 2 * pair + 1, topk, N, EVEN) >= 0
        s = tle.gpu.wgmma_wait(0, s)
        left_1.release(pair)
        s = tl.where(there[None, :], s, float("-inf"))
        of_block = tl.max(s, 1)
        tle.gpu.barrier_wait(bars[0])
        before, largest = largest, maxima.slot(0).load()
        shrink = tl.exp2((before - largest) * scale)
        total *= shrink
        acc *= shrink[:, None]
        tle.gpu.barrier_wait(bars[1])
        acc = tle.gpu.wgmma(p.slot(0), right_0.wait(pair).slot.rows, acc)
        before, largest = largest, tl.maximum(largest, of_block)
        maxima.slot(1).store(largest)
        weights = tl.exp2(s * scale - (largest * scale)[:, None])
        shrink = tl.exp2((before - largest) * scale)
        total = total * shrink + tl.sum(weights, 1)
        weights = weights.to(p.dtype)
        p.slot(1).store(weights)
        tle.gpu.barrier_arrive(bars[2])
        acc = tle.gpu.wgmma_wait(0, acc)
        right_0.release(pair)
        acc *= shrink[:, None]
        acc = tle.gpu.wgmma(weights, right, acc)
        acc = tle.gpu.wgmma_wait(0, acc)
        right_1.release(pair)
    finish(acc, total, q, maxima, bars, o_ptr, 1, H, HALF)


@triton.jit
def sparse_mla_kernel(
    q_desc, rest_desc, kv_ptr, index_ptr, o_ptr, lse_ptr, scale, heads, topk,
    D: tl.constexpr, D_VALUE: tl.constexpr, H: tl.constexpr, N: tl.constexpr, EVEN: tl.constexpr,
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
    rows = [tle.gpu.alloc([1, N, HALF], dtype=q_desc.dtype) for _ in tl.static_range(4)]
    rest = [tle.gpu.alloc([1, N, REST], dtype=q_desc.dtype) for _ in tl.static_range(2)]
    left_0 = tle.pipe(capacity=1, rows=rows[0])
    right_0 = tle.pipe(capacity=1, readers=("left", "right"), rows=rows[1], rest=rest[0])
    left_1 = tle.pipe(capacity=1, readers=("left", "right"), rows=rows[2], rest=rest[1])
    right_1 = tle.pipe(capacity=1, rows=rows[3])
    p = tle.gpu.alloc([2, H, N], dtype=q_desc.dtype)
    maxima = tle.gpu.alloc([2, H], dtype=tl.float32)
    bars = tle.gpu.alloc_barriers(4)
    asked = tle.gpu.alloc_barrier(expect_bytes=H * (D + REST) * q_desc.dtype.primitive_bitwidth // 8)
    for half in tl.static_range(2):
        tle.gpu.copy(q_desc, q.slot(half), [H, HALF], [first, half * HALF], barrier=asked)
        tle.gpu.copy(rest_desc, p.slot(half), [H, REST], [first, D_VALUE], barrier=asked)
    pairs = tl.cdiv(topk, 2 * N)
    tle.gpu.warp_specialize(
        [
            (attend_left, (left_0.reader(), right_0.reader("left"), left_1.reader("left"), q, p, maxima, asked, bars,
                           o_ptr, lse_ptr, index_ptr, topk, pairs, scale, H, N, HALF, EVEN)),
            (attend_right, (right_0.reader("right"), left_1.reader("right"), right_1.reader(), q, p, maxima, asked, bars,
                            o_ptr, index_ptr, topk, pairs, scale, H, N, HALF, EVEN)),
            (gather, (left_0.writer(), right_0.writer(), left_1.writer(), right_1.writer(), kv_ptr, index_ptr, topk, pairs,
                      N, HALF, REST, EVEN)),
        ],
        [4, 4],
        [216, 72],
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
        index.shape[1] > 0 and index.shape[1] % 128 == 0,
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
