"""Operators that change shapes: broadcast, reshape, permute, join, split."""

from pathlib import Path

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def reshape_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :])
    y = tl.reshape(x, (C, D))
    tl.store(out_ptr + tl.arange(0, C)[:, None] * D + tl.arange(0, D)[None, :], y)


@pytest.mark.parametrize(
    "shapes", [((8, 16), (16, 8)), ((4, 96), (16, 24)), ((6, 16), (32, 3)), ((1, 60), (5, 12))]
)
def test_reshape(device, shapes):
    (a, b), (c, d) = shapes
    x = np.arange(a * b, dtype=np.int32).reshape(a, b)
    out = device.empty((c, d), np.int32)
    reshape_kernel[(1,)](device.array(x), out, a, b, c, d)
    np.testing.assert_array_equal(device.numpy(out), x.reshape(c, d))


@triton.jit
def permute_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i = tl.arange(0, A)[:, None, None]
    j = tl.arange(0, B)[None, :, None]
    k = tl.arange(0, C)[None, None, :]
    x = tl.load(x_ptr + (i * B + j) * C + k)
    y = tl.permute(x, (2, 0, 1))
    p = tl.arange(0, C)[:, None, None]
    q = tl.arange(0, A)[None, :, None]
    r = tl.arange(0, B)[None, None, :]
    tl.store(out_ptr + (p * A + q) * B + r, y)


@pytest.mark.parametrize("shape", [(4, 8, 16), (3, 10, 12), (1, 6, 2)])
def test_permute(device, shape):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    want = np.ascontiguousarray(x.transpose(2, 0, 1))
    out = device.empty(want.shape, np.float32)
    permute_kernel[(1,)](device.array(x), out, *shape)
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def transpose_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], tl.trans(x) + x.T * 0)


@pytest.mark.parametrize("shape", [(32, 64), (48, 80), (1, 7)])
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.int64])
def test_transpose(device, shape, dtype):
    x = np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)
    out = device.empty(shape[::-1], dtype)
    transpose_kernel[(1,)](device.array(x), out, *shape)
    np.testing.assert_array_equal(device.numpy(out), x.T)


@triton.jit
def join_split_kernel(x_ptr, y_ptr, joined_ptr, sum_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    z = tl.join(tl.load(x_ptr + i), tl.load(y_ptr + i))
    tl.store(joined_ptr + i[:, None] * 2 + tl.arange(0, 2)[None, :], z)
    a, b = tl.split(z)
    tl.store(sum_ptr + i, a - b)


@pytest.mark.parametrize("n", [64, 48, 5])
def test_join_split(device, n):
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(n, dtype=np.float32) for _ in range(2))
    joined, total = device.empty((n, 2), np.float32), device.empty(n, np.float32)
    join_split_kernel[(1,)](device.array(x), device.array(y), joined, total, N=n)
    np.testing.assert_array_equal(device.numpy(joined), np.stack([x, y], axis=1))
    np.testing.assert_array_equal(device.numpy(total), x - y)


@triton.jit
def split_of_shared_pairs_kernel(pairs_ptr, other_ptr, out_ptr):
    rows, cols = tl.arange(0, 7)[:, None], tl.arange(0, 24)[None, :]
    pairs = tl.load(pairs_ptr + rows[:, :, None] * 48 + cols[:, :, None] * 2 + tl.arange(0, 2)[None, None, :])
    first, _ = tl.split(pairs)
    both = tl.interleave(first, tl.load(other_ptr + rows * 24 + cols))
    tl.store(out_ptr + rows * 48 + tl.arange(0, 48)[None, :], both * 5)


def test_split_of_pairs_that_threads_share(device):
    """Rows of 24 pairs are too short for the threads of a warp: several hold the same pair, and one alone its first element."""
    rng = np.random.default_rng(5)
    pairs, other = rng.integers(-9, 9, (7, 24, 2), np.int8), rng.integers(-9, 9, (7, 24), np.int8)
    out = device.empty((7, 48), np.int8)
    split_of_shared_pairs_kernel[(1,)](device.array(pairs), device.array(other), out)
    want = np.stack([pairs[:, :, 0], other], axis=2).reshape(7, 48) * 5
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def broadcast_kernel(row_ptr, col_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    row = tl.load(row_ptr + tl.arange(0, N))
    col = tl.load(col_ptr + tl.arange(0, M))
    wide = tl.broadcast_to(tl.expand_dims(col, 1), (M, N))
    total = wide * row[None, :] + tl.full((M, N), 2, tl.float32) + tl.zeros((M, 1), tl.float32)
    tl.store(out_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], total)


@pytest.mark.parametrize("shape", [(16, 32), (24, 40), (1, 12), (9, 1)])
def test_broadcast(device, shape):
    rng = np.random.default_rng(2)
    row, col = (
        rng.integers(0, 9, shape[1]).astype(np.float32),
        rng.integers(0, 9, shape[0]).astype(np.float32),
    )
    out = device.empty(shape, np.float32)
    broadcast_kernel[(1,)](device.array(row), device.array(col), out, *shape)
    np.testing.assert_array_equal(device.numpy(out), np.outer(col, row) + 2)


