"""Loads and stores of the generator: pointers in any order, masks, run-time strides, block pointers, descriptors."""

from __future__ import annotations

import math

from .kinds import BYTES, DTYPES


class Memory:
    """The part of the generator that knows of pointers."""

    def offsets(self, shape, pitch: str | None = None) -> str:
        """Offsets of a dense tensor whose dimensions lie in memory in a random order; row-major with a ``pitch``."""
        dims = list(range(len(shape)))
        order = dims[::-1] if pitch or self.chance(0.5) else self.rng.sample(dims, len(dims))
        terms, stride = {}, 1
        for d in order:
            times = f" * {pitch}" if pitch and d == 0 else f" * {stride}" if stride > 1 else ""
            terms[d] = f"tl.arange(0, {shape[d]}){self.index(len(shape), d)}{times}"
            stride *= shape[d]
        return " + ".join(terms[d] for d in dims) or "0"

    def limits(self, kind: str, limit: int) -> tuple[int, int]:
        """The least and the largest value of an input."""
        most = 1 if kind == "b" else min(limit, self.rng.choice([1, 3, 3, 8]))
        return (0 if (kind == "b" or kind[0] == "u") else -most), most

    def leaf(self, shape, kind: str, limit: int):
        """A value from nowhere or from memory."""
        if not shape:
            return self.scalar(kind, limit)
        r = self.rng.random()
        if r < 0.08 and kind != "b":
            return self.let(
                f"tl.full({list(shape)}, {min(limit, 2)}, tl.{DTYPES[kind]})", shape, kind, 2, True
            )
        if r < 0.14 and kind in ("i32", "i64", "f32", "f16") and max(shape) <= 64:
            d = self.rng.randrange(len(shape))
            along = f"tl.arange(0, {shape[d]})" + self.index(len(shape), d)
            value = self.let(
                f"(tl.zeros({list(shape)}, tl.int32) + {along}).to(tl.{DTYPES[kind]})",
                shape,
                kind,
                max(shape),
                True,
            )
            return value
        if len(shape) >= 2 and shape[-1] * BYTES[kind] >= 16 and kind != "b" and r < 0.4 and shape[-1] <= 256:
            return self.described(shape, kind, limit)
        if r < 0.5 and len(shape) == 2 and kind != "b":
            return self.block_pointer(shape, kind, limit)
        return self.load(shape, kind, limit)

    def scalar(self, kind: str, limit: int):
        if self.chance(0.4) and kind != "b":
            high = self.rng.choice([1, 2, 3])
            n = self.argument("n", "int", high=high)
            form = self.rng.choice([n, f"({n} + tl.program_id(0))"])
            return self.let(f"tl.to_tensor({form}).to(tl.{DTYPES[kind]})", (), kind, high + 2, True)
        low, high = self.limits(kind, limit)
        name = self.argument("x", kind, shape=(4,), low=low, high=high)
        return self.let(f"tl.load({name} + {self.rng.randrange(4)})", (), kind, max(high, 1), low == 0)

    def place(self, numel: int) -> tuple[str, int]:
        """A term of the program and of the loop around, and how many elements there must be."""
        term, times = "", 1
        if self.grid > 1 and self.chance(0.5):
            term, times = f" + tl.program_id(0) * {numel}", self.grid
        if self.loops and self.chance(0.7):
            i, most = self.rng.choice(self.loops)
            term += f" + {i} * {numel * times}"
            times *= most
        return term, numel * times

    def load(self, shape, kind: str, limit: int):
        low, high = self.limits(kind, limit)
        numel, pitch = math.prod(shape), None
        if len(shape) == 2 and self.chance(0.3):
            wide = shape[1] + self.rng.choice([0, 8, 16, 3])
            numel, pitch = shape[0] * wide, self.number(wide)
        term, size = self.place(numel)
        name = self.argument("x", kind, shape=(size,), low=low, high=high)
        offsets, mask = self.offsets(shape, pitch), ""
        if self.chance(0.3):
            d = self.rng.randrange(len(shape))
            inside = f"tl.arange(0, {shape[d]}){self.index(len(shape), d)} < {self.number(self.rng.randrange(shape[d] + 1))}"
            mask = f", mask={inside}, other={0 if kind == 'b' else min(1, limit)}"
        elif self.chance(0.15):
            known = self.values(lambda v: v.shape == shape and v.kind == "i32")
            if known:
                # Where a value says.
                power = 2 ** (size.bit_length() - 1) - 1
                return self.let(
                    f"tl.load({name} + ({self.rng.choice(known).name} & {power}))",
                    shape,
                    kind,
                    max(high, 1),
                    low == 0,
                )
        if len(shape) > 1 and self.chance(0.2) and not mask:
            # The rows' pointers first.
            offsets = f"({offsets})"
        return self.let(f"tl.load({name}{term} + {offsets}{mask})", shape, kind, max(high, 1), low == 0)

    def outside(self, shape, kind: str):
        """A matrix that is larger or smaller than a block, and where in it the block begins."""
        unit = max(16 // BYTES[kind], 1)
        extents = [max(1, s + self.rng.choice([0, 0, 0, 8, -1])) for s in shape[:-1]]
        extents.append(-(-(shape[-1] + self.rng.choice([0, 0, unit])) // unit) * unit)
        starts = [self.rng.choice([0, 0, 0, 1, 3]) for _ in shape[:-1]] + [self.rng.choice([0, 0, unit])]
        return extents, starts

    def described(self, shape, kind: str, limit: int):
        """A block of a descriptor made by the host or by the kernel."""
        low, high = self.limits(kind, limit)
        extents, starts = self.outside(shape, kind)
        starts = [str(s) for s in starts]
        if self.loops and self.chance(0.7):
            i, most = self.rng.choice(self.loops)
            extents[0] += most * shape[0]
            starts[0] = f"{i} * {shape[0]}"
        block = list(shape)
        if self.chance(0.5):
            name = self.argument("d", kind, shape=tuple(extents), low=low, high=high, block=tuple(shape))
        else:
            x = self.argument("x", kind, shape=(math.prod(extents),), low=low, high=high)
            name = self.new()
            strides = [str(math.prod(extents[d + 1 :])) for d in range(len(shape))]
            sizes = [self.number(e) for e in extents]
            made = f"{name} = tl.make_tensor_descriptor({x}, [{', '.join(sizes)}], [{', '.join(strides)}], {block})"
            self.emit(made)
        return self.let(f"{name}.load([{', '.join(starts)}])", shape, kind, max(high, 1), low == 0)

    def block_pointer(self, shape, kind: str, limit: int):
        low, high = self.limits(kind, limit)
        (rows, columns), starts = self.outside(shape, kind)
        x = self.argument("x", kind, shape=(rows * columns,), low=low, high=high)
        p = self.new()
        self.emit(
            f"{p} = tl.make_block_ptr({x}, ({self.number(rows)}, {self.number(columns)}), ({columns}, 1), "
            f"({starts[0]}, {starts[1]}), {tuple(shape)}, (1, 0))"
        )
        if self.chance(0.3):
            self.emit(f"{p} = tl.advance({p}, (0, {self.rng.choice([0, 4, 16])}))")
        return self.let(
            f"tl.load({p}, boundary_check=(0, 1), padding_option='zero')", shape, kind, max(high, 1), low == 0
        )

    def store(self, value):
        """Stores a value of the kernel's outermost block to a place of its own."""
        shape, kind, name = value.shape, value.kind, value.name
        numel = math.prod(shape)
        if (
            len(shape) >= 2
            and shape[-1] * BYTES[kind] % 16 == 0
            and shape[-1] <= 256
            and kind != "b"
            and self.grid == 1
            and self.chance(0.3)
        ):
            out = self.argument(
                "o", kind, shape=tuple(shape), low=3, high=3, written=True, block=tuple(shape)
            )
            self.emit(f"{out}.store([{', '.join('0' * len(shape))}], {name})")
            return
        out = self.argument("o", kind, shape=(numel * self.grid,), low=1, high=1, written=True)
        term = f" + tl.program_id(0) * {numel}" if self.grid > 1 else ""
        mask = ""
        if shape and self.chance(0.2):
            d = self.rng.randrange(len(shape))
            limit = self.number(self.rng.randrange(shape[d] + 1))
            mask = f", mask=tl.arange(0, {shape[d]}){self.index(len(shape), d)} < {limit}"
        offsets = f" + {self.offsets(shape)}" if shape else ""
        self.emit(f"tl.store({out}{term}{offsets}, {name}{mask})")

    def atomic(self, f: str, value):
        """Adds and the like to places of an output that no other operation touches; gives what was there."""
        shape, kind = value.shape, value.kind
        numel = math.prod(shape)
        out = self.argument("o", kind, shape=(numel * self.grid,), low=3, high=3, written=True)
        term = f" + tl.program_id(0) * {numel}" if self.grid > 1 else ""
        return self.let(
            f"tl.atomic_{f}({out}{term} + {self.offsets(shape)}, {value.name})", shape, kind, 3, True
        )
