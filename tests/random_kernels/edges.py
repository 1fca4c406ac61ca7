"""Operations on values at the ends of their formats: integers that wrap, floats with NaN, infinities, zeros and subnormals.

Of floats only those operations are made whose result every backend must agree on: each rounds once. A product is never added to
something, as a GPU would round both at once.
"""

from __future__ import annotations

import math

from .kinds import BITS, DTYPES

FLOATS = ("f16", "bf16", "f32", "f32", "f32", "f64")
NAN_MODES = ("", ", propagate_nan=tl.PropagateNan.ALL")


class Edges:
    """The part of the generator that knows of the ends of formats."""

    def bits(self, shape, kind: str) -> str:
        """An expression that loads any bits of a kind."""
        x = self.argument("s", kind, shape=(max(math.prod(shape), 1),), special=True)
        return f"tl.load({x} + {self.offsets(shape)})"

    def ends(self, shape, kind, depth):
        """Integers at the ends of the format."""
        if kind[0] not in "iu" or not shape:
            return None
        return self.let(self.bits(shape, kind), shape, kind)

    def divided(self, shape, kind, depth):
        """Quotients, remainders and shifts, whose operands are at the ends, unsigned or negative."""
        if kind[0] not in "iu" or not shape:
            return None
        x = self.ends(shape, kind, depth) if self.chance(0.5) else self.make(shape, kind, depth)
        forms = [
            "{0} // {2}",
            "{0} % {2}",
            "{0} << {3}",
            "{0} >> {3}",
            "{0} // {4}",
            "{0} % {4}",
            "{2} - {0} * {4}",
        ]
        if kind in ("i32", "u32", "i64", "u64"):
            forms.append("tl.umulhi({0}, {2})")
        y = self.ends(shape, kind, depth) if self.chance(0.5) else self.make(shape, kind, depth - 1)
        odd = f"({y.name} | 1)"
        if kind[0] == "i":  # the least number by -1 is open
            odd = f"tl.where({odd} == -1, 3, {odd})"
        constant = self.rng.choice([1, 2, 3, 4, 5, 7, 8, 10, 16, 24, 64, 100, 127])
        if kind[0] == "i" and self.chance(0.4):
            constant = -constant if constant > 1 else -2
        form = self.rng.choice(forms).format(x.name, y.name, odd, f"({y.name} & {BITS[kind] - 1})", constant)
        return self.let(f"({form}).to(tl.{DTYPES[kind]})", shape, kind)

    def mixed(self, shape, kind, depth):
        """Two kinds of integers in one operation."""
        if kind[0] not in "iu" or not shape:
            return None
        kinds = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
        x, y = (self.ends(shape, self.rng.choice(kinds), depth) for _ in range(2))
        form = self.rng.choice(
            "{0} + {1};{0} - {1};{0} * {1};{0} < {1};{0} == {1};tl.where({0} > {1}, {0}, {1});{0} & {1};tl.minimum({0}, {1})".split(
                ";"
            )
        )
        return self.let(f"({form.format(x.name, y.name)}).to(tl.{DTYPES[kind]})", shape, kind)

    # Floats.

    def special(self, shape, kind, depth):
        """What a few operations make of special floats, as integers: the bits or a comparison."""
        if kind[0] not in "iu" or not shape or math.prod(shape) > 2048:
            return None
        x, fk = self.floats(shape)
        for _ in range(self.rng.randrange(1, 4)):
            step = self.rng.choice([self.one, self.one, self.two, self.two, self.converted, self.order])
            x, fk = step(x, fk, shape)
        to = f".to(tl.{DTYPES[kind]})"
        how = self.rng.randrange(5)
        if how == 0:
            y, _ = self.floats(shape, fk)
            return self.let(
                f"({x} {self.rng.choice(['<', '<=', '>', '>=', '==', '!='])} {y}){to}", shape, kind, 1
            )
        if how == 1 and BITS[kind] >= 32:
            # What does not fit is open. (A bound would be infinite in a narrow format.)
            wide, least = f"{x}.to(tl.float64)", "0" if kind[0] == "u" else "-2e9"
            return self.let(f"tl.where(({wide} >= {least}) & ({wide} < 2e9), {x}, 1){to}", shape, kind)
        # One NaN is like another, and of two zeros the sign is open.
        whole = f"{x}.to(tl.int{BITS[fk]}, bitcast=True)"
        return self.let(f"tl.where(({x} != {x}) | ({x} == 0), 0, {whole}){to}", shape, kind)

    def raw(self, expression: str) -> str:
        """A variable that may hold anything."""
        name = self.new()
        self.emit(f"{name} = {expression}")
        return name

    def floats(self, shape, fk: str | None = None):
        fk = fk or self.rng.choice(FLOATS)
        return self.raw(self.bits(shape, fk)), fk

    def one(self, x, fk, shape):
        forms = ["-{0}", "tl.abs({0})", "tl.clamp({0}, -1.5, 3.0{1})", "tl.where({0} > 0, {0}, -2.5)", "{0}"]
        if fk in ("f32", "f64"):
            forms += ["tl.floor({0})", "tl.ceil({0})", "tl.sqrt_rn({0})" if fk == "f32" else "tl.sqrt({0})"]
        form = self.rng.choice(forms).format(x, self.rng.choice(NAN_MODES))
        return self.raw(f"({form}).to(tl.{DTYPES[fk]})"), fk

    def two(self, x, fk, shape):
        y, _ = self.floats(shape, fk)
        mode = self.rng.choice(NAN_MODES)
        forms = [
            f"tl.maximum({x}, {y}{mode})",
            f"tl.minimum({x}, {y}{mode})",
            f"{x} + {y}",
            f"{x} - {y}",
            f"tl.where({x} < {y}, {x}, {y})",
        ]
        form = self.rng.choice(forms)
        if self.chance(0.2):
            # Behind a product its bits are changed, so that nothing is added to it.
            form = f"{x} * {y}"
            if fk == "f32":
                form = self.rng.choice([form, f"tl.div_rn({x}, {y})", f"tl.fma({x}, {y}, {x})"])
            bits = f"(({form}).to(tl.{DTYPES[fk]}).to(tl.int{BITS[fk]}, bitcast=True) ^ 1)"
            return self.raw(f"{bits}.to(tl.{DTYPES[fk]}, bitcast=True)"), fk
        return self.raw(f"({form}).to(tl.{DTYPES[fk]})"), fk

    def converted(self, x, fk, shape):
        """Through another format, or from an integer."""
        if self.chance(0.3):
            ik = self.rng.choice(["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
            fk = self.rng.choice(FLOATS)
            return self.raw(f"{self.bits(shape, ik)}.to(tl.{DTYPES[fk]})"), fk
        if fk != "f64" and self.chance(0.3):
            # float8e4nv is not in the oldest GPUs.
            narrow = self.rng.choice(["e5m2", "e5m2", "e4m3"] if self.target >= 90 else ["e5m2"])
            if self.chance(0.5):
                y = self.raw(self.bits(shape, narrow))
            else:
                rounding = (
                    ", fp_downcast_rounding='rtz'"
                    if narrow == "e5m2" and fk == "f32" and self.chance(0.3)
                    else ""
                )
                y = self.raw(f"{x}.to(tl.{DTYPES[narrow]}{rounding})")
            return self.raw(f"{y}.to(tl.{DTYPES[fk]})"), fk
        other = self.rng.choice([k for k in ("f16", "bf16", "f32", "f64") if k != fk])
        rounding = (
            ", fp_downcast_rounding='rtz'" if fk == "f32" and BITS[other] == 16 and self.chance(0.5) else ""
        )
        return self.raw(f"{x}.to(tl.{DTYPES[other]}{rounding})"), other

    def order(self, x, fk, shape):
        """The elements in another order, or the largest ones so far."""
        d = self.rng.randrange(len(shape))
        power = all(s & (s - 1) == 0 for s in shape)
        forms = [
            f"tl.associative_scan({x}, {d}, largest)",
            f"tl.broadcast_to(tl.max({x}, axis={d}, keep_dims=True), {list(shape)})",
            f"tl.broadcast_to(tl.min({x}, axis={d}, keep_dims=True), {list(shape)})",
            f"tl.reshape(tl.ravel({x}), {list(shape)})",
        ]
        if power and shape[-1] <= 32 and math.prod(shape) <= 512:
            forms += [f"tl.sort(tl.where({x} == {x}, {x}, 0.5))"]
        return self.raw(f"({self.rng.choice(forms)}).to(tl.{DTYPES[fk]})"), fk