@triton.jit
def reshape_between_buffers_kernel(a_ptr, x_ptr, product_ptr, out_ptr):
    i, j, k = tl.arange(0, 32)[:, None], tl.arange(0, 32)[None, :], tl.arange(0, 16)
    a = tl.load(a_ptr + i * 16 + k)
    b = tl.full([16, 32], 0.5, tl.float16) + tl.load(a_ptr)
    tl.store(product_ptr + i * 32 + j, tl.dot(a, b))
    x = tl.load(x_ptr + tl.arange(0, 12)[:, None] * 16 + tl.arange(0, 16))
    out = tl.make_tensor_descriptor(out_ptr, [6, 32], [32, 1], [6, 32])
    out.store([0, 0], tl.reshape(x, [6, 32]))


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8])
def test_a_reshape_between_uses_of_shared_memory(device, num_warps):
    """What it does itself is no reason to leave out a barrier between the others."""
    rng = np.random.default_rng(7)
    a = rng.integers(-4, 5, (32, 16)).astype(np.float16)
    x = rng.integers(-99, 99, (12, 16)).astype(np.float32)
    product, out = device.empty((32, 32), np.float32), device.empty((6, 32), np.float32)
    reshape_between_buffers_kernel[(1,)](device.array(a), device.array(x), product, out, num_warps=num_warps)
    b = np.full((16, 32), 0.5, np.float32) + np.float32(a[0, 0])
    np.testing.assert_array_equal(device.numpy(product), a.astype(np.float32) @ b)
    np.testing.assert_array_equal(device.numpy(out).reshape(12, 16), x)


@triton.jit
def scalar_with_dimensions(p):
    q = p[None, None, :]
    tl.static_assert(q.shape[0] == 1 and q.shape[1] == 1 and len(q.shape) == 2)
    tl.store(q, tl.full([1, 1], 3.0, tl.float32))


def test_a_scalar_takes_new_dimensions_and_a_colon(device):
    out = device.empty(1, np.float32)
    scalar_with_dimensions[(1,)](out)
    np.testing.assert_array_equal(device.numpy(out), 3)


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, N: tl.constexpr, M: tl.constexpr):
    x, i = tl.load(x_ptr + tl.arange(0, N)), tl.arange(0, M)
    tl.store(out_ptr + i, tl.gather(x, tl.load(index_ptr + i), 0))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int32, np.int64])
def test_gather_by_any_integers(device, dtype):
    x, index = np.arange(200, dtype=np.int32) * 3, (np.arange(20) * 67 % 200).astype(dtype)
    out = device.empty(20, np.int32)
    gather_kernel[(1,)](device.array(x), device.array(index), out, 200, 20)
    np.testing.assert_array_equal(device.numpy(out), x[index])


@triton.jit
def gather_along(
    x_ptr, index_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, AXIS: tl.constexpr
):
    rows: tl.constexpr = K if AXIS == 0 else M
    columns: tl.constexpr = N if AXIS == 0 else K
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N))
    at = tl.arange(0, rows)[:, None] * columns + tl.arange(0, columns)
    tl.store(out_ptr + at, tl.gather(x, tl.load(index_ptr + at), AXIS))


@pytest.mark.parametrize("axis", [0, 1])
def test_gather_from_more_than_shared_memory_holds(device, axis):
    m, n, k = 192, 160, 24  # 240 KiB
    rng = np.random.default_rng(axis)
    x = rng.integers(-(2**62), 2**62, (m, n))
    index = rng.integers(0, (m, n)[axis], (k, n) if axis == 0 else (m, k), dtype=np.int32)
    out = device.empty(index.shape, np.int64)
    gather_along[(1,)](device.array(x), device.array(index), out, m, n, k, axis, num_warps=8)
    np.testing.assert_array_equal(device.numpy(out), np.take_along_axis(x, index, axis))


@pytest.mark.parametrize(
    "dtype, wrong", [(np.int8, -1), (np.int32, -1), (np.int32, 96), (np.int64, 96), (np.int64, 2**32)]
)
def test_gather_outside(device, dtype, wrong):
    x, index = np.arange(96, dtype=np.int32), np.arange(20, dtype=dtype)
    index[17] = wrong
    out = device.empty(20, np.int32)
    arguments = device.array(x), device.array(index), out, 96, 20
    if device.backend == "cuda":
        gather_kernel[(1,)](*arguments)  # any element
        assert np.isin(device.numpy(out), x).all()
        return
    with pytest.raises(triton.KernelError, match=f"index {wrong} is outside") as caught:
        gather_kernel[(1,)](*arguments)
    source = Path(__file__).read_text().splitlines()
    line = next(n for n, text in enumerate(source, 1) if "tl.gather(x, tl.load(index_ptr" in text)
    assert f"test_shapes.py:{line}:" in str(caught.value)


@triton.jit
def cat_kernel(
    x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, DIM: tl.constexpr, REORDER: tl.constexpr
):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)
    both = tl.cat(tl.load(x_ptr + offsets), tl.load(y_ptr + offsets), REORDER, DIM)
    rows: tl.constexpr = both.shape[0]
    columns: tl.constexpr = both.shape[1]
    tl.store(out_ptr + tl.arange(0, rows)[:, None] * columns + tl.arange(0, columns), both)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("shape", [(32, 64), (1, 128), (48, 20), (3, 1)])
def test_cat_of_blocks(device, shape, dim):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-99, 99, shape).astype(np.int16) for _ in range(2))
    want = np.concatenate([x, y], dim)
    for reorder in (False, True):
        out = device.empty(want.shape, np.int16)
        cat_kernel[(1,)](device.array(x), device.array(y), out, *shape, dim, reorder)
        np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def cat_pointers_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + tl.arange(0, 2 * N), tl.load(tl.cat(x_ptr + i, y_ptr + i)))


@pytest.mark.parametrize("n", [1, 64, 96])
def test_cat_of_pointers(device, n):
    x, y = np.arange(n, dtype=np.int32), -np.arange(n, dtype=np.int32)
    out = device.empty(2 * n, np.int32)
    cat_pointers_kernel[(1,)](device.array(x), device.array(y), out, n)
    np.testing.assert_array_equal(device.numpy(out), np.concatenate([x, y]))
