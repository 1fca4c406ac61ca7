"""Makes random kernels: loads in any order of dimensions, then operations on what is there, then stores.

A kernel is a list of lines; beside each variable the generator knows its shape and kind, so that every kernel is right
by construction. Values are small integers, so that sums and products are exact and backends agree to the bit.
"""

import math
import textwrap

SIZES = [1, 2, 4, 8, 16, 32, 64, 3, 5, 6, 12, 20, 24, 48, 80, 96]
DTYPES = {"f": "float32", "h": "float16", "i": "int32"}


class Kernel:
    """A random kernel. ``inputs`` and ``outputs`` list (name, number of elements, kind)."""

    def __init__(self, rng):
        self.rng = rng
        self.lines, self.inputs, self.outputs = [], [], []
        self.values = []  # (name, shape, kind)
        self.count = 0
        self.load()
        for _ in range(rng.randrange(2, 12)):
            getattr(self, rng.choice(OPERATIONS))()
            self.values = [v for v in self.values if math.prod(v[1]) <= 8192]
        for value in self.values[-4:]:
            self.store(value)

    def source(self) -> str:
        args = ", ".join(name for name, _, _ in self.inputs + self.outputs)
        head = "import tilewright as triton\nimport tilewright.language as tl\n\n\n@triton.jit\n"
        return f"{head}def kernel({args}):\n{textwrap.indent(chr(10).join(self.lines), '    ')}\n"

    def new(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def emit(self, line: str) -> None:
        self.lines.append(line)

    def add(self, expression: str, shape, kind) -> tuple:
        name = self.new()
        self.emit(f"{name} = {expression}")
        self.values.append((name, tuple(shape), kind))
        return self.values[-1]

    def pick(self, accept=lambda v: True):
        found = [v for v in self.values if accept(v)]
        return self.rng.choice(found) if found else None

    def number(self):
        """A value to compute with."""
        return self.pick(lambda v: v[2] != "h") or self.load(kind="f")

    def offsets(self, shape) -> str:
        """Offsets of a dense tensor whose dimensions lie in memory in a random order."""
        order = self.rng.sample(range(len(shape)), len(shape))
        terms, stride = {}, 1
        for d in order:
            index = ", ".join(":" if e == d else "None" for e in range(len(shape)))
            terms[d] = f"tl.arange(0, {shape[d]})[{index}] * {stride}"
            stride *= shape[d]
        return " + ".join(terms[d] for d in range(len(shape)))

    def load(self, shape=None, kind=None, times=1):
        if shape is None:
            shape = (1,)
            while not 2 <= math.prod(shape) <= 4096:
                shape = tuple(self.rng.choice(SIZES) for _ in range(self.rng.choice([1, 2, 2, 2, 3])))
        kind = kind or self.rng.choice("ffhi")
        name, offsets = f"in{len(self.inputs)}", self.offsets(shape)
        self.inputs.append((name, math.prod(shape) * times, kind))
        if times > 1:
            return name, offsets
        mask = ""
        if self.rng.random() < 0.4:
            d = self.rng.randrange(len(shape))
            index = ", ".join(":" if e == d else "None" for e in range(len(shape)))
            limit = self.rng.randrange(1, shape[d] + 1)
            mask = (
                f", mask=(tl.arange(0, {shape[d]})[{index}] < {limit}) & ({offsets} >= 0), other={limit % 2}"
            )
        return self.add(f"tl.load({name} + {offsets}{mask})", shape, kind)

    def store(self, value=None):
        name, shape, kind = value or self.pick()
        pointer = f"out{len(self.outputs)}"
        self.outputs.append((pointer, math.prod(shape), kind))
        self.emit(f"tl.store({pointer} + {self.offsets(shape)}, {name})")

    def unary(self):
        name, shape, kind = self.number()
        form = self.rng.choice(["-{0}", "{0} * 2", "tl.abs({0})", "tl.where({0} > 0, {0}, {0} * 3)"])
        self.add(form.format(name), shape, kind)

    def binary(self):
        name, shape, kind = self.number()

        def fits(v):
            pairs = zip(v[1], shape, strict=False)
            return v[2] == kind and len(v[1]) == len(shape) and all(a == b or 1 in (a, b) for a, b in pairs)

        other = self.pick(fits) or self.load(shape, kind)
        form = self.rng.choice(
            ["{0} + {1}", "{0} - {1}", "tl.maximum({0}, {1})", "tl.where({0} > {1}, {0}, {1})"]
        )
        self.add(form.format(name, other[0]), map(max, shape, other[1]), kind)

    def reduction(self):
        name, shape, kind = self.number()
        axis, f = self.rng.randrange(len(shape)), self.rng.choice(["sum", "max", "min"])
        if self.rng.random() < 0.4:
            result = [1 if d == axis else s for d, s in enumerate(shape)]
            self.add(f"tl.{f}({name}, axis={axis}, keep_dims=True)", result, kind)
        elif len(shape) > 1:
            self.add(f"tl.{f}({name}, axis={axis})", [s for d, s in enumerate(shape) if d != axis], kind)
        else:
            self.add(f"tl.{f}({name}, axis=0) + tl.zeros([4], tl.{DTYPES[kind]})", [4], kind)

    def position(self):
        name, shape, _ = self.number()
        if len(shape) > 1:
            axis = self.rng.randrange(len(shape))
            f = self.rng.choice(["argmax", "argmin"])
            self.add(f"tl.{f}({name}, axis={axis})", [s for d, s in enumerate(shape) if d != axis], "i")

    def scan(self):
        name, shape, kind = self.number()
        how = self.rng.choice(["", ", reverse=True"])
        self.add(f"tl.cumsum({name}, axis={self.rng.randrange(len(shape))}{how})", shape, kind)

    def permute(self):
        name, shape, kind = self.pick()
        order = tuple(self.rng.sample(range(len(shape)), len(shape)))
        if len(shape) > 1:
            self.add(f"tl.permute({name}, {order})", [shape[d] for d in order], kind)

    def reshape(self):
        name, shape, kind = self.pick()
        n = math.prod(shape)
        result = self.rng.choice([[n]] + [[s, n // s] for s in SIZES if n % s == 0])
        self.add(f"tl.reshape({name}, {result})", result, kind)

    def broadcast(self):
        name, shape, kind = self.pick()
        axis, result = self.rng.randrange(len(shape) + 1), list(shape)
        result.insert(axis, self.rng.choice([2, 4, 6, 16]))
        if len(result) <= 3 and math.prod(result) <= 8192:
            self.add(f"tl.broadcast_to(tl.expand_dims({name}, {axis}), {result})", result, kind)

    def pair(self):
        name, shape, kind = self.number()
        if len(shape) > 2 or math.prod(shape) > 2048:
            return
        other = self.pick(lambda v: v[1:] == (shape, kind))
        joined = self.add(f"tl.join({name}, {other[0]})", [*shape, 2], kind)
        if self.rng.random() < 0.5:
            x, y = self.new(), self.new()
            self.emit(f"{x}, {y} = tl.split({joined[0]} * 2)")
            self.values += [(x, shape, kind), (y, shape, kind)]

    def gather(self):
        name, shape, kind = self.number()
        if len(shape) <= 2:
            axis, index = self.rng.randrange(len(shape)), self.load(shape, "i")
            self.add(f"tl.gather({name}, tl.abs({index[0]}) % {shape[axis]}, axis={axis})", shape, kind)

    def dot(self):
        batch = self.rng.choice([(), (), (), (2,), (3,)])
        m, n, k = (self.rng.choice([16, 32, 48, 64]) for _ in range(3))
        a, b = self.load((*batch, m, k), "f"), self.load((*batch, k, n), "f")
        dtype = self.rng.choice(["float16", "float16", "float32"])
        left, right = f"({a[0]} * 0.0625).to(tl.{dtype})", f"{b[0]}.to(tl.{dtype})"
        self.add(f"tl.dot({left}, {right}, input_precision='ieee')", (*batch, m, n), "f")

    def loop(self):
        name, shape, kind = self.number()
        pointer, offsets = self.load(shape, kind, times=3)
        step, result, i = self.load(shape, kind), self.new(), self.new()
        self.emit(f"{result} = {name}")
        self.emit(
            f"for {i} in {self.rng.choice(['range(0, 3)', 'range(0, 3, 2)', 'tl.range(0, 3, num_stages=3)'])}:"
        )
        self.emit(f"    new = tl.load({pointer} + {i} * {math.prod(shape)} + {offsets})")
        self.emit(f"    {result} = tl.maximum({result}, new) + {step[0]}")
        self.values.append((result, shape, kind))

    def branch(self):
        name, shape, kind = self.number()
        result = self.new()
        self.emit(f"if tl.program_id(0) {self.rng.choice(['==', '!='])} 0:\n    {result} = {name} * 3")
        self.emit(f"else:\n    {result} = {name} - 5")
        self.values.append((result, shape, kind))

    def while_loop(self):
        name, shape, kind = self.number()
        result, i = self.new(), self.new()
        self.emit(f"{i} = 0\n{result} = {name}\nwhile {i} < 3:")
        self.emit(f"    {result} = {result} + {name} * {i}\n    {i} += 1")
        self.values.append((result, shape, kind))

    def atomic(self):
        name, shape, kind = self.number()
        pointer = f"out{len(self.outputs)}"
        self.outputs.append((pointer, math.prod(shape), kind))
        f = "add" if kind == "f" else self.rng.choice(["add", "max", "min"])
        self.add(f"tl.atomic_{f}({pointer} + {self.offsets(shape)}, {name})", shape, kind)


OPERATIONS = """
    load unary binary binary reduction reduction position scan permute reshape broadcast pair gather dot loop branch
    while_loop atomic store
""".split()
