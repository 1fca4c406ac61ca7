"""The types in which values and constants meet, as Triton has them."""

import numpy as np

import tilewright as triton
import tilewright.language as tl

N = 16


@triton.jit
def types_of_extrema():
    at = tl.arange(0, 16)
    byte, half, bf = at.to(tl.int8), at.to(tl.float16), at.to(tl.bfloat16)
    # A constant has its own type here, and what is bfloat16 is computed in float32.
    tl.static_assert(tl.minimum(byte, 3).dtype == tl.int32)
    tl.static_assert(tl.maximum(byte, 300).dtype == tl.int32)
    tl.static_assert(tl.minimum(at, 2**40).dtype == tl.int64)
    tl.static_assert(tl.maximum(half, 0).dtype == tl.float16)
    tl.static_assert(tl.maximum(half, 0.0).dtype == tl.float32)
    tl.static_assert(tl.maximum(half, half).dtype == tl.float16)
    tl.static_assert(tl.maximum(bf, bf).dtype == tl.float32)
    tl.static_assert(tl.maximum(bf, 0).dtype == tl.float32)
    tl.static_assert(tl.clamp(bf, bf, bf).dtype == tl.float32)
    tl.static_assert(tl.clamp(half, half, half).dtype == tl.float16)
    tl.static_assert(max(byte, 1).dtype == tl.int32)
    tl.static_assert(tl.minimum(1, 2.5).dtype == tl.float32)
    # Operators give a constant the type of the other operand.
    tl.static_assert((byte + 3).dtype == tl.int8)
    tl.static_assert((half * 2.5).dtype == tl.float16)
    tl.static_assert((bf * 2.5).dtype == tl.bfloat16)
    tl.static_assert(tl.where(at > 3, half, 0.1).dtype == tl.float16)
    # A quotient of two halves is one; so is `fma`, without constants.
    tl.static_assert(tl.fdiv(half, half).dtype == tl.float16)
    tl.static_assert(tl.fdiv(bf, bf).dtype == tl.bfloat16)
    tl.static_assert((half / half).dtype == tl.float32)
    tl.static_assert(tl.fma(half, half, half).dtype == tl.float16)
    tl.static_assert(tl.fma(half, 2.5, half).dtype == tl.float32)
    tl.static_assert(tl.umulhi(at, 2**31).dtype == tl.uint32)
    tl.static_assert(tl.full((4,), 2.5, tl.int1).dtype == tl.int1)


@triton.jit
def type_of_a_product():
    a = tl.zeros((32, 32), tl.int8)
    tl.static_assert(tl.dot(a, a, out_dtype=tl.bfloat16).dtype == tl.int32)


def test_types(device):
    type_of_a_product[(1,)]()
    types_of_extrema[(1,)]()


@triton.jit
def comparisons(half_ptr, byte_ptr, out, N: tl.constexpr):
    at = tl.arange(0, N)
    half, byte = tl.load(half_ptr + at), tl.load(byte_ptr + at)
    tl.store(out + at, half < 0.1)
    tl.store(out + N + at, half == 0.1)
    tl.store(out + 2 * N + at, half.to(tl.bfloat16) >= 0.1)
    tl.store(out + 3 * N + at, byte < 300)
    tl.store(out + 4 * N + at, byte == -1)
    tl.store(out + 5 * N + at, (0.1 > half) & (0.5 <= half.to(tl.float32) * 2))
    tl.store(out + 6 * N + at, half < 0.125)
    tl.store(out + 7 * N + at, byte.to(tl.uint32) > -7)


# float16(0.1) is 0.09998, and smaller than the constant, which is a float32.
def test_comparisons_with_constants(device):
    half = np.linspace(-1, 1, N).astype(np.float16)
    half[3] = 0.1
    byte = (np.arange(N) * 40).astype(np.uint8)
    out = device.zeros((8, N), np.int32)
    comparisons[(1,)](device.array(half), device.array(byte), out, N)
    single, tenth = half.astype(np.float32), np.float32(0.1)
    bf = (np.uint32(0x7FFF) + single.view(np.uint32) + (single.view(np.uint32) >> 16 & 1)) & np.uint32(
        0xFFFF0000
    )
    want = [
        single < tenth,
        single == tenth,
        bf.view(np.float32) >= tenth,
        np.ones(N),
        np.zeros(N),
        (tenth > single) & (single * 2 >= 0.5),
        half < 0.125,
        byte.astype(np.uint32) > np.uint32(2**32 - 7),
    ]
    np.testing.assert_array_equal(device.numpy(out), np.array(want, np.int32))
    assert want[0][3] and not want[1][3]


@triton.jit
def extrema(half_ptr, out, N: tl.constexpr):
    at = tl.arange(0, N)
    half = tl.load(half_ptr + at)
    tl.store(out + at, tl.maximum(half, 0.1) * 3)
    tl.store(out + N + at, tl.minimum(half.to(tl.bfloat16), 0.1) / 3)
    tl.store(out + 2 * N + at, tl.fdiv(half, half + 3.0))
    tl.store(out + 3 * N + at, tl.clamp(half.to(tl.bfloat16), -0.3, 0.3))


def test_values(device):
    half = np.linspace(-1, 1, N).astype(np.float16).astype(np.float32)
    half = (half.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)  # a bfloat16 as well
    out = device.zeros((4, N), np.float32)
    extrema[(1,)](device.array(half.astype(np.float16)), out, N)
    tenth, third = np.float32(0.1), np.float32(0.3)
    sum_ = (half + 3).astype(np.float16).astype(np.float32)
    want = [
        np.maximum(half, tenth) * 3,
        np.minimum(half, tenth) / np.float32(3),
        (half / sum_).astype(np.float16),
        np.clip(half, -third, third),
    ]
    np.testing.assert_allclose(device.numpy(out), np.array(want), rtol=1e-6)


@triton.jit
def choices(out, n, p, F: tl.constexpr):
    tl.store(out, n or 0)
    tl.store(out + 1, F and n)
    tl.store(out + 2, n and True and 3)
    tl.store(out + 3, n and n)
    if p and n:
        tl.store(out + 4, 1)


# A value beside constants that decide nothing stays what it is.
def test_and_or(device):
    out = device.zeros(5, np.int32)
    choices[(1,)](out, 7, out, True)
    assert device.numpy(out).tolist() == [7, 7, 7, 1, 1]
