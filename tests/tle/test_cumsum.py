"""`tle.cumsum`: the sums before each element, and of all."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def line_kernel(x_ptr, exclusive_ptr, total_ptr, N: tl.constexpr, REVERSE: tl.constexpr, DTYPE: tl.constexpr):
    at = tl.arange(0, N)
    exclusive, total = tle.cumsum(tl.load(x_ptr + at), reverse=REVERSE, dtype=DTYPE)
    tl.store(exclusive_ptr + at, exclusive)
    tl.store(total_ptr, total)


def exclusive_of(x, axis, reverse, dtype):
    """By the definition: each sum is taken of the elements before it, one after the other."""
    x = np.moveaxis(x.astype(dtype), axis, 0)
    x = x[::-1] if reverse else x
    sums = np.zeros((len(x) + 1, *x.shape[1:]), dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        for i, row in enumerate(x):
            sums[i + 1] = sums[i] + row
    before = sums[:-1][::-1] if reverse else sums[:-1]
    return np.moveaxis(before, 0, axis), sums[-1]


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 8, 96, 512, 640])
def test_line(device, n, reverse, num_warps):
    x = np.random.default_rng(n).integers(-1000, 1000, n).astype(np.int32)
    exclusive, total = device.empty(n, np.int32), device.empty(1, np.int32)
    line_kernel[(1,)](device.array(x), exclusive, total, n, reverse, None, num_warps=num_warps)
    want, all_of_it = exclusive_of(x, 0, reverse, np.int32)
    np.testing.assert_array_equal(device.numpy(exclusive), want)
    assert device.numpy(total)[0] == all_of_it


@pytest.mark.parametrize(
    ("given", "wanted", "found"),
    [
        (np.int8, None, np.int32),
        (np.uint8, None, np.uint32),
        (np.int16, None, np.int32),
        (np.uint16, None, np.uint32),
        (np.int64, None, np.int64),
        (np.float16, None, np.float16),
        (np.float32, None, np.float32),
        (np.int8, tl.int64, np.int64),
        (np.float16, tl.float32, np.float32),
        (np.int32, tl.int8, np.int8),
    ],
)
def test_dtypes(device, given, wanted, found):
    x = np.random.default_rng(3).integers(0, 100, 48).astype(given)
    exclusive, total = device.empty(48, found), device.empty(1, found)

    @triton.jit
    def kernel(x_ptr, exclusive_ptr, total_ptr, WANTED: tl.constexpr, FOUND: tl.constexpr):
        at = tl.arange(0, 48)
        exclusive, total = tle.cumsum(tl.load(x_ptr + at), 0, False, WANTED)
        tl.static_assert(exclusive.dtype == FOUND and total.dtype == FOUND)
        tl.static_assert(total.shape == ())
        tl.store(exclusive_ptr + at, exclusive)
        tl.store(total_ptr, total)

    kernel[(1,)](device.array(x), exclusive, total, wanted, tl.dtype(triton_name(found)))
    want, all_of_it = exclusive_of(x, 0, False, found)
    np.testing.assert_array_equal(device.numpy(exclusive), want)
    assert device.numpy(total)[0] == all_of_it


def triton_name(dtype):
    return np.dtype(dtype).name.replace("float", "fp")


@triton.jit
def bfloat_kernel(out_ptr):
    exclusive, total = tle.cumsum(tl.full((16,), 1.5, tl.bfloat16))
    tl.static_assert(exclusive.dtype == tl.float32 and total.dtype == tl.float32)
    tl.store(out_ptr + tl.arange(0, 16), exclusive)
    tl.store(out_ptr + 16, total)


def test_bfloat16_is_summed_in_float32(device):
    out = device.empty(17, np.float32)
    bfloat_kernel[(1,)](out)
    np.testing.assert_array_equal(device.numpy(out), 1.5 * np.arange(17, dtype=np.float32))


@pytest.mark.parametrize("reverse", [False, True])
def test_infinities_and_nans_stay_where_they_are(device, reverse):
    for position, value in ((0, np.inf), (5, -np.inf), (40, np.nan), (95, np.inf), (7, 2.0**100)):
        x = np.ones(96, np.float32)
        x[position] = value
        exclusive, total = device.empty(96, np.float32), device.empty(1, np.float32)
        line_kernel[(1,)](device.array(x), exclusive, total, 96, reverse, None)
        want, all_of_it = exclusive_of(x, 0, reverse, np.float32)
        np.testing.assert_array_equal(device.numpy(exclusive), want)
        np.testing.assert_array_equal(device.numpy(total)[0], all_of_it)


@triton.jit
def cube_kernel(
    x_ptr,
    exclusive_ptr,
    total_ptr,
    A: tl.constexpr,
    B: tl.constexpr,
    C: tl.constexpr,
    AXIS: tl.constexpr,
    REVERSE: tl.constexpr,
):
    a = tl.arange(0, A)[:, None, None]
    b = tl.arange(0, B)[None, :, None]
    c = tl.arange(0, C)[None, None, :]
    at = (a * B + b) * C + c
    exclusive, total = tle.cumsum(tl.load(x_ptr + at), AXIS, REVERSE)
    tl.store(exclusive_ptr + at, exclusive)
    flat = tl.reshape(total, (A * B * C // exclusive.shape[AXIS],))
    tl.store(total_ptr + tl.arange(0, flat.shape[0]), flat)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_any_axis_of_any_rank(device, axis, reverse):
    x = np.random.default_rng(7).integers(-50, 50, (4, 6, 24)).astype(np.int32)
    exclusive = device.empty(x.shape, np.int32)
    want, all_of_it = exclusive_of(x, axis, reverse, np.int32)
    total = device.empty(all_of_it.shape, np.int32)
    cube_kernel[(1,)](device.array(x), exclusive, total, *x.shape, axis, reverse)
    np.testing.assert_array_equal(device.numpy(exclusive), want)
    np.testing.assert_array_equal(device.numpy(total), all_of_it)


@triton.jit
def ranks(wanted):
    exclusive, count = tle.cumsum(wanted.to(tl.int32))
    return exclusive, count


@triton.jit
def compact_kernel(x_ptr, out_ptr, count_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    place, count = ranks(x > 0)
    tl.store(out_ptr + place, x, mask=x > 0)
    none, same = tle.cumsum(count)
    tl.store(count_ptr, none + same)


def test_compaction_in_a_called_function_and_a_scalar(device):
    x = np.random.default_rng(5).integers(-9, 9, 384).astype(np.int32)
    out, count = device.array(np.zeros(384, np.int32)), device.empty(1, np.int32)
    compact_kernel[(1,)](device.array(x), out, count, 384)
    kept = x[x > 0]
    np.testing.assert_array_equal(device.numpy(out)[: len(kept)], kept)
    assert device.numpy(count)[0] == len(kept)


def test_one_scan_gives_both(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    x = np.zeros(512, np.int32)
    compiled = line_kernel[(1,)](x, x.copy(), np.zeros(1, np.int32), 512, False, None)
    assert compiled.asm["ttir"].count('tt.scan"') == 1


@triton.jit
def wrong_axis(x_ptr):
    tle.cumsum(tl.load(x_ptr + tl.arange(0, 16)), axis=1)


def test_a_wrong_axis(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.CompilationError, match=r"the axis of tle\.cumsum is out of range") as caught:
        wrong_axis[(1,)](np.zeros(16, np.int32))
    assert "wrong_axis" in str(caught.value) or "tle.cumsum(" in str(caught.value)
