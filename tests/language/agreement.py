"""What one test computed on one backend against what it computed on another: bit-equal, or within rounding."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
from pathlib import Path

import numpy as np

# Differences that rounding explains, as a share of the element or, where that is more, of the spread (root mean square) of its row, the last dimension: sums in
# another order, products that tensor cores truncate, approximate functions. Terms that cancel leave small elements in a row that err as its others do. A row of
# less than a tenth of the median row's spread is held to that tenth: it may be what large terms that cancel leave, too.
ROUNDING = {"float64": 2.0**-45, "float32": 2.0**-16, "float16": 2.0**-8, "bfloat16": 2.0**-6}
# fp8: an element may be the next number of its format, whose step is up to a quarter of it.
SMALL, STEP = 2.0**-6, 2.0**-2
# Dots of tf32: the CPU executor rounds their inputs as `cvt.rna` does, tensor cores drop the low bits (docs/numerics.md). A term is off by up to 2^-10, and so is
# the spread of a row of sums; of thousands of elements one is off by three times as much.
TF32 = 2.0**-8


def key(nodeid: str, backend: str) -> str:
    """A test's name without its backend."""
    return re.sub(rf"\[{backend}(-|\])|-{backend}(?=[-\]])", lambda m: "[" if m[1] == "-" else "", nodeid)


def spread(x: np.ndarray) -> np.ndarray:
    """The root mean square of each row's finite elements, and not less than a tenth of the median row's."""
    x = np.atleast_1d(x)
    finite = np.isfinite(x)
    x = np.where(finite, x, 0)
    largest = np.abs(x).max(initial=0.0) or 1.0  # squares would overflow
    squares = ((x / largest) ** 2).sum(-1, keepdims=True)
    rows = largest * np.sqrt(squares / np.maximum(finite.sum(-1, keepdims=True), 1))
    return np.maximum(rows, np.median(rows) / 10) if rows.size else rows


def difference(a: np.ndarray, b: np.ndarray, rounding: float | None = None) -> float:
    """Zero when bit-equal (NaNs are equal); else the largest difference of two elements as a share of what rounding explains."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return np.inf
    if a.tobytes() == b.tobytes():
        return 0.0
    if a.dtype.kind in "iub":
        return np.inf
    x, y = a.astype(np.float64), b.astype(np.float64)
    if not np.array_equal(np.isnan(x), np.isnan(y)):
        return np.inf
    apart = (x != y) & ~np.isnan(x)
    if not np.isfinite(x[apart]).all() or not np.isfinite(y[apart]).all():
        return np.inf
    share = rounding or ROUNDING.get(a.dtype.name, SMALL)
    step = share if a.dtype.name in ROUNDING else STEP
    allowed = np.broadcast_to(np.maximum(step * np.abs(np.nan_to_num(y)), share * spread(y)), y.shape)
    delta, allowed = np.abs(x[apart] - y[apart]), allowed[apart]
    if not allowed.all():
        return np.inf
    return float((delta / allowed).max(initial=0.0))


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
