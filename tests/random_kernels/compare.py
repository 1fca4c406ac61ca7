"""Runs a program on two backends and compares what it wrote."""

from __future__ import annotations

import itertools
import linecache
import os
import sys
from pathlib import Path

import numpy as np

from .program import Program

try:
    from common import Device
except ImportError:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
    from common import Device

_numbers = itertools.count()


class Different(Exception):
    """Two backends wrote different values."""


def load(program: Program):
    """The kernel, a function of a module that has no file."""
    text, name = program.source(), f"<random kernel {program.seed}.{next(_numbers)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"__name__": name}
    exec(compile(text, name, "exec"), names)
    return names["kernel"], lambda: linecache.cache.pop(name, None)


def run(program: Program, kernel, backend: str) -> dict[str, np.ndarray]:
    """What the kernel writes on a backend, by argument."""
    from tilewright.tools.tensor_descriptor import TensorDescriptor

    device = Device(cuda=backend == "cuda")
    arrays = {a.name: a.values(program.seed) for a in program.used()}
    given = {n: v if isinstance(v, int) else device.array(v) for n, v in arrays.items()}
    blocks = {a.name: a.block for a in program.used() if a.block}
    arguments = [
        TensorDescriptor.from_tensor(v, list(blocks[n])) if n in blocks else v for n, v in given.items()
    ]
    target = "xe:pvc" if backend == "xesim" else f"cuda:{program.target}"
    settings = {"TILEWRIGHT_BACKEND": backend, "TILEWRIGHT_TARGET": target}
    before = {name: os.environ.pop(name, None) for name in settings}
    try:
        if backend != "cuda":
            os.environ.update(settings)
        kernel[(program.grid,)](*arguments, **program.options)
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
    return {a.name: device.numpy(given[a.name]) for a in program.used() if a.written}


def check(program: Program, backend: str) -> None:
    """Runs on the CPU executor and on a backend.

    :raises Different: they wrote different values. Floats count by value: of two zeros the sign is open, and one NaN is
        like another.
    """
    kernel, forget = load(program)
    try:
        want = run(program, kernel, "interp")
        got = run(program, kernel, backend)
    finally:
        forget()
    for name, expected in want.items():
        found = got[name]
        differs = (found != expected) & ((found == found) | (expected == expected))
        if found.shape != expected.shape or differs.any():
            places = np.argwhere(differs)
            at = tuple(map(int, places[0]))
            raise Different(
                f"{name}: {len(places)} of {expected.size} elements differ, the first at {at}: "
                f"{backend} {found[at]}, interp {expected[at]}"
            )
