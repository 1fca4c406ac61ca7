"""Number formats as NumPy bit patterns, and operands that are worth trying."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

UINT = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


@dataclass(frozen=True)
class Float:
    """A binary format: sign, exponent, fraction. ``finite`` ones have no infinity, and one NaN of each sign."""

    bits: int
    exponent: int
    fraction: int
    finite: bool = False

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @np.errstate(over="ignore")
    def decode(self, words: np.ndarray) -> np.ndarray:
        """Bit patterns (in the low bits of any unsigned type) to float64."""
        words = words.astype(np.uint64)
        low = self.bits - 1 - self.exponent - self.fraction  # tf32 leaves bits below its fraction unused
        mantissa = (words >> np.uint64(low)) & np.uint64((1 << self.fraction) - 1)
        exponent = ((words >> np.uint64(low + self.fraction)) & np.uint64((1 << self.exponent) - 1)).astype(
            np.int64
        )
        negative = (words >> np.uint64(self.bits - 1)) & np.uint64(1) != 0
        top = (1 << self.exponent) - 1
        value = np.where(
            exponent == 0,
            np.ldexp(mantissa.astype(np.float64), 1 - self.bias - self.fraction),
            np.ldexp(
                (mantissa + np.uint64(1 << self.fraction)).astype(np.float64),
                exponent - self.bias - self.fraction,
            ),
        )
        if self.finite:
            value = np.where((exponent == top) & (mantissa == (1 << self.fraction) - 1), np.nan, value)
        else:
            value = np.where(exponent == top, np.where(mantissa == 0, np.inf, np.nan), value)
        return np.where(negative, -value, value)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Finite float64 values to the bit patterns of those nearest (ties to even), saturated."""
        values = np.asarray(values, np.float64)
        magnitude = np.abs(values)
        exponent = np.maximum(np.frexp(magnitude)[1] - 1, 1 - self.bias)
        steps = np.rint(np.ldexp(magnitude, self.fraction - exponent)).astype(np.int64)
        words = ((exponent + self.bias - 1).astype(np.int64) << self.fraction) + steps
        top = ((1 << (self.exponent + self.fraction)) - 2) if self.finite else (
            ((1 << self.exponent) - 1 << self.fraction) - 1
        )  # fmt: skip
        words = np.minimum(words, top).astype(np.uint64)
        low = self.bits - 1 - self.exponent - self.fraction
        words = words << np.uint64(low) | np.signbit(values).astype(np.uint64) << np.uint64(self.bits - 1)
        return words.astype(UINT[self.bits])


FLOATS = {
    "e4m3": Float(8, 4, 3, finite=True),
    "e5m2": Float(8, 5, 2),
    "f16": Float(16, 5, 10),
    "bf16": Float(16, 8, 7),
    "tf32": Float(32, 8, 10),
    "f32": Float(32, 8, 23),
    "f64": Float(64, 11, 52),
}


def scalar(ty: str) -> tuple[str, int]:
    """``f16x2`` is two ``f16``."""
    return (ty[:-2], 2) if ty.endswith("x2") else (ty, 1)


def width(ty: str) -> int:
    """Bits of a type such as ``u8``, ``b64``, ``bf16x2``, ``e4m3``."""
    name, count = scalar(ty)
    if name in FLOATS:
        return FLOATS[name].bits * count
    return int(name[1:]) * count


def generator(name: str) -> np.random.Generator:
    """Random numbers that depend on the program's name alone."""
    return np.random.default_rng(zlib.crc32(name.encode()))


SPECIAL_INTEGERS = [0, 1, 2, 3, -1, -2, 7, 31, 32, 33, 63, 64, 255, 0x8000, 0x12345678]


def specials(ty: str) -> list[int]:
    """Bit patterns of one element that are likely to be mishandled."""
    bits = width(ty)
    mask = (1 << bits) - 1
    if ty not in FLOATS:
        extremes = [1 << bits - 1, (1 << bits - 1) - 1, (1 << bits - 1) + 1]
        return sorted({v & mask for v in (*SPECIAL_INTEGERS, *extremes)})
    f = FLOATS[ty]
    low = bits - 1 - f.exponent - f.fraction
    top, one = ((1 << f.exponent) - 1) << f.fraction, f.bias << f.fraction
    positive = [0, 1, (1 << f.fraction) - 1, 1 << f.fraction, one, one + 1, one - 1, one + (1 << f.fraction - 1),
                one + (1 << f.fraction), top - 1, top, top + 1, top + (1 << f.fraction - 1)]  # fmt: skip
    positive += [top | (1 << f.fraction) - 1]
    return [v << low | s << bits - 1 for v in positive for s in (0, 1)]


def operand(ty: str, n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """``n`` bit patterns for operand number ``k``: pairs of special values, random bits, and values next to ties."""
    name, count = scalar(ty)
    if count == 2:
        low, high = operand(name, n, k, rng), operand(name, n, k + 1, rng)
        wide = UINT[2 * width(name)]
        return low.astype(wide) | high.astype(wide) << wide(width(name))
    bits = width(ty)
    dtype = UINT[bits]
    words = rng.integers(0, (1 << bits) - 1, n, dtype=np.uint64, endpoint=True)
    special = np.array(specials(ty), np.uint64)
    at = np.arange(n // 2)
    size = len(special)
    picks = [at % size, at // size % size, (at * 7 + at // 11) % size, (at * 5 + 3) % size]
    words[: n // 2] = special[picks[k % 4]]
    # Low bits next to one half of some place, where conversions to narrower formats tie.
    for i in range(n // 2, n * 3 // 4):
        cut = int(rng.integers(1, bits))
        half = 1 << cut - 1
        ending = (0, half, half - 1, half + 1, (1 << cut) - 1)[int(rng.integers(0, 5))]
        words[i] = np.uint64(int(words[i]) >> cut << cut | ending & ((1 << cut) - 1))
    if ty in FLOATS:
        # Exponents near one, so that sums and products round instead of vanishing.
        f = FLOATS[ty]
        near = slice(n * 5 // 8, n)
        exponent = np.uint64(f.bias) - np.uint64(2) + rng.integers(0, 5, words[near].size, dtype=np.uint64)
        shift = np.uint64(f.fraction + bits - 1 - f.exponent - f.fraction)
        keep = ~np.uint64(((1 << f.exponent) - 1) << int(shift))
        words[near] = words[near] & keep | exponent << shift
    return words.astype(dtype)
