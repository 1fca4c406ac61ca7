"""Makes a random kernel from a seed.

The generator works backwards: asked for a tensor of a shape and a kind, it chooses an operation that gives one, and asks
for the operands. Beside each value it knows a bound of its magnitude. Floats only ever hold integers that their format holds
exactly, and are cut where they could grow beyond it, so that every order of a sum gives the same bits. Integers may wrap.
"""

from __future__ import annotations

import math
import random
from contextlib import contextmanager

from .kinds import BITS, DTYPES, KINDS, LARGEST, is_float, whole
from .operations import Operations
from .program import Argument, Node, Program, Value

SIZES = [1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64, 128, 3, 5, 6, 7, 12, 20, 24, 48, 80, 96]


class Generator(Operations):
    """Makes one kernel; :meth:`program` is it."""

    def __init__(self, seed: int, target: int | None = None):
        self.seed = seed
        self.rng = random.Random(seed)
        self.arguments: list[Argument] = []
        self.scopes: list[list[Value]] = [[]]
        self.blocks: list[list[Node]] = [[]]
        self.loops: list[tuple[str, int]] = []  # variables with one more than their largest value
        self.count = 0
        self.budget = 40
        chosen = self.rng.choice([80, 90, 90])
        self.target = target or chosen
        self.grid = self.rng.choice([1, 1, 1, 2, 3])
        self.options = {
            "num_warps": self.rng.choice([1, 2, 4, 4, 8]),
            "num_stages": self.rng.choice([1, 2, 3, 4]),
            "num_ctas": self.rng.choice([1, 1, 1, 1, 2, 4]) if self.target >= 90 else 1,
        }

    def program(self) -> Program:
        for _ in range(self.rng.choice([1, 1, 2, 2, 3])):
            self.budget = 25
            kind = self.rng.choice(KINDS)
            if self.rng.random() < 0.35:
                value = self.product(self.tile(), self.rng.choice(["f32", "f32", "f32", "i32", "f16"]), 3)
            else:
                value = self.make(self.shape(), kind, self.rng.choice([2, 3, 3, 4]))
            self.store(value)
        for value in self.rng.sample(self.scopes[0], min(2, len(self.scopes[0]))):
            self.store(value)
        return Program(
            self.seed, tuple(self.blocks[0]), tuple(self.arguments), self.grid, self.target, self.options
        )

    # What is written.

    def emit(self, text: str) -> None:
        self.blocks[-1].append(Node(text))

    def new(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def let(self, expression: str, shape, kind: str, bound: int | None = None, positive=False) -> Value:
        """A new variable."""
        name = self.new()
        value = Value(
            name, tuple(shape), kind, bound or whole(kind), positive or (kind == "b" or kind[0] == "u")
        )
        self.blocks[-1].append(Node(f"{name} = {expression}", gives=value))
        return self.keep(value)

    def keep(self, value: Value) -> Value:
        self.scopes[-1].append(value)
        return value

    @contextmanager
    def below(self, head: str):
        """What is emitted meanwhile stands below the line ``head``; its variables are unknown afterwards."""
        self.blocks.append([])
        self.scopes.append([])
        yield
        self.scopes.pop()
        body = self.blocks.pop()
        self.blocks[-1].append(Node(head, tuple(body)))

    def argument(self, prefix: str, kind: str, **more) -> str:
        name = f"{prefix}{len(self.arguments)}"
        self.arguments.append(Argument(name, kind, **more))
        return name

    def number(self, value: int) -> str:
        """A number that the kernel knows, or one that it is told at run time."""
        if self.rng.random() < 0.5:
            return str(value)
        for a in self.arguments:
            if a.kind == "int" and a.high == value:
                return a.name
        return self.argument("n", "int", high=value)

    # Shapes and values.

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def shape(self) -> tuple[int, ...]:
        while True:
            shape = tuple(self.rng.choice(SIZES) for _ in range(self.rng.choice([1, 2, 2, 2, 3])))
            if 2 <= math.prod(shape) <= 1024:
                return shape

    def tile(self) -> tuple[int, int]:
        """The shape of a matrix that a dot may give."""
        while True:
            m = self.rng.choice([16, 16, 32, 48, 64, 64, 64, 128])
            n = self.rng.choice([16, 16, 32, 32, 48, 64, 64, 128])
            if m * n <= LARGEST:
                return m, n

    def values(self, accept):
        return [v for scope in self.scopes for v in scope if accept(v)]

    def make(self, shape, kind: str, depth: int, limit: int | None = None) -> Value:
        """A value of a shape and kind whose magnitude is at most ``limit``."""
        shape = tuple(shape)
        limit = min(limit or whole(kind), whole(kind))
        self.budget -= 1
        known = self.values(lambda v: v.shape == shape and (v.kind == kind or v.shape))
        if known and self.chance(0.3 if depth > 0 else 0.5):
            # The latest are the most interesting ones.
            return self.narrow(self.convert(self.rng.choice(known[-6:]), kind), limit)
        if depth > 0 and self.budget > 0:
            for _ in range(6):
                operation = self.rng.choices(self.NAMES, self.WEIGHTS)[0]
                value = getattr(self, operation)(shape, kind, depth - 1)
                if value is not None:
                    assert value.shape == shape and value.kind == kind, (operation, value, shape, kind)
                    return self.narrow(value, limit)
        return self.narrow(self.leaf(shape, kind, limit), limit)

    def narrow(self, value: Value, limit: int) -> Value:
        """The value, cut so that it is at most ``limit``, a number of at least 1."""
        if value.bound <= limit:
            return value
        kind, name = value.kind, value.name
        if is_float(kind):
            n = float(limit)
            to = f".to(tl.{DTYPES[kind]})"  # against a number `minimum` and `clamp` give float32
            forms = [
                f"tl.clamp({name}, {-n}, {n}){to}",
                f"tl.minimum(tl.maximum({name}, {-n}), {n}){to}",
                f"tl.where(tl.abs({name}) <= {n}, {name}, 1.0)",
            ]
            if kind != "f64" and limit < 2**20:
                mask = 2 ** (limit + 1).bit_length() // 2 - 1
                forms.append(f"({name}.to(tl.int32) & {mask}){to}")
            return self.let(self.rng.choice(forms), value.shape, kind, limit)
        mask = 2 ** (limit + 1).bit_length() // 2 - 1
        forms = [f"{name} & {mask}"]
        if limit + 1 < 2 ** (BITS[kind] - 1):
            forms.append(f"{name} % {limit + 1}")
        positive = kind[0] == "u"
        expression = self.rng.choice(forms)
        return self.let(expression, value.shape, kind, limit, positive or "&" in expression)

    def convert(self, value: Value, kind: str) -> Value:
        """The value in another kind."""
        if value.kind == kind:
            return value
        to = f".to(tl.{DTYPES[kind]})"
        if kind == "b":
            form = self.rng.choice(["{0} != 0", "{0} > 1", "{0} <= 2"])
            if value.kind == "b":
                form = "{0}"
            return self.let(form.format(value.name), value.shape, kind)
        if is_float(kind):
            value = self.narrow(value, whole(kind))
            return self.let(value.name + to, value.shape, kind, value.bound, value.positive)
        if is_float(value.kind):
            value = self.narrow(value, min(2 ** (BITS[kind] - 1) - 1, 2**31 - 1))
            name = value.name if kind[0] == "i" or value.positive else f"tl.abs({value.name})"
            return self.let(name + to, value.shape, kind, value.bound, value.positive)
        fits = value.bound < 2 ** (BITS[kind] - 1) and (value.positive or kind[0] == "i")
        return self.let(
            value.name + to, value.shape, kind, value.bound if fits else None, value.positive and fits
        )
