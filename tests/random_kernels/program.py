"""A kernel as a tree of lines that can be cut, with its arguments and launch options."""

from __future__ import annotations

import re
import textwrap
import zlib
from dataclasses import dataclass, field

import ml_dtypes  # noqa: F401  (NumPy knows bfloat16 by name then)
import numpy as np

from . import special
from .kinds import DTYPES, NUMPY

# Functions that kernels hand to reductions and scans. All are associative; those of reductions are commutative, too.
FUNCTIONS = {
    "first": "def first(a, b):\n    return a",
    "last": "def last(a, b):\n    return b",
    "both": "def both(a, b):\n    return a & b",
    "either": "def either(a, b):\n    return a | b",
    "total": "def total(a, b):\n    return a + b",
    "product": "def product(a, b):\n    return a * b",
    "largest": "def largest(a, b):\n    return tl.maximum(a, b).to(a.dtype)",
    "linear": "def linear(a, b, c, d):\n    return a * c, b * c + d",
    "segment": "def segment(f, x, g, y):\n    return f | g, tl.where(g != 0, y, x + y)",
    "best": (
        "def best(x, i, y, j):\n    left = (x > y) | ((x == y) & (i < j))\n"
        "    return tl.where(left, x, y), tl.where(left, i, j)"
    ),
    "extremes": "def extremes(a, b, c, d):\n    return tl.minimum(a, c), tl.maximum(b, d)",
    "matrices": (
        "def matrices(a, b, c, d, e, f, g, h):\n"
        "    return a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h"
    ),
    "twice_plus": "def twice_plus(x, y):\n    if x.dtype == tl.int1:\n        return x ^ y\n    return x + x + y",
    # Of scalars, for `map_elementwise`.
    "common_divisor": "def common_divisor(a, b):\n    while b != 0:\n        a, b = b, a % b\n    return a",
    "stepped": (
        "def stepped(a, b):\n    if a > b:\n        a = a * 3 + 1\n        for i in range(b & 3):\n            a ^= b * 5\n"
        "    else:\n        a = b - a\n    return a"
    ),
    "sorted_pair": "def sorted_pair(a, b):\n    if a > b:\n        return b, a\n    else:\n        return a, b",
    "packed": (
        "def packed(a0, a1, b0, b1):\n    if a0 > b0:\n        a0 += 7\n    if a1 > b1:\n        a1 += 7\n    return a0 ^ b0, a1 ^ b1"
    ),
    # Real calls.
    "called": "@triton.jit(noinline=True)\ndef called(x, y):\n    return x * 3 + y",
    "called_twice": (
        "@triton.jit(noinline=True)\ndef called_twice(x, y):\n    if tl.program_id(0) == 0:\n        x = x + called(y, x)\n"
        "    return x ^ y, called(x, y)"
    ),
    "called_sum": (
        "@triton.jit(noinline=True)\ndef called_sum(x, n):\n    total = tl.sum(x, axis=0).to(x.dtype)\n"
        "    for i in range(n):\n        total += tl.max(x, axis=0).to(x.dtype)\n    return total"
    ),
    "returns_early": (
        "def returns_early(x, n):\n    if n > 2:\n        return x + 1\n    y = x * 2\n    if n == 1:\n        return y\n"
        "    for i in range(n):\n        y += x\n    return y - 3"
    ),
    "pairs_total": "def pairs_total(a, i, b, j):\n    return a + b, i ^ j",
}


@dataclass(frozen=True)
class Argument:
    """An argument of the kernel: an array of small integers, or one integer.

    ``kind`` is ``int`` for a number, which is ``high``. ``block`` is the shape of a block of a descriptor made by the host.
    With ``special`` its elements are any bits, those at the ends of the format more often.
    """

    name: str
    kind: str
    shape: tuple[int, ...] = ()
    low: int = 0
    high: int = 0
    written: bool = False
    block: tuple[int, ...] | None = None
    special: bool = False

    def values(self, seed: int):
        """The same for a name and a seed, whatever other arguments there are."""
        if self.kind == "int":
            return self.high
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        if self.special:
            return special.values(self.kind, self.shape, rng)
        values = rng.integers(self.low, self.high, self.shape, endpoint=True)
        return values.astype(NUMPY.get(self.kind, DTYPES[self.kind]))


@dataclass(frozen=True)
class Value:
    """A variable of the kernel: no element is larger than ``bound``, and none negative if ``positive``."""

    name: str
    shape: tuple[int, ...]
    kind: str
    bound: int
    positive: bool = False


@dataclass(frozen=True)
class Node:
    """Lines, or a line that ends in a colon with what stands below it."""

    text: str
    body: tuple[Node, ...] | None = None
    #: The only variable that it sets, where a load could set it as well.
    gives: Value | None = None

    def lines(self) -> list[str]:
        below = [] if self.body is None else [line for node in self.body for line in node.lines()] or ["pass"]
        return self.text.split("\n") + ["    " + line for line in below]


@dataclass(frozen=True)
class Program:
    """A kernel and how it is launched."""

    seed: int
    nodes: tuple[Node, ...]
    arguments: tuple[Argument, ...]
    grid: int = 1
    target: int = 90
    options: dict = field(default_factory=dict)

    def body(self) -> str:
        return "\n".join(line for node in self.nodes for line in node.lines()) or "pass"

    def used(self) -> list[Argument]:
        """The arguments that the kernel names."""
        words = set(re.findall(r"\w+", self.body()))
        return [a for a in self.arguments if a.name in words]

    def source(self) -> str:
        """A module with the kernel."""
        body = self.body()
        words = set(re.findall(r"\w+", body))
        for name in reversed(FUNCTIONS):  # one calls those above it
            if name in words:
                words |= set(re.findall(r"\w+", FUNCTIONS[name]))
        texts = [text for name, text in FUNCTIONS.items() if name in words]
        functions = [f"{text}\n" if text.startswith("@") else f"@triton.jit\n{text}\n" for text in texts]
        head = "import tilewright as triton\nimport tilewright.language as tl\n"
        names = ", ".join(a.name for a in self.used())
        kernel = f"@triton.jit\ndef kernel({names}):\n{textwrap.indent(body, '    ')}\n"
        return "\n\n".join([head, *functions, kernel])

    def describe(self) -> str:
        """Everything that is needed to see it fail: arguments, options and source."""
        lines = [f"# seed {self.seed}, sm_{self.target}, grid {self.grid}, {self.options}"]
        for a in self.used():
            of = "any bits" if a.special else f"{a.low} … {a.high}"
            what = a.high if a.kind == "int" else f"{DTYPES[a.kind]}{list(a.shape)} of {of}"
            block = f", a descriptor of blocks {list(a.block)}" if a.block else ""
            lines.append(f"# {a.name}: {what}{block}{', written' if a.written else ''}")
        return "\n".join(lines) + "\n" + self.source()
