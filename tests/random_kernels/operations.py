"""The operations of the generator: each gives a value of a shape and kind, or ``None`` where it cannot."""

from __future__ import annotations

import math

from .kinds import DTYPES, KINDS, LARGEST, is_float, whole
from .memory import Memory
from .program import Value


class Operations(Memory):
    """What is not in memory. ``depth`` is how far the operands may be computed, too."""

    WEIGHTS = (8, 12, 6, 8, 6, 4, 6, 9, 6, 4, 3, 3, 2, 6, 4, 3, 2, 2, 2)
    NAMES = (
        "unary binary select cast broadcast outer reduction scan product reshape permute split join interleave loop branch "
        "gather flip rare"
    ).split()

    # Elementwise.

    def unary(self, shape, kind, depth):
        if kind == "b":
            x = self.make(shape, "b", depth)
            return self.let(f"~{x.name}", shape, kind)
        if is_float(kind):
            x = self.make(shape, kind, depth, whole(kind) // 3)
            forms = [
                ("-{0}", 1, False),
                ("tl.abs({0})", 1, True),
                ("{0} * 3", 3, False),
                ("{0} + {0}", 2, False),
            ]
            if kind in ("f16", "f32") and x.bound <= 8:
                forms.append((f"{{0}}.to(tl.float8e5).to(tl.{DTYPES[kind]})", 1, False))
            form, times, positive = self.rng.choice(forms)
            return self.let(form.format(x.name), shape, kind, x.bound * times, positive)
        x = self.make(shape, kind, depth)
        forms = [
            "{0} * 5",
            "{0} + 3",
            "~{0}",
            "{0} << 2",
            "{0} >> 1",
            "{0} // 3",
            "{0} % 7",
            "{0} ^ 5",
            "-{0}",
        ]
        if kind[0] == "i":
            forms.append("tl.abs({0})")
        return self.let(self.rng.choice(forms).format(x.name), shape, kind)

    def operand_shape(self, shape):
        """A shape that broadcasts to this one."""
        if len(shape) < 2 or self.chance(0.5):
            return shape
        return tuple(1 if self.chance(0.4) else s for s in shape)

    def binary(self, shape, kind, depth):
        x = self.make(shape, kind, depth, math.isqrt(whole(kind)) if is_float(kind) else None)
        y = self.make(
            self.operand_shape(shape), kind, depth, math.isqrt(whole(kind)) if is_float(kind) else None
        )
        x, y = (x, y) if self.chance(0.5) else (y, x)
        if kind == "b":
            form = self.rng.choice(
                ["{0} & {1}", "{0} | {1}", "{0} ^ {1}", "{0} < {1}", "{0} == {1}", "{0} >= {1}"]
            )
            return self.let(form.format(x.name, y.name), shape, kind)
        if is_float(kind):
            form, bound = self.rng.choice(
                [
                    ("{0} + {1}", x.bound + y.bound),
                    ("{0} - {1}", x.bound + y.bound),
                    ("{0} * {1}", x.bound * y.bound),
                    # Of bfloat16 they give float32.
                    (f"tl.maximum({{0}}, {{1}}).to(tl.{DTYPES[kind]})", max(x.bound, y.bound)),
                    (f"tl.minimum({{0}}, {{1}}).to(tl.{DTYPES[kind]})", max(x.bound, y.bound)),
                ]
            )
            return self.let(form.format(x.name, y.name), shape, kind, min(bound, whole(kind)))
        forms = "{0} + {1};{0} - {1};{0} * {1};{0} & {1};{0} | {1};{0} ^ {1};tl.maximum({0}, {1});tl.minimum({0}, {1})"
        return self.let(self.rng.choice(forms.split(";")).format(x.name, y.name), shape, kind)

    def comparison(self, shape, depth):
        """A boolean from two numbers."""
        kind = self.rng.choice(["i32", "f32", "f16", "u8", "i64", "u32"])
        x, y = self.make(shape, kind, depth), self.make(self.operand_shape(shape), kind, depth)
        sign = self.rng.choice(["<", "<=", ">", ">=", "==", "!="])
        return self.let(f"{x.name} {sign} {y.name}", shape, "b")

    def select(self, shape, kind, depth):
        condition = self.comparison(shape, depth - 1)
        x, y = self.make(shape, kind, depth), self.make(shape, kind, depth - 1)
        return self.let(f"tl.where({condition.name}, {x.name}, {y.name})", shape, kind, max(x.bound, y.bound))

    def cast(self, shape, kind, depth):
        if kind == "b":
            return self.comparison(shape, depth)
        return self.convert(self.make(shape, self.rng.choice(KINDS), depth), kind)

    # Shapes.

    def broadcast(self, shape, kind, depth):
        """A row, a column or a number in every place."""
        if not shape:
            return None
        kept = [d for d in range(len(shape)) if self.chance(0.5)]
        how = self.rng.randrange(3)
        if how == 0 and len(kept) == 1 and len(shape) > 1:
            x = self.make((shape[kept[0]],), kind, depth)
            index = ", ".join(":" if d == kept[0] else "None" for d in range(len(shape)))
            zeros = f"tl.zeros({list(shape)}, tl.{DTYPES[kind]})"
            if kind == "b" or self.chance(0.5):
                return self.let(f"tl.broadcast_to({x.name}[{index}], {list(shape)})", shape, kind, x.bound)
            return self.let(f"{zeros} + {x.name}[{index}]", shape, kind, x.bound)
        if how == 1 and kind != "b":
            x = self.make((), kind, depth)
            return self.let(f"tl.full({list(shape)}, {x.name}, tl.{DTYPES[kind]})", shape, kind, x.bound)
        x = self.make(tuple(s if d in kept else 1 for d, s in enumerate(shape)), kind, depth)
        return self.let(f"tl.broadcast_to({x.name}, {list(shape)})", shape, kind, x.bound)

    def outer(self, shape, kind, depth):
        """A column with a row."""
        if len(shape) != 2 or kind == "b":
            return None
        limit = math.isqrt(whole(kind)) if is_float(kind) else None
        x, y = self.make(shape[:1], kind, depth, limit), self.make(shape[1:], kind, depth, limit)
        sign, bound = self.rng.choice(
            [("*", x.bound * y.bound), ("+", x.bound + y.bound), ("-", x.bound + y.bound)]
        )
        if sign == "-" and kind[0] == "u":
            bound = whole(kind)  # below zero it begins from above
        return self.let(f"{x.name}[:, None] {sign} {y.name}[None, :]", shape, kind, min(bound, whole(kind)))

    def factors(self, n: int):
        """A shape of so many elements."""
        shape = []
        while len(shape) < 2 and self.chance(0.7):
            f = self.rng.choice([f for f in range(1, min(n, 128) + 1) if n % f == 0])
            shape.append(f)
            n //= f
        return (*shape, n)

    def reshape(self, shape, kind, depth):
        if not shape:
            return None
        x = self.make(self.factors(math.prod(shape)), kind, depth)
        if len(shape) == 1 and self.chance(0.3):
            return self.let(f"tl.ravel({x.name})", shape, kind, x.bound)
        return self.let(f"tl.reshape({x.name}, {list(shape)})", shape, kind, x.bound)

    def permute(self, shape, kind, depth):
        if len(shape) < 2:
            return None
        order = self.rng.sample(range(len(shape)), len(shape))
        x = self.make(tuple(shape[order.index(d)] for d in range(len(shape))), kind, depth)
        form = f"tl.permute({x.name}, {tuple(order)})"
        if len(shape) == 2 and order == [1, 0]:
            form = self.rng.choice([form, f"tl.trans({x.name})", f"{x.name}.T"])
        return self.let(form, shape, kind, x.bound)

    def split(self, shape, kind, depth):
        if not shape or len(shape) > 2 or 2 * math.prod(shape) > LARGEST:
            return None
        x = self.make((*shape, 2), kind, depth)
        name, other = self.new(), self.new()
        self.emit(f"{name}, {other} = tl.split({x.name})")

        for n in (other, name):
            value = self.keep(Value(n, tuple(shape), kind, x.bound, x.positive))
        return value

    def join(self, shape, kind, depth):
        if len(shape) < 2 or shape[-1] != 2:
            return None
        x, y = self.make(shape[:-1], kind, depth), self.make(shape[:-1], kind, depth)
        return self.let(f"tl.join({x.name}, {y.name})", shape, kind, max(x.bound, y.bound))

    def interleave(self, shape, kind, depth):
        if not shape or shape[-1] % 2:
            return None
        half = (*shape[:-1], shape[-1] // 2)
        x, y = self.make(half, kind, depth), self.make(half, kind, depth)
        return self.let(f"tl.interleave({x.name}, {y.name})", shape, kind, max(x.bound, y.bound))

    def flip(self, shape, kind, depth):
        if not shape:
            return None
        # A power of two is what the library asks for.
        dims = [d for d, s in enumerate(shape) if s & (s - 1) == 0 and s > 1]
        if not dims:
            return None
        x = self.make(shape, kind, depth)
        return self.let(f"tl.flip({x.name}, {self.rng.choice(dims)})", shape, kind, x.bound)

    def gather(self, shape, kind, depth):
        if not shape or len(shape) > 2 or kind == "b":
            return None
        axis = self.rng.randrange(len(shape))
        long = self.rng.choice([shape[axis], 4, 16, 32])
        source = tuple(long if d == axis else s for d, s in enumerate(shape))
        if math.prod(source) > LARGEST:
            return None
        x, index = self.make(source, kind, depth), self.make(shape, "i32", depth - 1)
        return self.let(
            f"tl.gather({x.name}, ({index.name} & 127) % {long}, axis={axis})", shape, kind, x.bound
        )

    # Along an axis.

    def stretched(self, shape):
        """The shape with one dimension more, and which."""
        room = LARGEST // max(math.prod(shape), 1)
        longs = [n for n in (2, 3, 4, 5, 8, 12, 16, 24, 32, 48, 64, 96, 128) if n <= room]
        if not longs or len(shape) > 2:
            return None, None, None
        axis, n = self.rng.randrange(len(shape) + 1), self.rng.choice(longs)
        return (*shape[:axis], n, *shape[axis:]), axis, n

    def reduction(self, shape, kind, depth):
        full, axis, n = self.stretched(shape)
        if full is None:
            return None
        to = f".to(tl.{DTYPES[kind]})"
        how = self.rng.choice("sum sum max min function pair index xor".split())
        if not shape and self.chance(0.5):
            how = self.rng.choice(["all", "cat"])
        if how == "index" and kind == "i32":
            x = self.make(full, self.rng.choice(["f32", "i32", "u8", "f16", "i64"]), depth)
            f = self.rng.choice(["argmax", "argmin"])
            return self.let(f"tl.{f}({x.name}, axis={axis})", shape, kind, n, True)
        if how == "xor" and kind[0] in "iu":
            x = self.make(full, kind, depth)
            return self.let(f"tl.xor_sum({x.name}, axis={axis}){to}", shape, kind)
        if how == "pair" and kind[0] in "iu":
            other = self.rng.choice(["f32", "i32", "u16", "f64"])
            x = self.make(full, other, depth)
            along = f"tl.arange(0, {n})" + self.index(len(full), axis)
            i = self.let(f"(tl.zeros({list(full)}, tl.{DTYPES[kind]}) + {along}){to}", full, kind, n, True)
            names = self.new(), self.new()
            self.emit(f"{names[0]}, {names[1]} = tl.reduce(({x.name}, {i.name}), {axis}, best)")
            self.keep(Value(names[0], tuple(shape), other, x.bound))
            return self.keep(Value(names[1], tuple(shape), kind, whole(kind)))
        if how == "all" and len(shape) == 0 and kind != "b":
            full = self.factors(self.rng.choice([32, 64, 96, 128, 480, 512]))
            n, axis = math.prod(full), None
        if how == "function":
            x = self.make(full, kind, depth)
            f = (
                "largest"
                if is_float(kind)
                else self.rng.choice(["largest", "both", "either", "total", "product"])
            )
            if kind == "b":
                f = self.rng.choice(["both", "either"])
            return self.let(
                f"tl.reduce({x.name}, {axis}, {f})", shape, kind, x.bound if is_float(kind) else None
            )
        if how == "cat" and kind in ("i32", "i64", "u32", "f32") and shape == ():
            half = self.make((n,), kind, depth, whole(kind) // (4 * n) if is_float(kind) else None)
            other = self.make((n,), kind, depth - 1, whole(kind) // (4 * n) if is_float(kind) else None)
            # The order of what `cat` gives is open; a sum's is, too.
            both = f"tl.cat({half.name}, {other.name}, can_reorder=True)"
            return self.let(
                f"tl.sum({both}, axis=0){to}",
                shape,
                kind,
                2 * n * whole("f32") // (4 * n) if is_float(kind) else None,
            )
        f = how if how in ("max", "min") else "sum"
        if f == "sum":
            if kind == "b":
                return None
            if is_float(kind) and whole(kind) < n:
                f = "max"
        keep = self.chance(0.2)
        x = self.make(full, kind, depth, whole(kind) // n if is_float(kind) and f == "sum" else None)
        bound = x.bound * (n if f == "sum" else 1)
        name = f"tl.{f}({x.name}, axis={axis}{', keep_dims=True' if keep else ''})"
        if keep:
            name = f"tl.reshape({name}, {list(shape)})" if shape else f"tl.max(tl.ravel({name}), axis=0)"
        return self.let(name + to, shape, kind, min(bound, whole(kind)) if is_float(kind) else None)

    def index(self, rank: int, dim: int) -> str:
        """The brackets that put a vector along a dimension."""
        if rank == 1:
            return ""
        return "[" + ", ".join(":" if d == dim else "None" for d in range(rank)) + "]"

    def scan(self, shape, kind, depth):
        if not shape or (kind == "b" and self.chance(0.5)):
            return None
        axis = self.rng.randrange(len(shape))
        reverse = self.rng.choice(["", ", reverse=True"])
        to = f".to(tl.{DTYPES[kind]})"
        integer = kind[0] in "iu"
        how = self.rng.choice("sum sum single single linear segment matrices best".split())
        if how == "sum" and kind != "b":
            n = shape[axis]
            if is_float(kind) and whole(kind) < n:
                return None
            x = self.make(shape, kind, depth, whole(kind) // n if is_float(kind) else None)
            return self.let(
                f"tl.cumsum({x.name}, axis={axis}{reverse}){to}",
                shape,
                kind,
                x.bound * n if is_float(kind) else None,
            )
        if how == "linear" and integer:
            values = [self.make(shape, kind, depth), self.make(shape, kind, depth)]
            bounds = [whole(kind)] * 2
        elif how == "matrices" and kind in ("i32", "u32", "i64"):
            values = [self.make(shape, kind, depth - d) for d in range(4)]
            bounds = [whole(kind)] * 4
        elif how == "segment" and kind != "b":
            limit = whole(kind) // shape[axis] if is_float(kind) else None
            if limit == 0:
                return None
            values = [self.make(shape, "i32", depth, 1), self.make(shape, kind, depth, limit)]
            bounds = [1, values[1].bound * shape[axis] if is_float(kind) else whole(kind)]
        elif how == "best" and kind != "b":
            values = [self.make(shape, kind, depth), self.make(shape, "i32", depth)]
            bounds = [values[0].bound, values[1].bound]
        else:
            x = self.make(shape, kind, depth)
            names = (
                ["first", "last", "largest"]
                if is_float(kind)
                else ["first", "last", "both", "total", "product"]
            )
            f = self.rng.choice(names if kind != "b" else ["first", "last", "both", "either"])
            bound = x.bound if f in ("first", "last", "largest") else None
            return self.let(f"tl.associative_scan({x.name}, {axis}, {f}{reverse})", shape, kind, bound)
        names = [self.new() for _ in values]
        given = ", ".join(v.name for v in values)
        self.emit(f"{', '.join(names)} = tl.associative_scan(({given}), {axis}, {how}{reverse})")
        results = [
            self.keep(Value(n, tuple(shape), v.kind, b))
            for n, v, b in zip(names, values, bounds, strict=True)
        ]
        return self.rng.choice([r for r in results if r.kind == kind])

    # Dots.

    def product(self, shape, kind, depth):
        if (
            len(shape) not in (2, 3)
            or min(shape[-2:]) < 16
            or max(shape[-2:]) > 128
            or kind not in ("f32", "i32", "f16")
        ):
            return None
        batch, (m, n) = shape[:-2], shape[-2:]
        if len(shape) == 3 and shape[0] > 4:
            return None
        k = self.rng.choice([16, 32, 32, 48, 64, 64, 128])
        if max(m, n) * k * math.prod(batch) > 2 * LARGEST:
            k = 16
        operands, precision = self.rng.choice(
            [("i8", "")]
            if kind == "i32"
            else [("f16", "")]
            if kind == "f16"
            else [("f16", ""), ("f16", ""), ("bf16", ""), ("f32", ", input_precision='ieee'"), ("f32", "")]
        )
        # tf32 has the integers of f16. Half of the room is for an accumulator.
        limit = (
            min(max(math.isqrt(whole(kind) // (2 * k)), 1), 256, whole(operands)) if is_float(kind) else None
        )
        if is_float(kind) and limit * limit * k * 2 > whole(kind):
            return None
        a = self.make((*batch, m, k), operands, depth, limit)
        b = self.make((*batch, k, n), operands, depth, limit)
        out = {"f32": "", "i32": "", "f16": ", out_dtype=tl.float16"}[kind]
        room = whole(kind) - a.bound * b.bound * k if is_float(kind) else None
        bound = whole(kind)
        how = self.rng.choice(["none", "none", "add", "acc", "constant"])
        dot = f"tl.dot({a.name}, {b.name}{precision}{out})"
        if how == "none":
            return self.let(dot, shape, kind, a.bound * b.bound * k if is_float(kind) else None)
        if how == "constant":
            fill = self.rng.choice([0, 1, 3])
            if self.chance(0.5):
                return self.let(f"{dot} + {fill}", shape, kind, bound)
            acc = f"tl.full({list(shape)}, {fill}, tl.{DTYPES[kind]})"
        else:
            acc = self.make(shape, kind, depth, room).name
            if how == "add":
                return self.let(f"{dot} + {acc}", shape, kind, bound)
        return self.let(f"tl.dot({a.name}, {b.name}, {acc}{precision}{out})", shape, kind, bound)

    # Control.

    def condition(self) -> str:
        """A number of the run, compared."""
        how = self.rng.randrange(4)
        if how == 0:
            return f"tl.program_id(0) {self.rng.choice(['==', '!=', '>'])} {self.rng.randrange(2)}"
        if how == 1 and self.loops:
            return f"{self.loops[-1][0]} {self.rng.choice(['==', '>', '<'])} {self.rng.randrange(3)}"
        scalars = self.values(lambda v: v.shape == ())
        if how == 2 and scalars:
            x = self.rng.choice(scalars)
            return x.name if x.kind == "b" else f"{x.name} {self.rng.choice(['>', '<=', '=='])} 1"
        return f"{self.argument('n', 'int', high=self.rng.randrange(4))} > {self.rng.randrange(3)}"

    def branch(self, shape, kind, depth):

        condition, name = self.condition(), self.new()
        bounds = []
        if self.chance(0.4):
            start = self.make(shape, kind, depth)
            self.emit(f"{name} = {start.name}")
            bounds.append(start.bound)
            heads = [f"if {condition}:"]
        else:
            heads = [f"if {condition}:", "else:"]
        for head in heads:
            with self.below(head):
                x = self.make(shape, kind, depth)
                self.emit(f"{name} = {x.name}")
                bounds.append(x.bound)
        return self.keep(Value(name, tuple(shape), kind, max(bounds)))

    def loop(self, shape, kind, depth):
        """A loop that carries the value and, maybe, others."""
        if len(self.loops) > 1:
            return None
        trips = self.rng.choice([0, 1, 2, 3, 3, 4, 5])
        carried = [(tuple(shape), kind)]
        while self.chance(0.3) and len(carried) < 3:
            carried.append((self.shape() if self.chance(0.5) else tuple(shape), self.rng.choice(KINDS)))
        accumulators = []
        for s, k in carried:
            step = whole(k) // (4 * (trips + 1)) if is_float(k) else whole(k)
            name = self.new()
            if self.chance(0.5) and k != "b" and s:
                fill = self.rng.choice([0, 0, 1, 2])
                self.emit(f"{name} = tl.full({list(s)}, {fill}, tl.{DTYPES[k]})")
            else:
                self.emit(f"{name} = {self.make(s, k, depth - 1, step).name}")
            accumulators.append((Value(name, s, k, step * (trips + 1) if is_float(k) else whole(k)), step))
        start, pace = self.rng.choice([(0, 1), (0, 1), (0, 1), (1, 1), (0, 2), (2, 3)])
        i, end = self.new(), start + trips * pace - self.rng.randrange(pace) * (trips > 0)
        bounds = f"{self.number(end)}" if (start, pace) == (0, 1) else f"{start}, {self.number(end)}, {pace}"
        form = self.rng.choice(["range", "range", "stages", "static", "while", "flags"])
        if form == "static" and trips <= 3 and "n" not in bounds:
            head = f"for {i} in tl.static_range({bounds}):"
        elif form == "stages":
            head = f"for {i} in tl.range({bounds}, num_stages={self.rng.randrange(1, 5)}):"
        elif form == "flags":
            flag = self.rng.choice(["flatten=True", "warp_specialize=True", "loop_unroll_factor=2"])
            head = f"for {i} in tl.range({bounds}, {flag}):"
        elif form == "while" and (start, pace) == (0, 1):
            self.emit(f"{i} = 0")
            head = f"while {i} < {bounds}:"
        else:
            head, form = f"for {i} in range({bounds}):", "range"
        with self.below(head):
            self.loops.append((i, start + max(trips, 1) * pace))
            self.scopes[-1] += [a for a, _ in accumulators]
            for a, step in accumulators:
                self.update(a, step, depth)
            if head.startswith("while"):
                self.emit(f"{i} += 1")
            self.loops.pop()
        for a, _ in accumulators[::-1]:
            value = self.keep(a)
        return value

    def update(self, a, step: int, depth: int):
        """What an iteration does to what the loop carries."""
        if len(a.shape) == 2 and a.kind in ("f32", "i32") and min(a.shape) >= 16 and self.chance(0.7):
            m, n, k = *a.shape, self.rng.choice([16, 32, 64])
            operands = "i8" if a.kind == "i32" else self.rng.choice(["f16", "f16", "bf16"])
            limit = min(math.isqrt(step // k), 64) if is_float(a.kind) else None
            if max(m, n) <= 128 and limit != 0:
                # Mostly what is loaded, as in a product of matrices.
                x, y = (
                    self.make((m, k), operands, depth - 1, limit),
                    self.make((k, n), operands, depth - 2, limit),
                )
                form = self.rng.choice(["{0} += tl.dot({1}, {2})", "{0} = tl.dot({1}, {2}, {0})"])
                self.emit(form.format(a.name, x.name, y.name))
                return
        x = self.make(a.shape, a.kind, depth - 1, step if is_float(a.kind) else None)
        if a.kind == "b":
            forms = ["{0} = {0} ^ {1}", "{0} = {0} | {1}", "{0} = {1}"]
        elif is_float(a.kind):
            forms = ["{0} += {1}", "{0} = {0} - {1}", "{0} = tl.maximum({0}, {1}).to({0}.dtype)", "{0} = {1}"]
        else:
            forms = ["{0} += {1}", "{0} = {0} * 3 + {1}", "{0} = {0} ^ {1}", "{0} = {1}"]
        self.emit(self.rng.choice(forms).format(a.name, x.name))

    def rare(self, shape, kind, depth):
        """Sorted values, the largest ones, histograms, old values of atomics."""
        how = self.rng.choice(["sort", "histogram", "atomic", "atomic", "bits"])
        n = math.prod(shape)
        power = bool(shape) and n & (n - 1) == 0
        if how == "sort" and power and shape[-1] <= 32 and kind != "b" and n <= 512:
            x = self.make(shape, kind, depth)
            order = self.rng.choice(["", ", descending=True"])
            return self.let(f"tl.sort({x.name}{order})", shape, kind, x.bound)
        if how == "histogram" and power and 2 <= n <= 128 and kind[0] in "iu":
            x = self.make((self.rng.choice([32, 64, 96, 256]),), "i32", depth)
            counts = f"tl.reshape(tl.histogram({x.name} & {n - 1}, {n}), {list(shape)})"
            return self.let(f"{counts}.to(tl.{DTYPES[kind]})", shape, kind)
        if how == "atomic" and kind in ("f32", "i32", "u32", "i64") and shape and not self.loops:
            x = self.make(shape, kind, depth)
            f = (
                "add"
                if is_float(kind)
                else self.rng.choice(["add", "max", "min", "xor", "and", "or", "xchg"])
            )
            return self.atomic(f, x)
        if how == "bits" and kind in ("i16", "i32", "u32", "i64", "u64"):
            x = self.make(shape, {"u": "i", "i": "u"}[kind[0]] + kind[1:], depth)
            return self.let(f"{x.name}.to(tl.{DTYPES[kind]}, bitcast=True)", shape, kind)
        return None
