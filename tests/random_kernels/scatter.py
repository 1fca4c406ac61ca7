"""Memory that several elements touch: atomics of every kind, rows by number, and descriptors that add."""

from __future__ import annotations

import math

from .kinds import BYTES, DTYPES, is_float

KINDS_OF = {
    "add": ["i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64"],
    "max": ["i32", "u32", "i64", "u64", "f32", "f64"],
    "min": ["i32", "u32", "i64", "u64", "f32", "f64"],
    "and": ["i32", "u32", "i64", "u64"],
    "or": ["i32", "u32", "i64", "u64"],
    "xor": ["i32", "u32", "i64", "u64"],
}


class Scatter:
    """The part of the generator that knows of memory that is changed."""

    def scope(self) -> str:
        sem = self.rng.choice(
            ["", "", ", sem='relaxed'", ", sem='acquire'", ", sem='release'", ", sem='acq_rel'"]
        )
        return sem + self.rng.choice(["", "", ", scope='gpu'", ", scope='sys'"])

    def crowded(self) -> None:
        """Elements that meet in the same places; what was there before is open."""
        f = self.rng.choice(list(KINDS_OF))
        kind, shape, places = self.rng.choice(KINDS_OF[f]), self.shape(), self.rng.choice([1, 3, 16, 64])
        x = self.make(shape, kind, 2, {"f16": 1, "bf16": 1}.get(kind, 8 if is_float(kind) else None))
        if kind in ("f16", "bf16"):
            # Sums are exact as long as few meet.
            places = max(places, -(-math.prod(shape) * self.grid // 100))
            spread = f"(({self.flat(shape)}) % {places})"
        else:
            spread = f"(({self.make(shape, 'i32', 1).name} & 1023) % {places})"
        out = self.argument("o", kind, shape=(places,), low=3, high=3, written=True)
        mask = f", mask={self.comparison(shape, 1).name}" if self.chance(0.5) else ""
        self.emit(f"tl.atomic_{f}({out} + {spread}, {x.name}{mask}{self.scope()})")

    def flat(self, shape) -> str:
        terms, stride = [], 1
        for d in reversed(range(len(shape))):
            terms.append(f"tl.arange(0, {shape[d]}){self.index(len(shape), d)} * {stride}")
            stride *= shape[d]
        return " + ".join(reversed(terms))

    def old(self, shape, kind, depth):
        """What was in places of one's own before a masked atomic, a compare-and-swap or an exchange."""
        if not shape or self.loops or len(self.blocks) > 1:
            return None
        numel = math.prod(shape)
        out = self.argument("o", kind, shape=(numel * self.grid,), low=0, high=3, written=True)
        term = f" + tl.program_id(0) * {numel}" if self.grid > 1 else ""
        at = f"{out}{term} + {self.offsets(shape)}"
        if kind in ("i32", "u32", "i64", "u64", "i16", "u16") and self.chance(0.4):
            x, y = self.make(shape, kind, depth, 3), self.make(shape, kind, depth)
            return self.let(f"tl.atomic_cas({at}, {x.name}, {y.name}{self.scope()})", shape, kind)
        fs = [f for f in KINDS_OF if kind in KINDS_OF[f]]
        if not fs:
            return None
        f = self.rng.choice([*fs, "xchg"] if kind not in ("f16", "bf16") else fs)
        x, mask = (
            self.make(shape, kind, depth, 64 if is_float(kind) else None),
            self.comparison(shape, depth - 1),
        )
        old = self.raw(f"tl.atomic_{f}({at}, {x.name}, mask={mask.name}{self.scope()})")
        bound = 3 if is_float(kind) else None
        return self.let(f"tl.where({mask.name}, {old}, 2).to(tl.{DTYPES[kind]})", shape, kind, bound)

    def alone(self) -> None:
        """One number, from every program."""
        f = self.rng.choice(list(KINDS_OF))
        kind = self.rng.choice([k for k in KINDS_OF[f] if k not in ("f16", "bf16")])
        out = self.argument("o", kind, shape=(2,), low=3, high=3, written=True)
        x = self.make((), kind, 2, 8 if is_float(kind) else None)
        self.emit(f"tl.atomic_{f}({out} + {self.rng.randrange(2)}, {x.name}{self.scope()})")

    def added(self) -> None:
        """A block that a descriptor adds."""
        kind = self.rng.choice(["i32", "u32", "i64", "u64", "f32", "f16", "bf16"])
        f = self.rng.choice(list(KINDS_OF)) if kind[0] in "iu" else "add"
        rows, columns = self.rng.choice([8, 16, 32]), self.rng.choice([16, 32, 64])
        shape = (rows, columns)
        x = self.make(shape, kind, 2, 3 if is_float(kind) else None)
        tall, wide = rows + self.rng.choice([0, 5, -3]), columns + self.rng.choice([0, 16])
        out = self.argument("o", kind, shape=(tall * wide,), low=3, high=3, written=True)
        d = self.new()
        self.emit(
            f"{d} = tl.make_tensor_descriptor({out}, [{self.number(tall)}, {wide}], [{wide}, 1], {list(shape)})"
        )
        self.emit(f"{d}.atomic_{f}([{self.rng.choice([0, 1, 4])}, {self.rng.choice([0, 8])}], {x.name})")

    def scattered(self) -> None:
        """Rows of a descriptor by number."""
        kind = self.rng.choice(["f16", "f32", "i32", "i8", "bf16"])
        rows, columns = self.rng.choice([8, 16, 32]), self.rng.choice([32, 64])
        if self.grid > 1:
            return
        x = self.make((rows, columns), kind, 2)
        at = self.new()
        tall = rows * 2
        # Odd times the number, so that each row is another one.
        self.emit(
            f"{at} = (tl.arange(0, {rows}) * {self.rng.choice([1, 3, 5])} + {self.rng.randrange(4)}) & {tall - 1}"
        )
        wide = columns + 16
        out = self.argument("o", kind, shape=(tall * wide,), low=1, high=1, written=True)
        d = self.new()
        self.emit(
            f"{d} = tl.make_tensor_descriptor({out}, [{self.number(tall - self.rng.choice([0, 0, 3]))}, {wide}], [{wide}, 1], [1, {columns}])"
        )
        self.emit(f"{d}.scatter({x.name}, {at}, {self.rng.choice([0, 16])})")

    def gathered(self, shape, kind, depth):
        """Rows of a descriptor by number."""
        if (
            len(shape) != 2
            or kind == "b"
            or shape[0] not in (8, 16, 32, 64)
            or shape[1] not in (16, 32, 64, 128)
        ):
            return None
        if shape[1] * BYTES[kind] < 32 or self.target < 90:
            return None
        low, high = self.limits(kind, 8)
        tall, wide = self.rng.choice([8, 20, 50]), shape[1] + 16
        name = self.argument("d", kind, shape=(tall, wide), low=low, high=high, block=(1, shape[1]))
        rows = self.make((shape[0],), "i32", 0)
        return self.let(
            f"{name}.gather({rows.name} & 31, {self.rng.choice([0, 16, 32])})",
            shape,
            kind,
            max(high, 1),
            low == 0,
        )
