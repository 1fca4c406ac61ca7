"""Values at the ends of the formats: NaN, infinities, zeros of both signs, subnormals, and the integers where arithmetic wraps."""

from __future__ import annotations

import numpy as np

from .kinds import BITS, DTYPES, NUMPY

# Mantissa bits of the floats.
MANTISSA = {"e4m3": 3, "e5m2": 2, "f16": 10, "bf16": 7, "f32": 23, "f64": 52}


def patterns(kind: str) -> list[int]:
    """Bits of the values that are worth trying."""
    bits = BITS[kind]
    top = 1 << (bits - 1)
    if kind not in MANTISSA:
        near = [0, 1, 2, 3, 5, 7, 8, top - 2, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2, 2 * top - 7]
        return near + [1 << (bits // 2), (1 << (bits // 2)) - 1]
    mantissa = MANTISSA[kind]
    one = ((1 << (bits - 2 - mantissa)) - 1) << mantissa  # 1.0, whose exponent is the bias
    ends = top - (1 << mantissa)  # infinity, where there is one
    near = [
        0,
        1,
        2,
        (1 << mantissa) - 1,
        1 << mantissa,
        one,
        one + 1,
        one - 1,
        ends,
        ends - 1,
        ends + 1,
        top - 1,
    ]
    near += [one + (e << mantissa) + m for e in (1, 2, 3) for m in (0, 1 << (mantissa - 1))]
    # Where the narrower formats end, and ties of rounding to them.
    near += [
        one + (e << mantissa)
        for e in (-14, -15, -24, -25, 15, 16, 8, -9, -6, -1, 31, 32, 63)
        if 0 < one + (e << mantissa) < ends
    ]
    near += [one + (1 << m) for m in range(mantissa)] + [one + (3 << m) for m in range(mantissa - 1)]
    return near + [n | top for n in near]


def values(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Bits of a kind as an array: the special ones, and any."""
    if kind == "b":
        return rng.integers(0, 1, shape, endpoint=True).astype(bool)
    unsigned = np.dtype(f"uint{BITS[kind]}")
    chosen = rng.choice(np.array(patterns(kind), dtype=np.uint64), shape).astype(unsigned)
    drawn = rng.integers(0, 2 ** BITS[kind] - 1, shape, dtype=unsigned, endpoint=True)
    bits = np.where(rng.random(shape) < 0.7, chosen, drawn)
    return bits.view(NUMPY.get(kind, DTYPES[kind]))
