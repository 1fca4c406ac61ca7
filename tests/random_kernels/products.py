"""Makes random kernels round matrix products: what is accumulated on, where operands come from, what stands between two products.

Where :mod:`generator` makes kernels of every kind, these are dense in what asynchronous products and copies get wrong. Tensors
have two dimensions of a few sizes, so that nearly any may be an operand of a product with any other; loops and branches
update what was there before. Inputs are -1, 0 and 1, and what becomes an operand is clamped to that first: sums are exact.
"""

from __future__ import annotations

import random
from contextlib import contextmanager

from .kinds import BITS, DTYPES
from .program import Argument, Node, Program, Value

# Kinds of operands, and those of the accumulators that go with them.
OPERANDS = {
    "f16": ["f32", "f32", "f16"],
    "bf16": ["f32"],
    "f32": ["f32"],
    "e4m3": ["f32"],
    "e5m2": ["f32"],
    "i8": ["i32"],
}
# As many products are executed, one after the other, that sums of halves stay exact.
EXECUTED = 24
# How much of the inputs may be in shared memory at a time, by a rough count.
BYTES = 64 << 10


class Products:
    """Makes one kernel; :meth:`program` is it."""

    def __init__(self, seed: int, target: int | None = None):
        self.seed, self.target = seed, target or 90
        rng = self.rng = random.Random(seed)
        self.kind = rng.choice(list(OPERANDS))
        self.acc = rng.choice(OPERANDS[self.kind])
        # Not so large that the operands would not fit shared memory together.
        least, most = (32 if BITS[self.kind] == 8 else 16), (64 if self.kind == "f32" else 128)
        rows = rng.choice([64, 64, 64, 64, most])
        columns = [s for s in (16, 32, 64, 64, 96, 128) if least <= s <= (64 if rows == 128 else most)]
        self.sizes = [rows, rng.choice(columns)]
        self.options = {
            "num_warps": rng.choice([4, 4, 4, 8]),
            "num_stages": rng.choice([1, 2, 3, 3, 4]),
            "num_ctas": 1,
        }
        self.arguments = [Argument("two", "int", high=2)]
        self.descriptors: list[Node] = []
        self.blocks: list[list[Node]] = [[]]
        self.known: list[Value] = []
        self.operands: set[str] = set()  # variables that hold nothing but -1, 0 and 1
        self.loops: list[tuple[str, int]] = []  # variables with how many values they have
        self.count = self.executed = self.loaded = 0
        self.trips = 1

    def program(self) -> Program:
        self.statements(self.rng.randrange(2, 7))
        while not self.executed:
            self.product()
        for value in [v for v in self.known if not self.is_operand(v)][-3:]:
            self.store(value)
        nodes = (*self.descriptors, *self.blocks[0])
        return Program(self.seed, nodes, tuple(self.arguments), 1, self.target, self.options)

    # What is written.

    def emit(self, text: str) -> None:
        self.blocks[-1].append(Node(text))

    def new(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def let(self, expression: str, shape, kind: str) -> Value:
        """A new variable."""
        value = Value(self.new(), tuple(shape), kind, 1)
        self.blocks[-1].append(Node(f"{value.name} = {expression}", gives=value))
        self.known.append(value)
        return value

    @contextmanager
    def below(self, head: str):
        """What is emitted meanwhile stands below the line ``head``; its variables are unknown afterwards."""
        known = list(self.known)
        self.blocks.append([])
        yield known
        self.known = known
        body = self.blocks.pop()
        self.blocks[-1].append(Node(head, tuple(body)))

    # Values.

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, accept):
        found = [v for v in self.known if accept(v)]
        # Chains of what is new are what goes wrong.
        return self.rng.choice(found[-4:] if self.chance(0.6) else found) if found else None

    def result(self, shape=None):
        """A result, or what could be one."""
        return self.pick(lambda v: not self.is_operand(v) and shape in (None, v.shape))

    def is_operand(self, value: Value) -> bool:
        return value.name in self.operands

    def offsets(self, shape, transposed: bool) -> str:
        rows, columns = (1, shape[0]) if transposed else (shape[1], 1)
        return f"tl.arange(0, {shape[0]})[:, None] * {rows} + tl.arange(0, {shape[1]})[None, :] * {columns}"

    def tile(self) -> tuple[str, int]:
        """Which tile of an input this iteration reads, and how many there are."""
        at, tiles = "0", 1
        for name, trips in self.loops:
            if self.chance(0.8):
                at, tiles = f"{at} + {name} * {tiles}", tiles * trips
        return at.removeprefix("0 + "), tiles

    def load(self, shape, kind: str) -> Value:
        """A tile of an input: through pointers in either order of dimensions, or through a descriptor."""
        at, tiles = self.tile()
        name, (rows, columns) = f"in{len(self.arguments)}", shape
        self.loaded += rows * columns * BITS[kind] // 8 * self.options["num_stages"]
        how = self.rng.choice(["pointers", "pointers", "turned", "host", "kernel"])
        block = tuple(shape) if how == "host" else None
        self.arguments.append(Argument(name, kind, (tiles * rows, columns), -1, 1, block=block))
        if how in ("host", "kernel"):
            described = name if how == "host" else self.describe(name, (tiles * rows, columns), shape)
            value = self.let(f"{described}.load([({at}) * {rows}, 0])", shape, kind)
        else:
            offsets = self.offsets(shape, how == "turned")
            value = self.let(f"tl.load({name} + ({at}) * {rows * columns} + {offsets})", shape, kind)
        return value

    def describe(self, name: str, shape, block) -> str:
        """A descriptor that the kernel makes."""
        text = f"tl.make_tensor_descriptor({name}, {list(shape)}, [{shape[1]}, 1], {list(block)})"
        self.descriptors.append(Node(f"{name}_desc = {text}"))
        return f"{name}_desc"

    def store(self, value=None) -> None:
        value = value or self.result()
        if value is None:
            return
        name = f"out{len(self.arguments)}"
        how = self.rng.choice(["pointers", "pointers", "pointers", "host", "kernel"])
        block = value.shape if how == "host" else None
        self.arguments.append(Argument(name, value.kind, value.shape, written=True, block=block))
        if how == "pointers":
            self.emit(f"tl.store({name} + {self.offsets(value.shape, False)}, {value.name})")
        else:
            described = name if how == "host" else self.describe(name, value.shape, value.shape)
            self.emit(f"{described}.store([0, 0], {value.name})")

    def clamped(self, name: str, limit: int) -> str:
        n = limit if self.acc == "i32" else float(limit)
        return f"tl.minimum(tl.maximum({name}, {-n}), {n})"

    def narrow(self, expression: str) -> str:
        """A result as an operand."""
        return f"({self.clamped(expression, 1)}).to(tl.{DTYPES[self.kind]})"

    def number(self) -> str:
        """A constant, an argument, or the number of an iteration."""
        return self.rng.choice(["1", "2", "two", *(name for name, _ in self.loops)])

    def changed(self, value: Value) -> str:
        """A result with ordinary arithmetic on it."""
        roll, name = self.rng.random(), value.name
        to = f".to(tl.{DTYPES[self.acc]})"
        if roll < 0.3:
            return name
        if roll < 0.6:
            return f"({name} + {self.number()})"
        if roll < 0.7:
            return f"tl.where({name} > {self.number()}, {name}, 1){to}"
        if roll < 0.8:
            return f"({name} - tl.max({name}, 1)[:, None]){to}"
        if other := self.result(value.shape):
            return f"({name} + {self.clamped(other.name, 3)}){to}"
        return f"(-{name})"

    def operand(self, shape) -> str:
        """An operand of this shape: what is there, what is made of it, or what is loaded."""
        shape, roll = tuple(shape), self.rng.random()
        if roll < 0.35 and (v := self.pick(lambda v: v.shape == shape and self.is_operand(v))):
            return v.name
        if roll < 0.6 and (v := self.result(shape)):
            made = self.narrow(self.changed(v))
            return self.input(made, shape).name if self.chance(0.5) else made
        if roll < 0.7 and (v := self.pick(lambda v: v.shape == shape[::-1])):
            return f"tl.trans({v.name if self.is_operand(v) else self.narrow(v.name)})"
        if self.loaded > BYTES:
            return f"tl.full({list(shape)}, 1, tl.float32).to(tl.{DTYPES[self.kind]})"
        return self.input(None, shape).name

    def input(self, expression, shape) -> Value:
        """A new operand, computed or loaded."""
        value = self.let(expression, shape, self.kind) if expression else self.load(shape, self.kind)
        self.operands.add(value.name)
        return value

    def accumulator(self, shape) -> str:
        roll, dtype = self.rng.random(), DTYPES[self.acc]
        if roll < 0.15:
            return ""
        if roll < 0.3:
            return f", tl.full({list(shape)}, {self.number()}, tl.{dtype})"
        if roll < 0.4:
            return f", tl.zeros({list(shape)}, tl.{dtype})"
        if roll < 0.9 and (v := self.result(tuple(shape))):
            return (
                f", {v.name}" if self.chance(0.7) else f", {self.clamped(self.changed(v), 8)}.to(tl.{dtype})"
            )
        if self.loaded > BYTES:
            return ""
        return f", {self.load(shape, self.acc).name}"

    def dot(self, shape, acc=None) -> str:
        """A product of this shape, on this accumulator."""
        (m, n), k = shape, self.rng.choice(self.sizes)
        a, b = self.operand((m, k)), self.operand((k, n))
        acc = self.accumulator(shape) if acc is None else acc
        how = f", out_dtype=tl.{DTYPES[self.acc]}"
        if self.kind == "f32":
            how += ", input_precision='tf32'"
        if self.kind in ("e4m3", "e5m2") and self.chance(0.2):
            how += f", max_num_imprecise_acc={self.rng.choice([0, k // 2, k])}"
        self.executed += self.trips
        return f"tl.dot({a}, {b}{acc}{how})"

    # Statements.

    def statements(self, count: int) -> None:
        for _ in range(count):
            getattr(self, self.rng.choice(STATEMENTS))()

    def room(self) -> bool:
        return self.executed + self.trips <= EXECUTED

    def shape(self):
        return self.sizes[0], self.rng.choice(self.sizes)

    def product(self) -> None:
        if self.room():
            shape = self.shape()
            product = self.dot(shape)
            self.let(f"{product} + {self.number()}" if self.chance(0.2) else product, shape, self.acc)

    def product_on(self) -> None:
        """A product that takes the place of its accumulator."""
        if self.room() and (v := self.result()):
            product = self.dot(v.shape, f", {v.name}")
            self.emit(f"{v.name} = {product}")

    def arithmetic(self) -> None:
        if v := self.result():
            expression = f"{self.clamped(self.changed(v), 8)}.to(tl.{DTYPES[self.acc]})"
            if self.chance(0.5):
                self.emit(f"{v.name} = {expression}")
            else:
                self.let(expression, v.shape, self.acc)

    def narrowed(self) -> None:
        if v := self.result():
            self.input(self.narrow(self.changed(v)), v.shape)

    def widened(self) -> None:
        """Arithmetic on an operand."""
        if v := self.pick(self.is_operand):
            self.let(f"{v.name}.to(tl.{DTYPES[self.acc]}) * 2", v.shape, self.acc)

    def replaced(self) -> None:
        """Another value for an operand."""
        v = self.pick(self.is_operand)
        if v and (other := self.result(v.shape)):
            self.emit(f"{v.name} = {self.narrow(self.changed(other))}")

    def block(self, head: str, end: str | None = None) -> None:
        """The statements inside a loop or a branch; what they make is theirs, what they change was there before."""
        with self.below(head) as before:
            self.statements(self.rng.randrange(1, 5))
            v = self.pick(lambda v: v in before and not self.is_operand(v))
            if v and self.room() and self.chance(0.6):
                product = self.dot(v.shape, self.rng.choice([f", {v.name}", f", {v.name}", None]))
                self.emit(f"{v.name} = {product}")
            elif v and (other := self.result(v.shape)):
                self.emit(f"{v.name} = {self.clamped(self.changed(other), 8)}.to(tl.{DTYPES[self.acc]})")
            if end:
                self.emit(end)

    def seed_result(self) -> None:
        """Something to update."""
        if not self.result() or self.chance(0.4):
            shape = self.shape()
            form = self.rng.choice(["tl.zeros({0}, tl.{1})", "tl.full({0}, 2, tl.{1})"])
            self.let(form.format(list(shape), DTYPES[self.acc]), shape, self.acc)

    @contextmanager
    def repeated(self, index: str, trips: int):
        self.loops.append((index, max(trips, 1)))
        outer, self.trips = self.trips, self.trips * max(trips, 1)
        yield
        self.trips = outer
        self.loops.pop()

    def loop(self) -> None:
        trips = self.rng.choice([0, 1, 2, 2, 3, 3, 4])
        if len(self.blocks) > 2 or self.trips * trips > 9:
            return
        self.seed_result()
        index = self.new()
        end = f"{trips} * two // 2" if self.chance(0.5) else trips
        how = f", num_stages={self.rng.choice([1, 2, 3, 4])}" if self.chance(0.3) else ""
        if len(self.blocks) == 1 and self.chance(0.2):
            how += ", warp_specialize=True"
        with self.repeated(index, trips):
            self.block(f"for {index} in tl.range(0, {end}{how}):")

    def while_loop(self) -> None:
        if len(self.blocks) > 2 or self.trips > 3:
            return
        self.seed_result()
        index = self.new()
        self.emit(f"{index} = 0")
        with self.repeated(index, 2):
            self.block(f"while {index} < two:", f"{index} += 1")

    def branch(self) -> None:
        if len(self.blocks) > 3:
            return
        self.seed_result()
        conditions = [f"{name} == 1" for name, _ in self.loops] or ["two == 2", "two == 3", "two > 0"]
        self.block(f"if {self.rng.choice(conditions)}:")
        if self.chance(0.5):
            self.block("else:")


STATEMENTS = """
    product product product product product_on product_on arithmetic narrowed widened replaced loop loop loop while_loop branch
    store
""".split()
