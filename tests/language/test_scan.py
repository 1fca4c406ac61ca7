"""Scans whose functions tell their operands apart, in both directions, where the last lanes or warps have no elements."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def first(x, y):
    return x


@triton.jit
def affine(a, b, c, d):
    """``x -> b + a x``, then ``x -> d + c x``."""
    return a * c, b * c + d


@triton.jit
def scan_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.associative_scan(x, AXIS, first, reverse=REVERSE))
    a, b = tl.associative_scan((x, x + 3), AXIS, affine, reverse=REVERSE)
    tl.store(out_ptr + M * N + at, a)
    tl.store(out_ptr + 2 * M * N + at, b)


def scanned(x, axis, reverse):
    """The three results, by one step after the other."""
    x = np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0)
    results = [[x[0], x[0], x[0] + 3]]
    with np.errstate(over="ignore"):
        for y in x[1:]:
            _, a, b = results[-1]
            results.append([x[0], a * y, b * y + y + 3])
    found = [np.moveaxis(np.array(r), 0, axis) for r in zip(*results, strict=True)]
    return np.array([np.flip(r, axis) if reverse else r for r in found])


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "shape,axis",
    [((1, n), 1) for n in (96, 160, 320, 384, 640, 1000)]
    + [((3, 8), 0), ((12, 16), 0), ((96, 4), 0), ((5, 40), 1), ((24, 20), 0), ((24, 20), 1)],
)
def test_order_matters(device, shape, axis, reverse, num_warps):
    x = np.random.default_rng(0).integers(-99, 99, shape).astype(np.int32)
    out = device.empty((3, *shape), np.int32)
    scan_kernel[(1,)](device.array(x), out, *shape, axis, reverse, num_warps=num_warps)
    np.testing.assert_array_equal(device.numpy(out), scanned(x, axis, reverse))


@triton.jit
def larger(x, i, y, j):
    """The larger one with its place, of equal ones the first."""
    takes = (y > x) | ((y == x) & (j < i))
    return tl.where(takes, y, x), tl.where(takes, j, i)


@triton.jit
def within(new, total, begins, x):
    """Sums that begin anew where a segment begins."""
    return new | begins, tl.where(begins, x, total + x)


@triton.jit
def roll(n, last, x, m, last_of_y, y):
    """How many elements there are, the one before the last, and the last."""
    return n + m, tl.where(m == 1, x, tl.zeros_like(x)) + last_of_y, y


@triton.jit
def several_kernel(x_ptr, begins_ptr, largest_ptr, place_ptr, sums_ptr, before_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    largest, place = tl.associative_scan((x, i.to(tl.int64)), 0, larger)
    tl.store(largest_ptr + i, largest)
    tl.store(place_ptr + i, place)
    begins = tl.load(begins_ptr + i) != 0
    _, sums = tl.associative_scan((begins, x.to(tl.float32)), 0, within)
    tl.store(sums_ptr + i, sums)
    _, before, _ = tl.associative_scan((i * 0 + 1, x * 0, x), 0, roll)
    tl.store(before_ptr + i, before)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
@pytest.mark.parametrize("n", [16, 128, 320, 1000])
def test_operands_of_several_types(device, n, dtype, num_warps):
    """Functions of one's own on two and three operands of different types: numbers with their places, flags with sums."""
    rng = np.random.default_rng(n)
    x = rng.integers(-9, 9, n).astype(dtype)
    begins = (rng.random(n) < 0.1).astype(np.int8)
    out = [device.empty(n, t) for t in (dtype, np.int64, np.float32, dtype)]
    several_kernel[(1,)](device.array(x), device.array(begins), *out, n, num_warps=num_warps)
    largest, place, sums, before = map(device.numpy, out)
    np.testing.assert_array_equal(largest, np.maximum.accumulate(x))
    np.testing.assert_array_equal(place, [x[: k + 1].argmax() for k in range(n)])
    total, want = 0.0, []
    for begin, value in zip(begins, x, strict=True):
        total = float(value) if begin else total + float(value)
        want.append(total)
    np.testing.assert_array_equal(sums, np.array(want, np.float32))
    np.testing.assert_array_equal(before, [0, *x[:-1]])


@triton.jit
def warps_kernel(x_ptr, out_ptr, totals_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.cumsum(x, 0))
    tl.store(out_ptr + N + i, tl.cumsum(x, 0, reverse=True))
    tl.store(totals_ptr, tl.sum(x, 0))
    tl.store(totals_ptr + 1, tl.max(x, 0))
    tl.store(totals_ptr + 2, tl.min(x, 0))
    tl.store(totals_ptr + 3, tl.xor_sum(x, 0))


