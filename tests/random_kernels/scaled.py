"""Products that :mod:`operations` does not make: microscaling formats, fp8 and float64, few rows, all precisions."""

from __future__ import annotations

import math

from .kinds import DTYPES, is_float, whole
from .program import Value

FORMATS = ("e2m1", "e2m1", "e4m3", "e5m2", "bf16", "fp16")
PRECISIONS = ("ieee", "tf32", "tf32x3")


class Scaled:
    """The part of the generator that knows of rarer products."""

    def scaled(self, shape, kind, depth):
        """A product of microscaling formats: elements and scales are such that it is whole and exact."""
        if kind != "f32" or len(shape) not in (2, 3) or min(shape[-2:]) < 16 or max(shape[-2:]) > 64:
            return None
        if any(s & (s - 1) for s in shape) or (len(shape) == 3 and shape[0] > 2):
            return None
        batch, (m, n), k = shape[:-2], shape[-2:], self.rng.choice([32, 64, 128])
        lhs = self.scaled_operand((*batch, m, k), True)
        rhs = self.scaled_operand((*batch, k, n), False)
        if lhs is None or rhs is None or ("None" in (lhs[1], rhs[1]) and lhs[1] == rhs[1]):
            return None
        bound = 256 * k * 16
        acc = self.make(shape, kind, depth - 1, 1000).name if self.chance(0.4) else "None"
        fast = self.rng.choice(["", ", fast_math=True"])
        options = "".join(f", {side}_k_pack=False" for side, o in (("lhs", lhs), ("rhs", rhs)) if o[3])
        call = f"tl.dot_scaled({lhs[0]}, {lhs[1]}, '{lhs[2]}', {rhs[0]}, {rhs[1]}, '{rhs[2]}', {acc}{fast}{options})"
        return self.let(call, shape, kind, min(bound, whole(kind)))

    def scaled_operand(self, shape, left: bool):
        """An operand, its scales, its format, and whether it is packed along its other dimension."""
        fmt, other_way = self.rng.choice(FORMATS), False
        along = len(shape) - (1 if left else 2)
        if fmt == "e2m1":
            other_way = self.chance(0.2)
            packed = (len(shape) - (2 if left else 1)) if other_way else along
            stored = tuple(s // 2 if d == packed else s for d, s in enumerate(shape))
            x = self.argument("x", "u8", shape=(math.prod(stored),), low=0, high=255)
            least = 128  # elements are halves
        else:
            dtype = {"e4m3": "e4m3", "e5m2": "e5m2", "bf16": "bf16", "fp16": "f16"}[fmt]
            if dtype == "e4m3" and self.target < 90:
                return None
            stored, least = shape, 127
            x = self.argument("x", dtype, shape=(math.prod(stored),), low=-2, high=2)
        value = self.raw(f"tl.load({x} + {self.offsets(stored)})")
        if fmt not in ("e2m1",) and self.chance(0.4):
            return value, "None", fmt, other_way
        rows = shape[-2] if left else shape[-1]
        scales = (*shape[:-2], rows, shape[along] // 32)
        s = self.argument("x", "u8", shape=(math.prod(scales),), low=least, high=least + 1)
        return value, self.raw(f"tl.load({s} + {self.offsets(scales)})"), fmt, other_way

    def rarer(self, shape, kind, depth):
        """fp8, float64, three-pass tf32, few rows or columns."""
        if len(shape) not in (2, 3) or kind not in ("f32", "f64", "i32", "f16") or max(shape[-2:]) > 64:
            return None
        if (len(shape) == 3 and shape[0] > 4) or any(s & (s - 1) for s in shape):
            return None
        batch, (m, n), k = shape[:-2], shape[-2:], self.rng.choice([16, 32, 64])
        how = {
            "f64": ["f64"],
            "i32": ["i8"],
            "f16": ["f16", "e5m2"],
            "f32": ["e5m2", "e4m3", "f32", "mixed", "f16"],
        }[kind]
        how = self.rng.choice(how)
        if how in ("e4m3", "mixed") and self.target < 90:
            return None
        if how in ("i8", "e5m2", "e4m3", "mixed"):
            k = max(k, 32)
        kinds = {"mixed": self.rng.sample(["e5m2", "e4m3"], 2)}.get(how, [how, how])
        limit = max(min(math.isqrt(whole(kind) // (2 * k)), 3), 1)
        a = self.operand_of((*batch, m, k), kinds[0], depth, limit)
        b = self.operand_of((*batch, k, n), kinds[1], depth, limit)
        more = ""
        if how == "f32":
            more = f", input_precision='{self.rng.choice(PRECISIONS)}'"
            if self.chance(0.2):
                more = f", allow_tf32={self.chance(0.5)}"
        if kind == "f16":
            more = ", out_dtype=tl.float16"
        if how in ("e5m2", "e4m3") and self.chance(0.3):
            more += f", max_num_imprecise_acc={self.rng.choice([0, 32])}"
        acc = ""
        if self.chance(0.4):
            acc = f", {self.make(shape, kind, depth - 1, whole(kind) // 4 if is_float(kind) else None).name}"
        bound = min(whole(kind), limit * limit * k + whole(kind) // 4) if is_float(kind) else None
        return self.let(f"tl.dot({a}, {b}{acc}{more})", shape, kind, bound)

    def operand_of(self, shape, kind: str, depth: int, limit: int) -> str:
        if kind not in ("e4m3", "e5m2"):
            return self.make(shape, kind, depth, limit).name
        if self.chance(0.5):
            x = self.argument("x", kind, shape=(math.prod(shape),), low=-limit, high=limit)
            return self.raw(f"tl.load({x} + {self.offsets(shape)})")
        x: Value = self.make(shape, self.rng.choice(["f16", "f32", "bf16"]), depth, limit)
        return self.raw(f"{x.name}.to(tl.{DTYPES[kind]})")
