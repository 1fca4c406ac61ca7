"""Arithmetic, comparison, bit and math operators over dtypes, against NumPy."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl

N = 96
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
INTS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def values(dtype, rng, n=N):
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    return rng.standard_normal(n).astype(dtype)


@triton.jit
def binary_kernel(x_ptr, y_ptr, out_ptr, OP: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    if OP == "+":
        z = x + y
    elif OP == "-":
        z = x - y
    elif OP == "*":
        z = x * y
    elif OP == "/":
        z = x / y
    elif OP == "//":
        z = x // y
    elif OP == "%":
        z = x % y
    elif OP == "&":
        z = x & y
    elif OP == "|":
        z = x | y
    elif OP == "^":
        z = x ^ y
    elif OP == "<<":
        z = x << y
    elif OP == ">>":
        z = x >> y
    elif OP == "<":
        z = x < y
    elif OP == "<=":
        z = x <= y
    elif OP == ">":
        z = x > y
    elif OP == ">=":
        z = x >= y
    elif OP == "==":
        z = x == y
    elif OP == "!=":
        z = x != y
    elif OP == "min":
        z = tl.minimum(x, y)
    else:
        z = tl.maximum(x, y)
    tl.store(out_ptr + i, z.to(out_ptr.dtype.element_ty))


def run_binary(device, op, x, y, out_dtype):
    out = device.empty(N, out_dtype)
    binary_kernel[(1,)](device.array(x), device.array(y), out, OP=op, N=N)
    return device.numpy(out)


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("op", ["+", "-", "*", "&", "|", "^", "min", "max"])
def test_int(device, op, dtype):
    rng = np.random.default_rng(0)
    x, y = values(dtype, rng), values(dtype, rng)
    with np.errstate(over="ignore"):
        want = {
            "+": x + y, "-": x - y, "*": x * y, "&": x & y, "|": x | y, "^": x ^ y,
            "min": np.minimum(x, y), "max": np.maximum(x, y),
        }[op]  # fmt: skip
    np.testing.assert_array_equal(run_binary(device, op, x, y, dtype), want)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("op", ["//", "%"])
def test_int_division_truncates(device, op, dtype):
    """Division is C's, not Python's: the quotient is rounded towards zero."""
    rng = np.random.default_rng(1)
    x, y = values(dtype, rng), values(dtype, rng)
    y[y == 0] = 3
    y[y == -1 % 256] = 5
    if np.dtype(dtype).kind == "i":
        y[y == -1] = 7
    quotient = np.array(
        [int(abs(int(a)) // abs(int(b))) * (1 if (a >= 0) == (b >= 0) else -1) for a, b in zip(x, y)]
    )
    want = quotient if op == "//" else np.array([int(a) - int(q) * int(b) for a, q, b in zip(x, quotient, y)])
    np.testing.assert_array_equal(run_binary(device, op, x, y, dtype).astype(np.int64), want)


@triton.jit
def guarded_division_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(out_ptr + i, x // y, mask=y != 0)
    tl.store(out_ptr + N + i, tl.where(y != 0, x % y, 77))
    tl.store(out_ptr + 2 * N + i, tl.where(y < 0, x // 0, 66))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint32])
def test_a_division_that_nobody_wants_says_nothing_of_its_divisor(device, dtype):
    """A mask that asks for zeros is as it was where the optimizer sees that numbers are divided by what it asks of."""
    y = np.arange(N).astype(dtype) % 7
    x, out = np.full(N, 100, dtype), device.array(np.full(3 * N, 55, dtype))
    guarded_division_kernel[(1,)](device.array(x), device.array(y), out, N=N)
    some = np.maximum(y, 1)
    want = [np.where(y == 0, 55, x // some), np.where(y == 0, 77, x % some), np.full(N, 66)]
    np.testing.assert_array_equal(device.numpy(out), np.concatenate(want).astype(dtype))


@triton.jit
def least_by_minus_one_kernel(x_ptr, y_ptr, out_ptr, LEAST: tl.constexpr):
    i = tl.arange(0, 4)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    # Known when the kernel runs, of one operand before, of both.
    tl.store(out_ptr + i, x // y)
    tl.store(out_ptr + 4 + i, x // -1)
    least = tl.full([4], LEAST, x.dtype)
    tl.store(out_ptr + 8 + i, least // y)
    tl.store(out_ptr + 12 + i, least // tl.full([4], -1, x.dtype))
    tl.store(out_ptr + 16, tl.load(x_ptr) // tl.load(y_ptr))
    tl.store(out_ptr + 17 + i, x % y)
    tl.store(out_ptr + 21 + i, least % y)
    tl.store(out_ptr + 25 + i, least % tl.full([4], -1, x.dtype))
    tl.store(out_ptr + 29, tl.load(x_ptr) % tl.load(y_ptr))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_the_least_number_by_minus_one(device, dtype):
    least = int(np.iinfo(dtype).min)
    out = device.array(np.full(30, 55, dtype))
    x, y = (device.array(np.full(4, n, dtype)) for n in (least, -1))
    least_by_minus_one_kernel[(1,)](x, y, out, least)
    assert device.numpy(out).tolist() == [least] * 17 + [0] * 13


@triton.jit
def far_shift_kernel(x_ptr, out_ptr, BITS: tl.constexpr):
    i = tl.arange(0, 4)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x << BITS)
    tl.store(out_ptr + 4 + i, x >> BITS)
    tl.store(out_ptr + 8 + i, x >> (BITS + 5))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint32])
def test_constant_shifts_by_the_width_and_more(device, dtype):
    x = np.array([1, 0, 77, -5 if np.dtype(dtype).kind == "i" else 5], dtype)
    out = device.empty(12, dtype)
    far_shift_kernel[(1,)](device.array(x), out, np.dtype(dtype).itemsize * 8)
    sign = np.where(x < 0, -1, 0).astype(dtype)
    np.testing.assert_array_equal(device.numpy(out), np.concatenate([0 * x, sign, sign]))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("op", ["<<", ">>"])
def test_shift(device, op, dtype):
    rng = np.random.default_rng(2)
    x = values(dtype, rng)
    y = rng.integers(0, np.dtype(dtype).itemsize * 8, N).astype(dtype)
    want = (x << y if op == "<<" else x >> y).astype(dtype)
    np.testing.assert_array_equal(run_binary(device, op, x, y, dtype), want)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["+", "-", "*", "/", "min", "max"])
def test_float(device, op, dtype):
    rng = np.random.default_rng(3)
    x, y = values(dtype, rng), values(dtype, rng)
    wide = np.float64 if dtype == np.float64 else np.float32
    a, b = x.astype(wide), y.astype(wide)
    want = {"+": a + b, "-": a - b, "*": a * b, "/": a / b, "min": np.minimum(a, b), "max": np.maximum(a, b)}[
        op
    ]
    got = run_binary(device, op, x, y, dtype).astype(wide)
    if op == "/":
        np.testing.assert_allclose(
            got, want.astype(dtype).astype(wide), rtol=1e-2 if np.dtype(dtype).itemsize == 2 else 1e-6
        )
    else:
        np.testing.assert_array_equal(got, want.astype(dtype).astype(wide))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float16, np.float32])
@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!="])
def test_comparison(device, op, dtype):
    rng = np.random.default_rng(4)
    x, y = (rng.integers(0, 4, N).astype(dtype) for _ in range(2))
    want = {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y, "==": x == y, "!=": x != y}[op]
    np.testing.assert_array_equal(run_binary(device, op, x, y, np.int32), want.astype(np.int32))


@triton.jit
def unary_kernel(x_ptr, out_ptr, OP: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if OP == "exp":
        y = tl.exp(x)
    elif OP == "exp2":
        y = tl.math.exp2(x)
    elif OP == "log":
        y = tl.log(x)
    elif OP == "log2":
        y = tl.math.log2(x)
    elif OP == "sin":
        y = tl.sin(x)
    elif OP == "cos":
        y = tl.math.cos(x)
    elif OP == "sqrt":
        y = tl.sqrt(x)
    elif OP == "rsqrt":
        y = tl.rsqrt(x)
    elif OP == "abs":
        y = tl.abs(x)
    elif OP == "floor":
        y = tl.floor(x)
    elif OP == "ceil":
        y = tl.ceil(x)
    elif OP == "erf":
        y = tl.erf(x)
    else:
        y = tl.sigmoid(x)
    tl.store(out_ptr + i, y)


def reference(op, x):
    import math

    x = x.astype(np.float64)
    functions = {
        "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos,
        "sqrt": np.sqrt, "rsqrt": lambda v: 1 / np.sqrt(v), "abs": np.abs, "floor": np.floor, "ceil": np.ceil,
        "erf": np.vectorize(math.erf), "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    }  # fmt: skip
    return functions[op](x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "op",
    ["exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "abs", "floor", "ceil", "erf", "sigmoid"],
)
def test_math(device, op, dtype):
    rng = np.random.default_rng(5)
    x = (rng.standard_normal(N) * 3).astype(dtype)
    if op in ("log", "log2", "sqrt", "rsqrt"):
        x = np.abs(x) + dtype(0.01)
    out = device.empty(N, dtype)
    unary_kernel[(1,)](device.array(x), out, OP=op, N=N)
    tolerance = {"rtol": 2e-6, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(device.numpy(out), reference(op, x), **tolerance)


@triton.jit
def fma_clamp_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    tl.store(out_ptr + i, tl.fma(x, y, x))
    tl.store(out_ptr + N + i, tl.clamp(x, -0.5, 0.5))
    tl.store(out_ptr + 2 * N + i, tl.where(x > y, x, 7))
    tl.store(out_ptr + 3 * N + i, -x if N > 1 else x)
    tl.store(out_ptr + 4 * N + i, abs(min(x, y)) + max(x, 0.25))


def test_fma_clamp_where(device):
    rng = np.random.default_rng(6)
    x, y = (rng.standard_normal(N, dtype=np.float32) for _ in range(2))
    out = device.empty((5, N), np.float32)
    fma_clamp_kernel[(1,)](device.array(x), device.array(y), out, N=N)
    x64, y64 = x.astype(np.float64), y.astype(np.float64)
    want = [
        x64 * y64 + x64,
        np.clip(x, -0.5, 0.5),
        np.where(x > y, x, 7),
        -x,
        abs(np.minimum(x, y)) + np.maximum(x, np.float32(0.25)),
    ]
    np.testing.assert_allclose(device.numpy(out), np.array(want, np.float64), rtol=1e-6, atol=1e-7)


@triton.jit
def cast_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(out_ptr.dtype.element_ty))


@pytest.mark.parametrize(
    "source", [np.int8, np.int32, np.int64, np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
)
@pytest.mark.parametrize(
    "target", [np.int8, np.int32, np.int64, np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
)
def test_cast(device, source, target):
    x = np.random.default_rng(7).uniform(-100, 100, N).astype(source)
    out = device.empty(N, target)
    cast_kernel[(1,)](device.array(x), out, N=N)
    if np.dtype(source).kind not in "iu" and np.dtype(target).kind in "iu":
        want = np.trunc(x.astype(np.float64)).astype(target)
    else:
        want = x.astype(np.float64 if np.dtype(target).kind != "i" else x.dtype).astype(target)
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def promote_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    z = tl.load(a_ptr + i) + tl.load(b_ptr + i)
    tl.static_assert(z.dtype == out_ptr.dtype.element_ty)
    tl.store(out_ptr + i, z)


@pytest.mark.parametrize(
    "a,b,result",
    [
        (np.int8, np.int32, np.int32),
        (np.uint8, np.int8, np.uint8),
        (np.int32, np.float16, np.float16),
        (np.float16, np.float32, np.float32),
        (np.float16, ml_dtypes.bfloat16, np.float16),
        (np.int64, np.float32, np.float32),
        (np.int16, np.uint8, np.int16),
    ],
)
def test_promotion(device, a, b, result):
    x, y = np.arange(16).astype(a), np.arange(16).astype(b)
    out = device.empty(16, result)
    promote_kernel[(1,)](device.array(x), device.array(y), out, N=16)
    np.testing.assert_array_equal(device.numpy(out).astype(np.float64), 2.0 * np.arange(16))


@pytest.mark.parametrize("out", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.int8])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_casts_to_bytes(device, dtype, out):
    """Four results share a register, which is put together byte by byte."""
    x = np.random.default_rng(0).integers(-16, 17, 1024).astype(dtype)
    y = device.empty(1024, np.dtype(out))
    cast_kernel[(1,)](device.array(x), y, N=1024, num_warps=1)
    np.testing.assert_array_equal(device.numpy(y).astype(np.float32), x.astype(out).astype(np.float32))


@triton.jit
def negative_zero_kernel(x_ptr, out_ptr, N: tl.constexpr, ZERO: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.full([N], -0.0, tl.float32))
    tl.store(out_ptr + N + i, tl.where(x > 0, x, ZERO))
    tl.store(out_ptr + 2 * N + i, x * 0 + -0.0)
    carried = -0.0
    for _ in range(2):
        carried = carried * 1.0
    tl.store(out_ptr + 3 * N + i, carried)
    tl.store(out_ptr + 4 * N + i, -x)
    tl.store(out_ptr + 5 * N + i, x)


def test_constant_zero_has_no_sign(device):
    """As in Triton, whose constants equal to zero are the null value; and `-x` is `0 - x`."""
    out = device.empty((6, 32), np.float32)
    zeros = np.full(32, -0.0, np.float32)
    negative_zero_kernel[(1,)](device.array(zeros), out, N=32, ZERO=-0.0)
    signs = np.signbit(device.numpy(out))
    assert not signs[:5].any() and signs[5].all()


@triton.jit
def angle_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    s, c = tl.sin(x), tl.cos(x)
    tl.store(out_ptr + i, s, mask=i < n)
    tl.store(out_ptr + n + i, c, mask=i < n)
    tl.store(out_ptr + 2 * n + i, tl.extra.libdevice.tan(x), mask=i < n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_angles_of_every_size(device, dtype):
    """Among them numbers near to multiples of π/2."""
    rng = np.random.default_rng(0)
    top = np.log2(np.finfo(dtype).max)
    x = 2.0 ** rng.uniform(-10, top, 1500) * rng.choice([-1, 1], 1500)
    turns = np.rint(2.0 ** rng.uniform(0, 60, 500)) * (np.pi / 2)
    special = [0, 1e9, 2.0**30, 1e18, 1e22, 1e300]
    with np.errstate(over="ignore"):
        x = np.concatenate([x, turns, special]).astype(dtype)
    x = x[np.isfinite(x)]
    out = device.empty((3, len(x)), dtype)
    angle_kernel[(triton.cdiv(len(x), 256),)](device.array(x), out, len(x), BLOCK=256)
    got = device.numpy(out).astype(np.float64)
    exact = x.astype(np.float64)
    # The C library's; NumPy's own are some ulp off.
    want = np.array([[f(v) for v in exact.tolist()] for f in (math.sin, math.cos, math.tan)])
    ulps = np.abs(got - want) / np.spacing(np.abs(want).astype(dtype)).astype(np.float64)
    assert (ulps.max(axis=1) <= [4, 4, 8]).all(), [x[ulps.argmax(axis=1)], ulps.max(axis=1)]


@triton.jit
def remainder_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i, mask=i < n), tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x % y, mask=i < n)


@pytest.mark.parametrize("dtype", FLOATS)
def test_remainders_are_exact(device, dtype):
    rng = np.random.default_rng(0)
    info = ml_dtypes.finfo(dtype)
    low, high = np.log2(float(info.smallest_subnormal)), np.log2(float(info.max))
    x, y = (2.0 ** rng.uniform(low, high, 2000) * rng.choice([-1, 1], 2000) for _ in range(2))
    # Quotients that are integers, or just not.
    near = np.rint(rng.uniform(1, 1000, 1000)) * (y[:1000] / 1000)
    edges = [0.0, -0.0, 3, -3, 1e4, np.inf, -np.inf, np.nan, float(info.smallest_subnormal), float(info.max)]
    pairs = np.array(np.meshgrid(edges, edges)).reshape(2, -1)
    with np.errstate(over="ignore"):
        x = np.concatenate([x, near, near * (1 - 1e-7), pairs[0], [1e10, 1e15]]).astype(dtype)
        y = np.concatenate([y, y[:1000] / 1000, y[:1000] / 1000, pairs[1], [3, 0.1]]).astype(dtype)
    out = device.empty(len(x), dtype)
    remainder_kernel[(triton.cdiv(len(x), 256),)](device.array(x), device.array(y), out, len(x), BLOCK=256)
    got = device.numpy(out).astype(np.float64)
    with np.errstate(invalid="ignore"):
        want = np.fmod(x.astype(np.float64), y.astype(np.float64))
    same = (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
    assert same.all(), [(x[i], y[i], got[i], want[i]) for i in np.flatnonzero(~same)[:5]]


@triton.jit
def choose_halves(out, x, y, c, rounds):
    i = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
    halves = tl.load(x + i)
    chosen = tl.load(c + i)
    # What is chosen is in registers before the loop and chosen after it.
    total = tl.zeros([16, 64], tl.int32)
    for _ in range(rounds):
        total += tl.load(y + i)
    tl.store(out + i, tl.where(chosen, total.to(tl.float16), halves))


def test_where_of_halves_of_words(device):
    rng = np.random.default_rng(3)
    x = rng.integers(-9, 9, (16, 64)).astype(np.float16)
    y = rng.integers(-9, 9, (16, 64)).astype(np.int32)
    c = rng.integers(0, 2, (16, 64)).astype(bool)
    out = device.empty((16, 64), np.float16)
    choose_halves[(1,)](out, *map(device.array, (x, y, c)), 3, num_warps=1)
    np.testing.assert_array_equal(device.numpy(out), np.where(c, 3 * y, x))


@triton.jit
def bounded_magnitude_kernel(x_ptr, negative_ptr, bits_ptr, low, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.abs(tl.load(x_ptr + i))
    bounded = tl.clamp(x, -1.5, 3.0)
    root = tl.sqrt_rn(bounded)
    tl.store(negative_ptr + i, (tl.maximum(x * x, low) < 0).to(tl.int32) + (root != root).to(tl.int32) * 2)
    tl.store(bits_ptr + i, bounded.to(tl.int32, bitcast=True).to(tl.int64))


def test_the_larger_of_a_magnitude_and_less(device):
    """Where the magnitude is NaN, it is what is less than zero."""
    x = np.array([np.nan, -1, np.inf, 0, -np.nan, 2, -0.0, 5], np.float32)
    negative, bits = device.empty(8, np.int32), device.empty(8, np.int64)
    bounded_magnitude_kernel[(1,)](device.array(x), negative, bits, -2.0, N=8)
    np.testing.assert_array_equal(device.numpy(negative), np.where(np.isnan(x), 3, 0))
    want = np.where(np.isnan(x), np.float32(-1.5), np.minimum(np.abs(x), np.float32(3)))
    np.testing.assert_array_equal(device.numpy(bits), want.view(np.int32))


@triton.jit
def bounded_half_kernel(x_ptr, y_ptr, negative_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    of_number = (tl.maximum(tl.abs(x), -1.5) < 0).to(tl.int32)
    of_tensor = (tl.maximum(tl.abs(x), y) < 0).to(tl.int32)
    tl.store(negative_ptr + i, of_number + of_tensor * 2)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("n", [32, 256])
def test_the_larger_of_a_magnitude_and_less_in_16_bits(device, dtype, n):
    """Alone and in pairs."""
    x = np.resize(np.array([np.nan, -1, np.inf, 0, -np.nan, 2, -0.0], np.float32), n).astype(dtype)
    negative = device.empty(n, np.int32)
    bounded_half_kernel[(1,)](
        device.array(x), device.array(np.full(n, -2.0, dtype)), negative, n, num_warps=1
    )
    np.testing.assert_array_equal(device.numpy(negative), np.where(np.isnan(x.astype(np.float32)), 3, 0))


@triton.jit
def exact_kernel(x_ptr, y_ptr, quotient_ptr, root_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(quotient_ptr + i, tl.div_rn(x, y))
    tl.store(root_ptr + i, tl.sqrt_rn(x))


def test_exactly_rounded(device):
    """``div_rn`` and ``sqrt_rn`` are those of IEEE 754, subnormal numbers too."""
    rng = np.random.default_rng(11)
    x = np.abs(rng.standard_normal(N) * 10.0 ** rng.integers(-38, 38, N)).astype(np.float32)
    y = (rng.standard_normal(N) * 10.0 ** rng.integers(-3, 3, N)).astype(np.float32)
    x[:4], y[:4] = [0, np.inf, 1e-45, 1], [1, 2, 3, 0]
    quotient, root = (device.empty(N, np.float32) for _ in range(2))
    exact_kernel[(1,)](device.array(x), device.array(y), quotient, root, N)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(device.numpy(quotient), x / y)
        np.testing.assert_array_equal(device.numpy(root), np.sqrt(x))


@triton.jit
def high_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.umulhi(tl.load(x_ptr + i), tl.load(y_ptr + i)))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_upper_halves_of_products(device, dtype):
    """``umulhi`` takes its operands as unsigned numbers, whatever they are declared as."""
    rng = np.random.default_rng(12)
    x, y = values(dtype, rng), values(dtype, rng)
    out = device.empty(N, dtype)
    high_kernel[(1,)](device.array(x), device.array(y), out, N)
    bits = 8 * np.dtype(dtype).itemsize
    plain = f"u{np.dtype(dtype).itemsize}"
    expected = [int(a) * int(b) >> bits for a, b in zip(x.view(plain), y.view(plain))]
    np.testing.assert_array_equal(device.numpy(out).view(plain), np.array(expected, plain))


@triton.jit
def nan_kernel(x_ptr, y_ptr, lost_ptr, kept_ptr, clamped_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(lost_ptr + i, tl.maximum(x, y))
    tl.store(kept_ptr + i, tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL))
    low, high = tl.full([N], -1, x.dtype), tl.full([N], 1, x.dtype)
    tl.store(clamped_ptr + i, tl.clamp(x, low, high, propagate_nan=tl.PropagateNan.ALL))


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_goes_on_where_it_shall(device, dtype):
    rng = np.random.default_rng(13)
    x, y = values(dtype, rng), values(dtype, rng)
    x[::5], y[::7] = np.nan, np.nan
    lost, kept, clamped = (device.empty(N, dtype) for _ in range(3))
    nan_kernel[(1,)](device.array(x), device.array(y), lost, kept, clamped, N)
    x, y = x.astype(np.float64), y.astype(np.float64)
    for result, expected in ((lost, np.fmax(x, y)), (kept, np.maximum(x, y)), (clamped, np.clip(x, -1, 1))):
        np.testing.assert_array_equal(device.numpy(result).astype(np.float64), expected)


@triton.jit
def clamp_kernel(x_ptr, low_ptr, high_ptr, out_ptr, N: tl.constexpr, NAN: tl.constexpr):
    i = tl.arange(0, N)
    x, low, high = tl.load(x_ptr + i), tl.load(low_ptr + i), tl.load(high_ptr + i)
    tl.store(out_ptr + i, tl.clamp(x, low, high, propagate_nan=NAN))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("nan", [tl.PropagateNan.NONE, tl.PropagateNan.ALL])
def test_clamp_of_special_values(device, nan, dtype):
    """A maximum and then a minimum: of NaN in the bounds, and of two zeros."""
    special = [np.nan, 0.0, -0.0, 1.0, -1.0, np.inf, -np.inf]
    x, low, high = np.array(np.meshgrid(special, special, special)).reshape(3, -1).astype(dtype)

    def one_of(a, b, take):
        chosen = np.where(take, a, b)
        if nan == tl.PropagateNan.ALL:
            return np.where(np.isnan(a) | np.isnan(b), np.nan, chosen)
        return np.where(np.isnan(b), a, np.where(np.isnan(a), b, chosen))

    raised = one_of(x, low, (x > low) | (x == low) & ~np.signbit(x))
    want = one_of(raised, high, (raised < high) | (raised == high) & np.signbit(raised))
    out = device.empty(x.size, dtype)
    clamp_kernel[(1,)](*(device.array(v) for v in (x, low, high)), out, x.size, nan)
    got = device.numpy(out)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


@triton.jit
def far_apart_kernel(x_ptr, y_ptr, z_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.fma(tl.load(x_ptr + i), tl.load(y_ptr + i), tl.load(z_ptr + i)))


@pytest.mark.parametrize(
    "dtype, large", [(ml_dtypes.bfloat16, 2.0**100), (np.float16, 2.0**9), (np.float32, 2.0**60)]
)
def test_fma_rounds_once(device, dtype, large):
    """A product in the middle of two numbers, and what decides between them far below."""
    places = {ml_dtypes.bfloat16: 7, np.float16: 10, np.float32: 23}[dtype]
    half = places // 2 + 1
    # (1 + 2⁻ʰ)² with 2h places has its last one where the result has none.
    x = np.full(8, (1 + 2.0**-half) * large).astype(dtype)
    y = np.full(8, 1 + 2.0 ** -(places + 1 - half)).astype(dtype)
    z = np.array([0, 2.0**-10, -(2.0**-10), 2.0**-14, -(2.0**-14), 1, -1, 0]).astype(dtype)
    exact = [Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)) for a, b, c in zip(x, y, z)]
    want = [nearest(e, places) for e in exact]
    out = device.empty(8, dtype)
    far_apart_kernel[(1,)](device.array(x), device.array(y), device.array(z), out, 8)
    assert [Fraction(float(v)) for v in device.numpy(out)] == want


def nearest(x, places):
    """A positive number rounded to so many places behind the first, to even in the middle of two."""
    unit = Fraction(2) ** (math.floor(math.log2(x)) - places)
    return round(x / unit) * unit