@pytest.mark.parametrize("num_warps", [8, 16, 32])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int8])
@pytest.mark.parametrize("n", [1024, 2048, 1000, 96])
def test_many_warps(device, n, dtype, num_warps):
    """Where an instruction sums up integers of all lanes, also those of the warps before."""
    x = np.random.default_rng(n).integers(0, 100, n).astype(dtype)
    out, totals = device.empty((2, n), dtype), device.empty(4, dtype)
    warps_kernel[(1,)](device.array(x), out, totals, n, num_warps=num_warps)
    want = np.stack([np.cumsum(x), np.cumsum(x[::-1])[::-1]]).astype(dtype)
    np.testing.assert_array_equal(device.numpy(out), want)
    want = [np.sum(x, dtype=dtype), x.max(), x.min(), np.bitwise_xor.reduce(x)]
    np.testing.assert_array_equal(device.numpy(totals), np.array(want).astype(dtype))


@triton.jit
def rows_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, axis: tl.constexpr, reverse: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), axis, reverse))


@pytest.mark.parametrize("num_warps", [8, 16])
@pytest.mark.parametrize("axis,reverse", [(0, False), (0, True), (1, False)])
@pytest.mark.parametrize("shape", [(8, 32), (16, 16), (128, 8), (24, 40), (8, 128)])
def test_lanes_of_several_rows(device, shape, axis, reverse, num_warps):
    # Many warps share the axis, and lanes of one warp have different rows: an instruction over lanes would mix them.
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.int32)
    out = device.zeros(shape, np.int32)
    rows_kernel[(1,)](device.array(x), out, *shape, axis, reverse, num_warps=num_warps)
    want = np.flip(np.cumsum(np.flip(x, axis), axis), axis) if reverse else np.cumsum(x, axis)
    np.testing.assert_array_equal(device.numpy(out), want)


def test_lanes_are_summed_by_an_instruction():
    args = (np.zeros(2048, np.int32), np.zeros((2, 2048), np.int32), np.zeros(4, np.int32), 2048)
    ptx = warps_kernel.warmup(*args, grid=(1,), num_warps=16, target="cuda:90").asm["ptx"]
    # Of each scan the warps before, of each reduction the lanes, and the warps.
    assert [ptx.count(f"redux.sync.{name}") for name in ("add", "max", "min", "xor")] == [4, 2, 2, 2]
    assert "shfl.sync.bfly" not in ptx


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape,num_warps", [((128, 256), 4), ((240, 192), 8), ((128, 384), 4)])
def test_scratch_in_rounds(device, shape, num_warps, reverse):
    # Warps share columns, and a run is one element: scratch for the whole tile would be more than there is.
    x = np.random.default_rng(0).integers(-3, 4, shape).astype(np.int32)
    out = device.array(np.zeros((3, *shape), np.int32))
    scan_kernel[(1,)](device.array(x), out, *shape, 0, reverse, num_warps=num_warps)
    np.testing.assert_array_equal(device.numpy(out), scanned(x, 0, reverse))


@triton.jit
def sums_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), 0))


def test_sums_of_a_large_tile(device):
    x = np.random.default_rng(0).integers(-3, 4, (256, 256)).astype(np.int32)
    out = device.array(np.zeros_like(x))
    sums_kernel[(1,)](device.array(x), out, 256, 256)
    np.testing.assert_array_equal(device.numpy(out), np.cumsum(x, 0))


@triton.jit
def sums_of_pairs_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)
    x = tl.load(x_ptr + at)
    sums, products = tl.associative_scan((x, x * 3), 0, add_pairs)
    tl.store(out_ptr + at, sums + products)


@triton.jit
def add_pairs(a, b, c, d):
    return a + c, b + d


@pytest.mark.parametrize("shape", [(256, 256), (512, 128)])
def test_lines_that_neighbouring_registers_tell_apart(device, shape):
    # A thread has four columns beside each other, and its lanes all others of a row.
    x = np.random.default_rng(0).integers(-3, 4, shape).astype(np.int32)
    out = device.array(np.zeros_like(x))
    sums_of_pairs_kernel[(1,)](device.array(x), out, *shape)
    np.testing.assert_array_equal(device.numpy(out), 4 * np.cumsum(x, 0))
