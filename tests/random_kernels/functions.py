"""Calls: functions of single elements, real calls, PTX in the kernel, random numbers, and what the library makes of its parts."""

from __future__ import annotations

import math

from .kinds import DTYPES, whole
from .program import Value

# PTX of 32-bit operands that every target has.
ASSEMBLY = (
    "lop3.b32 $0, $1, $2, 7, 0x6a;",
    "prmt.b32 $0, $1, $2, 0x5140;",
    "shf.l.wrap.b32 $0, $1, $2, 11;",
    "min.s32 $0, $1, $2;",
    "mul.hi.u32 $0, $1, $2;",
    "sad.s32 $0, $1, $2, 5;",
    "{ .reg .pred p; setp.lt.u32 p, $1, $2; selp.b32 $0, $1, 9, p; }",
    "{ .reg .b32 t; popc.b32 t, $1; mad.lo.s32 $0, t, $2, 3; }",
)


class Functions:
    """The part of the generator that knows of calls."""

    def mapped(self, shape, kind, depth):
        """A function of single elements, with branches and loops."""
        if kind not in ("i32", "u32", "i64", "i16", "u8") or not shape:
            return None
        x, y = self.make(shape, kind, depth), self.make(shape, kind, depth - 1)
        f = self.rng.choice(["common_divisor", "stepped", "sorted_pair", "packed"])
        if f == "sorted_pair":
            return self.several(f"tl.map_elementwise({f}, {x.name}, {y.name})", shape, [kind, kind])
        if f == "packed":
            if math.prod(shape) % 2:
                return None
            # Which two go together is open.
            return self.let(f"tl.map_elementwise(packed, {x.name}, {y.name}, pack=2)[0]", shape, kind)
        if f == "common_divisor":
            x, y = (self.let(f"({v.name} & 127)", shape, kind, 127, True) for v in (x, y))
        return self.let(f"tl.map_elementwise({f}, {x.name}, {y.name})", shape, kind)

    def several(self, call: str, shape, kinds):
        """A call with several results, of which the first is given."""
        names = [self.new() for _ in kinds]
        self.emit(f"{', '.join(names)} = {call}")
        values = [self.keep(Value(n, tuple(shape), k, whole(k))) for n, k in zip(names, kinds, strict=True)]
        return values[0]

    def called(self, shape, kind, depth):
        """A function that stays one, or that returns from within a branch."""
        if kind[0] not in "iu":
            return None
        to = f".to(tl.{DTYPES[kind]})"
        x = self.make(shape, kind, depth)
        how = self.rng.randrange(4)
        if how == 0 and shape:
            long = self.rng.choice([2, 4, 6, 16])
            if math.prod(shape) * long <= 4096 and len(shape) < 3:
                x = self.make((long, *shape), kind, depth)
                n = self.number(self.rng.randrange(3))
                return self.let(f"called_sum({x.name}, {n})", shape, kind)
        if how == 1:
            n = self.argument("n", "int", high=self.rng.randrange(4))
            return self.let(f"returns_early({x.name}, {n}){to}", shape, kind)
        y = self.make(shape, kind, depth - 1)
        if how == 2:
            return self.several(f"called_twice({x.name}, {y.name})", shape, [kind, kind])
        return self.let(f"called({x.name}, {y.name})", shape, kind)

    def assembly(self, shape, kind, depth):
        if kind not in ("i32", "u32"):
            return None
        x, y = self.make(shape, kind, depth), self.make(shape, kind, depth - 1)
        asm, pure = self.rng.choice(ASSEMBLY), self.chance(0.7)
        pack, constraints = 1, "=r,r,r"
        if self.chance(0.3) and asm[0] != "{" and math.prod(shape) % 2 == 0:
            pack, constraints = 2, "=r,=r,r,r,r,r"
            first = asm.replace("$2", "$4").replace("$1", "$2")
            second = asm.replace("$2", "$5").replace("$1", "$3").replace("$0", "$1")
            asm = f"{first} {second}"
        return self.let(
            f'tl.inline_asm_elementwise("{asm}", "{constraints}", [{x.name}, {y.name}], tl.{DTYPES[kind]}, {pure}, {pack})',
            shape,
            kind,
        )

    def bytes(self, shape, kind, depth):
        """Four bytes at a time in one register of PTX."""
        if kind not in ("i8", "u8") or math.prod(shape) % 4:
            return None
        x, y = self.make(shape, kind, depth), self.make(shape, kind, depth - 1)
        asm = self.rng.choice(
            [
                "lop3.b32 $0, $1, $2, 0, 0x3c;",
                "and.b32 $0, $1, $2;",
                "{ .reg .b32 z; mov.b32 z, 0; vabsdiff4.u32.u32.u32 $0, $1, $2, z; }",
            ]
        )
        return self.let(
            f'tl.inline_asm_elementwise("{asm}", "=r,r,r", [{x.name}, {y.name}], tl.{DTYPES[kind]}, True, 4)',
            shape,
            kind,
        )

    def numbers(self, shape, kind, depth):
        """Random numbers of the language."""
        if kind not in ("i32", "i64", "u32", "u64") or not shape:
            return None
        at, seed = self.make(shape, "i32", 0), self.number(self.rng.choice([0, 1, 7, 123456789]))
        to = f".to(tl.{DTYPES[kind]})"
        form = self.rng.choice(
            [
                f"tl.randint({seed}, {at.name})",
                f"(tl.rand({seed}, {at.name}) * 65536).to(tl.int32)",
                f"tl.randint4x({seed}, {at.name})[{self.rng.randrange(4)}]",
                f"tl.randint({seed}, {at.name}.to(tl.int64) * 4294967311)",
            ]
        )
        return self.let(form + to, shape, kind)

    def library(self, shape, kind, depth):
        """Largest ones with their places, the first few of a sort, merged sequences, products so far, histograms of some."""
        how = self.rng.choice(["indices", "topk", "merge", "cumprod", "or", "histogram", "tuple"])
        power = bool(shape) and all(s & (s - 1) == 0 for s in shape)
        to = f".to(tl.{DTYPES[kind]})"
        if how == "topk" and power and shape[-1] <= 16 and math.prod(shape) <= 256 and kind != "b":
            k, long = shape[-1], shape[-1] * self.rng.choice([1, 2, 4])
            x = self.make((*shape[:-1], long), kind, depth)
            return self.let(f"tl.topk({x.name}, {k}){to}", shape, kind, x.bound)
        if how == "merge" and power and 2 <= shape[-1] <= 32 and math.prod(shape) <= 256 and kind != "b":
            x = self.make(shape, kind, depth)
            down = self.rng.choice(["", ", descending=True"])
            # A sequence that rises and then falls.
            half = f"tl.reshape(tl.permute(tl.reshape(tl.sort({x.name}), [{math.prod(shape) // shape[-1]}, {shape[-1] // 2}, 2]), 0, 2, 1), {list(shape)})"
            rising = self.raw(half)
            d = len(shape) - 1
            along = f"tl.arange(0, {shape[-1]}){self.index(len(shape), d)}"
            zero = f"tl.zeros({list(shape)}, tl.int32)"
            there = f"{zero} + tl.where({along} < {shape[-1] // 2}, {along}, {shape[-1] + shape[-1] // 2 - 1} - {along})"
            risen = f"tl.gather({rising}, {there}, axis={d})"
            return self.let(f"tl.bitonic_merge({risen}{down})", shape, kind, x.bound)
        if how == "cumprod" and kind[0] in "iu" and shape:
            x = self.make(shape, kind, depth)
            reverse = self.rng.choice(["", ", reverse=True"])
            return self.let(
                f"tl.cumprod({x.name}, axis={self.rng.randrange(len(shape))}{reverse}){to}", shape, kind
            )
        full, axis, n = self.stretched(shape)
        if full is None:
            return None
        if how == "or" and kind[0] in "iu":
            x = self.make(full, kind, depth)
            return self.let(f"tl.reduce_or({x.name}, axis={axis}){to}", shape, kind)
        if how == "indices" and kind == "i32":
            other = self.rng.choice(["f32", "i32", "u32", "f16", "bf16", "i64", "u8", "f64"])
            x, f = self.make(full, other, depth), self.rng.choice(["max", "min"])
            names = self.new(), self.new()
            self.emit(f"{names[0]}, {names[1]} = tl.{f}({x.name}, axis={axis}, return_indices=True)")
            return self.keep(Value(names[1], tuple(shape), kind, n, True))
        if how == "tuple" and kind[0] in "iu":
            x, y = (
                self.make(full, kind, depth),
                self.make(full, self.rng.choice(["i8", "u16", "i64", "u32"]), depth - 1),
            )
            return self.several(
                f"tl.reduce(({x.name}, {y.name}), {axis}, pairs_total)", shape, [kind, y.kind]
            )
        size = math.prod(shape)
        if how == "histogram" and size & (size - 1) == 0 and 2 <= size <= 128 and kind[0] in "iu":
            long = (self.rng.choice([32, 64, 128, 512]),)
            x, mask = self.make(long, "i32", depth), self.comparison(long, depth - 1)
            counts = f"tl.histogram({x.name} & {size - 1}, {size}, mask={mask.name})"
            return self.let(f"tl.reshape({counts}, {list(shape)}){to}", shape, kind)
        return None
