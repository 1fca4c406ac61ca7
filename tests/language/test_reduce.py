"""Reductions over dtypes, axes and shapes; combine functions of one's own; scans."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl

SHAPES = [(32, 64), (8, 96), (48, 20), (1, 1000), (160, 1), (3, 5)]


@triton.jit
def reduce_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, OP: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    if OP == "sum":
        y = tl.sum(x, axis=AXIS)
    elif OP == "max":
        y = tl.max(x, axis=AXIS)
    elif OP == "min":
        y = tl.min(x, axis=AXIS)
    elif OP == "argmax":
        y = tl.argmax(x, axis=AXIS)
    else:
        y = tl.argmin(x, axis=AXIS)
    tl.store(out_ptr + tl.arange(0, y.shape[0]), y)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", ["sum", "max", "min", "argmax", "argmin"])
def test_reduce(device, op, axis, shape):
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
    want = getattr(np, op)(x, axis=axis)
    out = device.empty(want.shape, np.int32 if "arg" in op else np.float32)
    reduce_kernel[(1,)](device.array(x), out, *shape, AXIS=axis, OP=op)
    np.testing.assert_array_equal(device.numpy(out), want)


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("axis", [0, 1])
def test_nothing_but_nan(device, op, axis):
    """What pads rows to a power of two is no number either."""
    x = np.full((3, 5), np.nan, np.float32)
    x[0, :3] = x[1, 1] = 2  # one row and two columns stay NaN
    out = device.empty(x.shape[1 - axis], np.float32)
    reduce_kernel[(1,)](device.array(x), out, 3, 5, axis, op)
    want = np.where(np.isnan(x).all(axis), np.nan, 2)
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def indices_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, LEFT: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    largest, at = tl.max(x, AXIS, return_indices=True, return_indices_tie_break_left=LEFT)
    smallest, first = tl.min(x, AXIS, return_indices=True, return_indices_tie_break_left=LEFT)
    i = tl.arange(0, at.shape[0])
    tl.store(out_ptr + i, largest.to(tl.float32))
    tl.store(out_ptr + at.shape[0] + i, at.to(tl.float32))
    tl.store(out_ptr + 2 * at.shape[0] + i, smallest.to(tl.float32))
    tl.store(out_ptr + 3 * at.shape[0] + i, first.to(tl.float32))


@pytest.mark.parametrize(
    "dtype, left",
    [(np.float16, True), (ml_dtypes.bfloat16, True), (np.float32, True), (np.float64, True)]
    + [(np.float32, False), (np.float64, False)],
)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(16, 32), (5, 100), (96, 3)])
def test_indices_pass_over_nan(device, shape, left, axis, dtype):
    rng = np.random.default_rng(3)
    # (With `left` there are ties; without, any of them might be taken.)
    x = rng.integers(-4, 4, shape) if left else rng.permutation(np.prod(shape)).reshape(shape) / 4 + 0.125
    x = np.where(rng.random(shape) < 0.6, np.nan, x)
    x[0], x[:, 0] = np.arange(shape[1]) + 0.5, np.arange(shape[0]) + 0.5  # no row of nothing but NaN
    out = device.empty((4, shape[1 - axis]), np.float32)
    indices_kernel[(1,)](device.array(x.astype(dtype)), out, *shape, axis, left)
    want = [np.nanmax(x, axis), np.nanargmax(x, axis), np.nanmin(x, axis), np.nanargmin(x, axis)]
    np.testing.assert_array_equal(device.numpy(out), np.array(want, np.float32))


@triton.jit
def running_kernel(x_ptr, first_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)
    at = rows[:, None] * N + tl.arange(0, N)[None, :]
    total = tl.load(first_ptr + rows)
    for i in range(n):
        x = tl.load(x_ptr + i * M * N + at)
        total = total * (0.5 + rows % 2) + tl.sum(x, axis=1)
    for i in range(n):
        total += tl.sum(tl.load(x_ptr + i * M * N + at), axis=1)
    tl.store(out_ptr + rows, total)


@pytest.mark.parametrize("shape", [*SHAPES, (16, 96)])
@pytest.mark.parametrize("n", [0, 3])
def test_sums_that_loops_carry(device, n, shape):
    """They may be added up over lanes behind the loops."""
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (n, *shape)).astype(np.float32)
    want = first = rng.integers(-4, 5, shape[0]).astype(np.float32)
    for block in x:
        want = want * (0.5 + np.arange(shape[0]) % 2) + block.sum(1)
    want = want + x.sum((0, 2))
    out = device.empty(want.shape, np.float32)
    running_kernel[(1,)](device.array(x), device.array(first), out, n, *shape)
    np.testing.assert_array_equal(device.numpy(out), want)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.float16, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("op", ["sum", "max", "min"])
@pytest.mark.parametrize("num_warps", [1, 8])
def test_dtypes(device, op, dtype, num_warps):
    x = np.random.default_rng(1).integers(-4, 4, (12, 64)).astype(dtype)
    want = getattr(np, op)(x.astype(np.float64), axis=1)
    out = device.empty(12, np.float32)
    reduce_kernel[(1,)](device.array(x), out, 12, 64, AXIS=1, OP=op, num_warps=num_warps)
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def combine_product(a, b):
    return a * b


@triton.jit
def combine_welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    delta = mean_b - mean_a
    share = tl.where(n > 0, n_b / tl.maximum(n, 1.0), 0.0)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def custom_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.reduce(x, 0, combine_product))
    mean, m2, n = tl.reduce((x, tl.zeros_like(x), tl.full([N], 1.0, tl.float32)), 0, combine_welford)
    tl.store(out_ptr + 1, mean)
    tl.store(out_ptr + 2, m2 / n)


@pytest.mark.parametrize("n", [64, 100, 1])
def test_custom_combine(device, n):
    x = np.random.default_rng(2).uniform(0.8, 1.2, n).astype(np.float32)
    out = device.empty(3, np.float32)
    custom_kernel[(1,)](device.array(x), out, N=n)
    np.testing.assert_allclose(device.numpy(out), [x.prod(), x.mean(), x.var()], rtol=1e-4, atol=1e-6)


@triton.jit
def all_axes_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr, tl.sum(x))
    kept = tl.max(x, axis=1, keep_dims=True)
    tl.static_assert(kept.shape == [M, 1])
    tl.store(out_ptr + 1 + tl.arange(0, M)[:, None], kept)


def test_all_axes_and_keep_dims(device):
    x = np.random.default_rng(3).integers(0, 50, (24, 40)).astype(np.float32)
    out = device.empty(25, np.float32)
    all_axes_kernel[(1,)](device.array(x), out, 24, 40)
    np.testing.assert_array_equal(device.numpy(out), np.concatenate([[x.sum()], x.max(axis=1)]))


@triton.jit
def scan_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + offsets, tl.cumsum(tl.load(x_ptr + offsets), axis=AXIS, reverse=REVERSE))


@pytest.mark.parametrize("shape", [(16, 64), (12, 20), (1, 96)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumsum(device, shape, axis, reverse):
    x = np.random.default_rng(4).integers(-9, 9, shape).astype(np.float32)
    out = device.empty(shape, np.float32)
    scan_kernel[(1,)](device.array(x), out, *shape, AXIS=axis, REVERSE=reverse)
    want = np.flip(np.flip(x, axis).cumsum(axis), axis) if reverse else x.cumsum(axis)
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def same_everywhere_kernel(x_ptr, y_ptr, out_ptr, OP: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    if OP == "products":
        result = tl.sum(x * y)
    elif OP == "ties":
        result = tl.argmax(tl.floor(x), 0, tie_break_left=False)
    else:
        result = tl.reduce(x, 0, sum_by_difference)
    tl.store(out_ptr + i, result.to(tl.float32) + tl.zeros([N], tl.float32))


@triton.jit
def sum_by_difference(a, b):
    return (a - b) + b * 2.0


@pytest.mark.parametrize("op", ["products", "ties", "function"])
@pytest.mark.parametrize("n,warps", [(32, 1), (64, 1), (20, 1), (128, 4), (1024, 16)])
def test_a_result_is_the_same_everywhere(device, op, n, warps):
    """Each thread has one of its own, which must be that of all others to the last bit: they may decide by it."""
    rng = np.random.default_rng(n)
    for _ in range(4):
        x, y = rng.random((2, n), np.float32) * 3
        out = device.empty(n, np.float32)
        same_everywhere_kernel[(1,)](device.array(x), device.array(y), out, op, n, num_warps=warps)
        got = device.numpy(out)
        np.testing.assert_array_equal(got, got[0])
        if op == "ties":
            assert np.floor(x[int(got[0])]) == np.floor(x.max())
            device.outputs.clear()  # which of them it is isn't said
        else:
            want = (x.astype(np.float64) * (y if op == "products" else 1)).sum()
            np.testing.assert_allclose(got[0], want, rtol=1e-5)


@triton.jit
def scan_of_a_dot_kernel(
    a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr
):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, 16)
    product = tl.dot(tl.load(a_ptr + m * 16 + k[None, :]), tl.load(b_ptr + k[:, None] * N + n))
    tl.store(out_ptr + m * N + n, product + tl.cumsum(product, axis=AXIS, reverse=REVERSE))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("warps", [2, 8])
def test_cumsum_of_a_dot(device, axis, reverse, warps):
    """A warp's rows of a dot's result are not next to each other in it."""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-4, 5, s).astype(np.float16) for s in ((64, 16), (16, 32)))
    out = device.empty((64, 32), np.float32)
    scan_of_a_dot_kernel[(1,)](device.array(a), device.array(b), out, 64, 32, axis, reverse, num_warps=warps)
    x = a.astype(np.float32) @ b.astype(np.float32)
    want = np.flip(np.flip(x, axis).cumsum(axis), axis) if reverse else x.cumsum(axis)
    np.testing.assert_array_equal(device.numpy(out), x + want)


@triton.jit
def histogram_kernel(x_ptr, out_ptr, limit, N: tl.constexpr, BINS: tl.constexpr, MASKED: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    bins = tl.histogram(x, BINS, mask=i < limit) if MASKED else tl.histogram(x, BINS)
    tl.store(out_ptr + tl.arange(0, BINS), bins)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("n,bins", [(2048, 8), (2048, 128), (96, 24)])
def test_histogram(device, n, bins, masked):
    """The mask is made otherwise than the loaded values are laid out, and goes with them all the same."""
    x = np.random.default_rng(0).integers(-2, bins + 2, n).astype(np.int32)
    out, limit = device.empty(bins, np.int32), n // 2 - 5
    histogram_kernel[(1,)](device.array(x), out, limit, n, bins, masked)
    counted = x[:limit] if masked else x
    want = np.bincount(counted[(counted >= 0) & (counted < bins)], minlength=bins)
    np.testing.assert_array_equal(device.numpy(out), want)
