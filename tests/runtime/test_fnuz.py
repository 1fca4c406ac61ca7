"""The formats of 8 bits that NVIDIA's hardware does not have, ``tl.float8e4b8`` and ``tl.float8e5b16``, on the CPU executor: every code, and what is rounded to one.

They have one zero, no infinity, and their only NaN is where -0 would be (``docs/numerics.md``).
"""

import itertools

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl

# Bits of the mantissa and the bias of the exponent.
FORMATS = {"float8e4b8": (tl.float8e4b8, 3, 8), "float8e5b16": (tl.float8e5b16, 2, 16)}


def number(code: int, mantissa: int, bias: int) -> float:
    """What a code says, from the definition of the format."""
    if code == 0x80:
        return float("nan")
    exponent, fraction = code >> mantissa & (0x7F >> mantissa), code & ((1 << mantissa) - 1)
    if exponent == 0:
        value = fraction * 2.0 ** (1 - bias - mantissa)
    else:
        value = ((1 << mantissa) + fraction) * 2.0 ** (exponent - bias - mantissa)
    return -value if code & 0x80 else value


def code_of(x: float, numbers: list[float]) -> int:
    """The nearest of the numbers of a format; of two the even code; the largest for what is larger."""
    if np.isnan(x):
        return 0x80
    below = [c for c in range(128) if numbers[c] <= abs(x)][-1]
    if below < 127:
        up, down = numbers[below + 1] - abs(x), abs(x) - numbers[below]
        below += up < down or (up == down and below % 2)
    return below | 0x80 if x < 0 and below else below


@pytest.fixture(autouse=True)
def on_the_executor(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")


@triton.jit
def widen_kernel(codes_ptr, single_ptr, half_ptr, brain_ptr, double_ptr, D: tl.constexpr):
    i = tl.arange(0, 256)
    x = tl.load(codes_ptr + i).to(D, bitcast=True)
    tl.store(single_ptr + i, x.to(tl.float32))
    tl.store(half_ptr + i, x.to(tl.float16).to(tl.float32))
    tl.store(brain_ptr + i, x.to(tl.bfloat16).to(tl.float32))
    tl.store(double_ptr + i, x.to(tl.float64))


@triton.jit
def narrow_kernel(x_ptr, codes_ptr, n, D: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(codes_ptr + i, x.to(D).to(tl.uint8, bitcast=True), mask=i < n)


def narrowed(x, dtype):
    codes = np.full(len(x), 0xEE, np.uint8)
    narrow_kernel[(triton.cdiv(len(x), 256),)](x, codes, len(x), dtype, BLOCK=256)
    return codes


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_as_a_wider_number_and_back(name):
    dtype, mantissa, bias = FORMATS[name]
    codes = np.arange(256, dtype=np.uint8)
    want = np.array([number(c, mantissa, bias) for c in range(256)])
    single, half, brain = (np.zeros(256, np.float32) for _ in range(3))
    double = np.zeros(256, np.float64)
    widen_kernel[(1,)](codes, single, half, brain, double, dtype)
    # fp16 has all of these numbers, and so have the others.
    for got in (single, half, brain, double):
        np.testing.assert_array_equal(got, want)
        assert not np.signbit(got[0])
    np.testing.assert_array_equal(narrowed(single, dtype), codes)


@pytest.mark.parametrize("source", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("name", FORMATS)
def test_what_is_between_codes_is_rounded_once(name, source):
    dtype, mantissa, bias = FORMATS[name]
    numbers = [number(c, mantissa, bias) for c in range(128)]
    middles = [(a + b) / 2 for a, b in itertools.pairwise(numbers)]
    x = np.array([*numbers, *middles]).astype(source)
    x = np.concatenate([x, np.nextafter(x, source(np.inf)), np.nextafter(x, source(-1))])
    # Zeros of both signs and what rounds to them: -0 is no number of these formats, and its code is NaN.
    edges = [0.0, numbers[1] / 3, numbers[127] * 1.01, 6e4, np.inf, np.nan]
    x = np.concatenate([x, np.array(edges).astype(source)])
    x = np.concatenate([x, -x])
    want = np.array([code_of(float(v), numbers) for v in x], np.uint8)
    got = narrowed(x, dtype)
    wrong = np.flatnonzero(got != want)
    assert not wrong.size, [(x[i], hex(got[i]), hex(want[i])) for i in wrong[:5]]


@pytest.mark.parametrize("name", FORMATS)
def test_nvidia_has_no_conversions_of_them(name, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    with pytest.raises(
        triton.CompilationError, match=r"not supported yet on cuda:.*conversions from f32 to f8E"
    ):
        narrowed(np.zeros(4, np.float32), FORMATS[name][0])
