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
