"""What one test computed on one backend against what it computed on another: bit-equal, or within rounding."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
from pathlib import Path

import numpy as np

# Differences that rounding explains, as a fraction of the largest value of the array: sums in another order, products
# that tensor cores truncate, approximate functions.
ROUNDING = {"float64": 2.0**-45, "float32": 2.0**-16, "float16": 2.0**-8, "bfloat16": 2.0**-6}
SMALL = 2.0**-2  # fp8
# Dots of tf32: the CPU executor rounds their inputs as `cvt.rna` does, tensor cores drop the low bits (docs/numerics.md).
TF32 = 2.0**-10


def key(nodeid: str, backend: str) -> str:
    """A test's name without its backend."""
    return re.sub(rf"\[{backend}(-|\])|-{backend}(?=[-\]])", lambda m: "[" if m[1] == "-" else "", nodeid)


def difference(a: np.ndarray, b: np.ndarray, rounding: float | None = None) -> float:
    """Zero when bit-equal (NaNs are equal); else the largest difference as a fraction of what rounding explains."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return np.inf
    if a.tobytes() == b.tobytes():
        return 0.0
    if a.dtype.kind in "iub":
        return np.inf
    x, y = a.astype(np.float64), b.astype(np.float64)
    if not np.array_equal(np.isnan(x), np.isnan(y)):
        return np.inf
    same = (x == y) | np.isnan(x)
    with np.errstate(invalid="ignore"):
        delta = np.where(same, 0, np.abs(x - y))
    finite = np.abs(y[np.isfinite(y)])
    if not delta.any() or not finite.size:
        return 0.0 if not delta.any() else np.inf
    return float(delta.max() / ((rounding or ROUNDING.get(a.dtype.name, SMALL)) * finite.max()))


def worst(mine: list, others: list, rounding: float | None = None) -> float:
    """The largest difference between two lists of outputs."""
    if len(mine) != len(others):
        return np.inf
    return max((difference(x, y, rounding) for x, y in zip(mine, others, strict=True)), default=0.0)


def check(folder: Path, test: str, backend: str, outputs: list, rounding: float | None) -> None:
    """Keeps the outputs in a folder that all of pytest's processes share, and compares with the backends already there.

    :raises AssertionError: if a backend computed something else.
    """
    place = folder / hashlib.sha256(key(test, backend).encode()).hexdigest()[:32]
    place.mkdir(parents=True, exist_ok=True)
    # Written first and read then: of two processes at the same test one at least sees the other's file.
    whole = place / f".{backend}.{os.getpid()}"
    whole.write_bytes(pickle.dumps(outputs))
    whole.replace(place / backend)
    for other in place.iterdir():
        if other.name != backend and not other.name.startswith("."):
            apart = worst(outputs, pickle.loads(other.read_bytes()), rounding)
            assert apart <= 1, f"{backend} and {other.name} differ by {apart:.3g} of what rounding explains"
