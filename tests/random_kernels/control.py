"""Control flow: every hint of loops, bounds of any kind, pointers and pairs that loops carry, returns before the end."""

from __future__ import annotations

import math

from .kinds import DTYPES, is_float, whole
from .program import Node, Value


class Control:
    """The part of the generator that knows of loops and returns."""

    def hints(self) -> str:
        """Advice for a loop."""
        texts = [
            f"num_stages={self.rng.randrange(0, 5)}",
            f"loop_unroll_factor={self.rng.choice([1, 2, 3, 4])}",
            "flatten=True",
            "warp_specialize=True",
            "disallow_acc_multi_buffer=True",
            "disable_licm=True",
        ]
        return "".join(f", {t}" for t in self.rng.sample(texts, self.rng.choice([0, 1, 1, 2, 3])))

    def bounds(self, trips: int) -> tuple[str, int, int]:
        """A range of so many steps, its first number and its step."""
        start, step = self.rng.choice([(0, 1), (1, 1), (0, 2), (-2, 3), (7, -1), (3, -2), (-3, 1)])
        end = start + trips * step
        if abs(step) > 1 and trips:
            end -= self.rng.randrange(abs(step)) * (1 if step > 0 else -1)
        how = self.rng.randrange(5)
        text = f"{self.runtime(start)}, {self.runtime(end)}, {step}"
        if how == 1:
            text = f"{start}, tl.to_tensor({self.runtime(end)}).to(tl.int64), {step}"
        elif how == 2 and start == 0 and step == 1:
            text = f"tl.cdiv({self.runtime(trips * 16 - self.rng.randrange(16) if trips else 0)}, 16)"
        return text, start, step

    def runtime(self, value: int) -> str:
        return self.number(value) if value > 0 else str(value)

    def walk(self, shape, kind, depth):
        """A loop over tiles of an input with pointers that it moves, whose other values trade places."""
        if kind == "b" or not shape or len(self.loops) > 1:
            return None
        trips = self.rng.choice([0, 1, 2, 3, 4, 6])
        numel = math.prod(shape)
        low, high = self.limits(kind, 3)
        x = self.argument("x", kind, shape=(numel * max(trips, 1),), low=low, high=high)
        p, acc, other, i = (self.new() for _ in range(4))
        limit = whole(kind) // 16 if is_float(kind) else None
        self.emit(f"{p} = {x} + {self.offsets(shape)}")
        a, b = self.make(shape, kind, depth - 1, limit), self.make(shape, kind, depth - 1, limit)
        self.emit(f"{acc} = {a.name}\n{other} = {b.name}")
        bounds, _, _ = self.bounds(trips)
        stop = self.rng.randrange(6)
        heads = [f"for {i} in tl.range({bounds}{self.hints()}):"] * 3
        heads += [
            f"while {i} < {self.runtime(trips)}:",
            f"while tl.condition({i} < {trips}, disable_licm=True):",
        ]
        head = self.rng.choice(heads)
        if head.startswith("while"):
            self.emit(f"{i} = 0")
        got = f"tl.load({p})"
        if self.chance(0.3):
            got = f"tl.load({p}, mask={acc} > {stop}, other=1)"
        forms = [
            "{0}, {1} = {1}, {2}",
            "{0}, {1} = {1}, tl.maximum({0}, {2}).to({0}.dtype)",
            "{0} = {2}\n{1} = {0}",
        ]
        if not is_float(kind):
            forms += [
                "{0}, {1} = {1} + {2}, {0} ^ {2}",
                "{0} = {0} * 3 + {2}",
                "if {3} == 2:\n    {0} += {2}\nelse:\n    {1} -= {2}",
            ]
        with self.below(head):
            t = self.raw(got)
            for line in self.rng.choice(forms).format(acc, other, t, i).split("\n"):
                self.line(line)
            self.emit(f"{p} += {numel}")
            if head.startswith("while"):
                self.emit(f"{i} += 1")
        bound = max(a.bound, b.bound, high) if is_float(kind) else whole(kind)
        self.keep(Value(other, tuple(shape), kind, bound))
        return self.keep(Value(acc, tuple(shape), kind, bound))

    def line(self, text: str) -> None:
        """A line that may be a head, or stand below the head before it."""
        if text.startswith(" "):
            head = self.blocks[-1].pop()
            self.blocks[-1].append(Node(head.text, (*head.body, Node(text.strip()))))
        else:
            self.blocks[-1].append(Node(text, () if text.endswith(":") else None))

    def until(self, shape, kind, depth):
        """A loop that ends when what it computes says so."""
        if kind not in ("i32", "u32", "i64") or not shape or len(self.loops) > 1:
            return None
        x, n = self.make(shape, kind, depth), self.new()
        v = self.raw(f"{x.name} & 255")
        self.emit(f"{n} = 0")
        with self.below(
            f"while (tl.max(tl.ravel({v}), axis=0) > {self.rng.choice([1, 5, 40])}) & ({n} < 12):"
        ):
            self.emit(
                f"{v} = {self.rng.choice(['{0} >> 1', '{0} // 3', 'tl.where({0} > 7, {0} - 7, {0})'])}".format(
                    v
                )
            )
            self.emit(f"{n} += 1")
        return self.let(f"({v} + {n}).to(tl.{DTYPES[kind]})", shape, kind)

    def nest(self, shape, kind, depth):
        """A loop in a loop, with advice for both."""
        if kind == "b" or not shape or self.loops:
            return None
        outer, inner = self.rng.choice([0, 1, 2, 3]), self.rng.choice([0, 1, 2, 3])
        step = whole(kind) // 64 if is_float(kind) else None
        if step == 0:
            return None
        acc, i, j = self.new(), self.new(), self.new()
        start = self.make(shape, kind, 0, step)
        self.emit(f"{acc} = {start.name}")
        with self.below(f"for {i} in tl.range({self.number(outer)}{self.hints()}):"):
            self.loops.append((i, max(outer, 1)))
            with self.below(f"for {j} in tl.range({self.number(inner)}{self.hints()}):"):
                self.loops.append((j, max(inner, 1)))
                x = self.make(shape, kind, depth - 1, step)
                self.emit(f"{acc} += {x.name}")
                self.loops.pop()
            if self.chance(0.5):
                y = self.make(shape, kind, depth - 2, step)
                self.emit(f"{acc} = tl.where({y.name} > 0, {acc}, {y.name})")
            self.loops.pop()
        return self.keep(Value(acc, tuple(shape), kind, min(whole(kind), (step or whole(kind)) * 16)))

    def leave(self) -> None:
        """Some programs end here."""
        if self.chance(0.5):
            self.emit(f"if tl.program_id(0) >= {self.rng.choice([1, 2])}:\n    return")
        else:
            n = self.argument("n", "int", high=self.rng.randrange(3))
            self.emit(f"if {n} == {self.rng.randrange(3)}:\n    return")
