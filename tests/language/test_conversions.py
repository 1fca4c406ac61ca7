"""Every conversion between number formats, rounded once: what lies next to the middle of two results, and the extremes."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl

FLOATS = {
    "fp8e4nv": ml_dtypes.float8_e4m3fn,
    "fp8e5": ml_dtypes.float8_e5m2,
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp32": np.float32,
    "fp64": np.float64,
}
INTS = {"int32": np.int32, "int64": np.int64, "uint32": np.uint32, "uint64": np.uint64}


@triton.jit
def convert_kernel(x_ptr, y_ptr, n, ROUNDING: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x.to(y_ptr.dtype.element_ty, fp_downcast_rounding=ROUNDING), mask=i < n)


def finite_values(dtype, limit=2000):
    """The finite numbers of a format from 0 on in order, as fp64; a sample of them if there are many."""
    if dtype == np.float32:
        exponents = np.arange(-149, 128)
        rng = np.random.default_rng(0)
        values = (1 + rng.integers(0, 1 << 23, exponents.size) / 2.0**23) * 2.0**exponents
        values = np.concatenate([values, [0, 2.0**-149, 2.0**-126, np.finfo(np.float32).max]]).astype(
            np.float32
        )
        return np.unique(values).astype(np.float64)
    bits = 8 * np.dtype(dtype).itemsize
    codes = np.arange(1 << (bits - 1)).astype(f"u{bits // 8}")
    values = codes.view(dtype).astype(np.float64)
    values = values[np.isfinite(values)]
    keep = np.unique(np.linspace(0, len(values) - 1, limit).astype(int))
    return np.unique(np.concatenate([values[keep], values[keep[:-1] + 1], values[-2:]]))


def above(values, dtype):
    """The next number of the format."""
    if np.dtype(dtype).itemsize == 1 or dtype in (np.float16, ml_dtypes.bfloat16):
        bits = f"u{np.dtype(dtype).itemsize}"
        return (values.astype(dtype).view(bits) + 1).astype(bits).view(dtype).astype(np.float64)
    return np.nextafter(values.astype(dtype), dtype(np.inf)).astype(np.float64)


def interesting(source, target):
    """Numbers of `source` around those of `target` and around the middles between them."""
    with np.errstate(all="ignore"):
        values = finite_values(target)
        if target != np.float32:
            values = np.concatenate([values, (values + above(values, target)) / 2])
        else:
            values = np.concatenate(
                [values, values + np.spacing(values.astype(np.float32)).astype(np.float64) / 2]
            )
        values = values[np.isfinite(values)]
        exact = values.astype(source)
        around = [exact]
        for direction in (np.inf, 0):
            step = exact.astype(source)
            if source in (np.float32, np.float64):
                step = np.nextafter(exact, source(direction))
            around.append(step)
        edges = np.array([0, 1e-30, 2e-45, 1e5, 6e4, 1e30, 3.4e38, 1e39, 1e300, np.inf, np.nan]).astype(
            source
        )
        x = np.concatenate([*around, edges])
        return np.concatenate([x, -x])


def converted(x, target, rounding):
    """`x` (fp64, exact) rounded once."""
    limit = float(ml_dtypes.finfo(target).max)
    with np.errstate(all="ignore"):
        magnitude = np.abs(x)
        small = np.dtype(target).itemsize == 1
        if target in (np.float32, np.float64):
            near = magnitude.astype(target).astype(np.float64)
            low = np.where(
                near > magnitude, np.nextafter(near.astype(target), target(0)).astype(np.float64), near
            )
            high = above(low, target)
        else:
            bits = f"u{np.dtype(target).itemsize}"
            codes = np.arange(1 << (8 * np.dtype(target).itemsize - 1)).astype(bits)
            table = codes.view(target).astype(np.float64)
            table = table[np.isfinite(table)]
            at = np.clip(np.searchsorted(table, magnitude, "right") - 1, 0, len(table) - 1)
            low = table[at]
            high = np.append(table, 2 * table[-1] - table[-2])[at + 1]
        if rounding == "rtz":
            result = np.minimum(low, limit)
            result = np.where(np.isinf(x), limit if small else np.inf, result)
        elif target in (np.float32, np.float64):
            result = magnitude.astype(target).astype(np.float64)
        else:
            middle = (low + high) / 2
            odd = low.astype(target).view(bits) % 2 == 1
            result = np.where((magnitude > middle) | ((magnitude == middle) & odd), high, low)
            result = np.where(result > limit, limit if small else np.inf, result)
            result = np.where(np.isinf(x), limit if small else np.inf, result)
        result = np.where(np.isnan(x), np.nan, np.copysign(result, x))
        return result.astype(target)


def run(device, monkeypatch, target_name, x, target, rounding=None):
    if device.backend == "ptxsim":
        monkeypatch.setenv("TILEWRIGHT_TARGET", target_name)
    y = device.empty(len(x), target)
    convert_kernel[(triton.cdiv(len(x), 1024),)](device.array(x), y, len(x), ROUNDING=rounding, BLOCK=1024)
    return device.numpy(y)


@pytest.mark.parametrize("machine", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", FLOATS)
def test_floats(device, monkeypatch, source, target, machine):
    source, target = FLOATS[source], FLOATS[target]
    x = interesting(source, target if target != np.float64 else np.float32)
    narrows = np.dtype(target).itemsize < np.dtype(source).itemsize
    for rounding in [None, "rtne", "rtz"] if narrows else [None]:
        got = run(device, monkeypatch, machine, x, target, rounding)
        want = x if source == target else converted(x.astype(np.float64), target, rounding)
        same = (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
        assert same.all(), [(x[i], got[i], want[i]) for i in np.flatnonzero(~same)[:5]]


@pytest.mark.parametrize("machine", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", INTS)
def test_integers(device, monkeypatch, source, target, machine):
    source, target = INTS[source], FLOATS[target]
    bits, signed = 8 * np.dtype(source).itemsize, np.dtype(source).kind == "i"
    high = (1 << (bits - signed)) - 1
    x = {0, 1, high, high - 1, high // 2}
    for exponent in range(3, bits):
        for odd in (1, 3, 5, 129, 257, 2049, (1 << 24) + 1):
            middle = odd << exponent >> odd.bit_length()
            x |= {middle - 1, middle, middle + 1, middle + (middle >> 9), middle | 1}
    x = sorted(v for v in x if 0 <= v <= min(high, 1 << 53))
    x = np.array(x + [-v for v in x if signed], source)
    got = run(device, monkeypatch, machine, x, target)
    want = converted(x.astype(np.float64), target, None)
    assert (got == want).all(), [(x[i], got[i], want[i]) for i in np.flatnonzero(got != want)[:5]]


@triton.jit
def bytes_of_halves_kernel(x_ptr, y_ptr, out_ptr, K: tl.constexpr):
    # The low bytes of halves are made into words for the product: no number is converted on the way.
    rows, k, columns = tl.arange(0, 16), tl.arange(0, K), tl.arange(0, 16)
    x = tl.load(x_ptr + rows[:, None] * K + k[None, :]).to(tl.float16)
    low = x.to(tl.int16, bitcast=True).to(tl.int8)
    y = tl.load(y_ptr + k[:, None] * 16 + columns[None, :])
    tl.store(out_ptr + rows[:, None] * 16 + columns[None, :], tl.dot(low, y))


def test_bytes_of_converted_integers(device):
    random = np.random.default_rng(3)
    x = random.integers(-9, 10, (16, 64), dtype=np.int64)
    x[3] = random.integers(-4000, 4000, 64)
    y = random.integers(-3, 4, (64, 16), dtype=np.int8)
    out = device.empty((16, 16), np.int32)
    bytes_of_halves_kernel[(1,)](device.array(x), device.array(y), out, 64, num_warps=1)
    low = x.astype(np.float16).view(np.int16).astype(np.int8)
    np.testing.assert_array_equal(device.numpy(out), low.astype(np.int32) @ y.astype(np.int32))


@triton.jit
def known_numbers_kernel(out, x: "fp16", y: "bf16", BLOCK: tl.constexpr):  # noqa: F821
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.zeros((BLOCK,), tl.float32) + x)
    tl.store(out + BLOCK + i, tl.zeros((BLOCK,), tl.float32) + y)
    tl.store(out + 2 * BLOCK + i, tl.full((BLOCK,), 2105345, tl.int32).to(tl.bfloat16).to(tl.float32))


def test_numbers_that_are_known_are_rounded_once(device):
    # Each is a little above the middle of two results; rounded to fp32 first it would be the middle.
    out = device.empty((3, 16), np.float32)
    known_numbers_kernel[(1,)](out, 1 + 2**-11 + 2**-40, 1 + 2**-8 + 2**-40, BLOCK=16)
    want = [1 + 2**-10, 1 + 2**-7, 2113536]
    np.testing.assert_array_equal(device.numpy(out), np.repeat(np.float32(want), 16).reshape(3, 16))


@triton.jit
def constants_kernel(out_ptr, DTYPE: tl.constexpr):
    at = tl.arange(0, 32)
    x = tl.where(at % 2 == 0, tl.full((32,), 0.0, DTYPE), tl.full((32,), 1.5, DTYPE))
    tl.store(out_ptr + at, x.to(tl.float32))


@pytest.mark.parametrize("dtype", [tl.float8e4nv, tl.float8e5, tl.float8e4b15])
def test_constants_of_8_bits(device, dtype):
    out = device.empty(32, np.float32)
    constants_kernel[(1,)](out, dtype)
    np.testing.assert_array_equal(device.numpy(out), np.tile(np.float32([0, 1.5]), 16))


@triton.jit
def compare_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(out_ptr + i, x < y)
    tl.store(out_ptr + N + i, x == y)
    tl.store(out_ptr + 2 * N + i, x != y)
    tl.store(out_ptr + 3 * N + i, x >= 0.5)
    tl.store(out_ptr + 4 * N + i, tl.where(x != 0, 1, 0))
    tl.store(out_ptr + 5 * N + i, tl.argmax(y, 0))


@pytest.mark.parametrize("name", ["fp8e4nv", "fp8e5"])
def test_floats_of_8_bits_are_compared(device, name):
    x = np.arange(256, dtype=np.uint8).view(FLOATS[name])
    y = np.roll(x, 1)
    y[4:8] = x[4:8]
    y[np.isnan(y.astype(np.float32))] = 0
    out = device.empty((6, 256), np.int32)
    compare_kernel[(1,)](device.array(x), device.array(y), out, N=256)
    a, b = x.astype(np.float32), y.astype(np.float32)
    want = [a < b, a == b, a != b, a >= 0.5, a != 0, np.full(256, b.argmax())]
    assert np.array_equal(device.numpy(out), np.array(want, np.int32))


@triton.jit
def arithmetic_kernel(x_ptr, y_ptr, out_ptr, OP: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    if OP == "maximum":
        z = tl.maximum(x, y)
    elif OP == "minimum":
        z = tl.minimum(x, y)
    elif OP == "nan":
        z = tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "clamp":
        z = tl.clamp(x, tl.minimum(x, y), y)
    elif OP == "+":
        z = x + y
    elif OP == "-":
        z = x - y
    elif OP == "*":
        z = x * y
    elif OP == "/":
        z = x / y
    elif OP == "fma":
        z = tl.fma(x, y, y)
    elif OP == "small":
        z = tl.fma(x, y, tl.full([N], 2.0**-9, x.dtype))
    elif OP == "negative":
        z = -x
    elif OP == "absolute":
        z = tl.abs(x)
    else:
        z = tl.where(x > y, x, 0.0)
    tl.store(out_ptr + i, z)


ARITHMETIC = {
    "maximum": np.fmax,
    "minimum": np.fmin,
    "nan": np.maximum,
    "clamp": np.fmin,
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "fma": lambda x, y: x * y + y,
    "small": lambda x, y: x * y + np.float64(2.0**-9),
    "negative": lambda x, y: 0 - x,
    "absolute": lambda x, y: abs(x),
    "where": lambda x, y: np.where(x > y, x, 0),
}


# What gives one of the numbers as it is.
CHOSEN = ["maximum", "minimum", "nan", "clamp", "absolute", "where"]


@pytest.mark.parametrize("name", ["fp8e4nv", "fp8e5"])
@pytest.mark.parametrize("op", ARITHMETIC)
def test_arithmetic_on_floats_of_8_bits(device, op, name):
    """They are computed as fp32 numbers, and rounded once."""
    dtype = FLOATS[name]
    x = np.random.default_rng(1).permutation(np.arange(1024) % 256).astype(np.uint8).view(dtype)
    y = np.random.default_rng(2).permutation(np.arange(1024) % 256).astype(np.uint8).view(dtype)
    out = device.array(np.zeros(1024, dtype))
    arithmetic_kernel[(1,)](device.array(x), device.array(y), out, op, 1024)
    a, b = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(all="ignore"):
        want = ARITHMETIC[op](a, b)
    # What is too large, infinity too, is the largest finite number.
    largest = float(ml_dtypes.finfo(dtype).max)
    if op not in CHOSEN:
        want = np.clip(want, -largest, largest)
    np.testing.assert_array_equal(device.numpy(out).astype(np.float32), want.astype(dtype).astype(np.float32))


@triton.jit
def sums_of_8_bits_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + tl.arange(0, M), tl.sum(x, 1).to(tl.float32))
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + M + at, tl.cumsum(x, 1).to(tl.float32))
    tl.store(out_ptr + M + M * N + at, at.to(x.dtype).to(tl.float32))


@pytest.mark.parametrize("name", ["fp8e4nv", "fp8e5"])
@pytest.mark.parametrize("shape", [(4, 16), (3, 5), (1, 64)])
def test_sums_of_floats_of_8_bits(device, shape, name):
    x = (np.arange(shape[0] * shape[1]) % 3 - 1).reshape(shape)
    out = device.empty(shape[0] + 2 * x.size, np.float32)
    sums_of_8_bits_kernel[(1,)](device.array(x.astype(FLOATS[name])), out, *shape)
    numbers = np.arange(x.size).astype(FLOATS[name]).astype(np.float32)
    want = np.concatenate([x.sum(1), x.cumsum(1).ravel(), numbers])
    np.testing.assert_array_equal(device.numpy(out), want)


@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("source", ["fp16", "bf16", "fp32", "fp64"])
def test_narrow_integers_are_the_low_bits_of_wide_ones(device, monkeypatch, source, target):
    # Exponents are stored so: 128 as a signed byte, which is read as an unsigned one.
    x = [-70000, -32769, -300, -129, -128, -1.5, -0.5, 0, 127, 128.5, 200, 255, 256, 300, 32768, 60000, 65536]
    with np.errstate(over="ignore"):
        x = np.array([*x, np.inf, -np.inf, np.nan]).astype(FLOATS[source])
    got = run(device, monkeypatch, "cuda:90", x, np.dtype(target))
    whole = np.nan_to_num(x.astype(np.float64)).clip(-(2.0**31), 2.0**31 - 1).astype(np.int64)
    np.testing.assert_array_equal(got, whole.astype(target))


@triton.jit
def convert_constants_kernel(out_ptr):
    tl.store(out_ptr, tl.full((), 3e9, tl.float32).to(tl.int32))
    tl.store(out_ptr + 1, tl.full((), -3e9, tl.float32).to(tl.int32))
    tl.store(out_ptr + 2, tl.full((), float("nan"), tl.float32).to(tl.int32))
    tl.store(out_ptr + 3, tl.full((), -1.5, tl.float32).to(tl.uint32).to(tl.int32, bitcast=True))


def test_constants_that_do_not_fit_an_integer(device):
    """To LLVM they are anything: what was stored had not been written."""
    out = device.empty(4, np.int32)
    convert_constants_kernel[(1,)](out)
    assert device.numpy(out).tolist() == [2**31 - 1, -(2**31), 0, 0]
