"""``cvt`` between all types, with every rounding mode; ``cvt.pack``."""

from __future__ import annotations

from collections.abc import Iterator

from .arithmetic import simple
from .formats import width
from .program import Program

INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")


def float_types(integer: str) -> tuple[str, ...]:
    """ptxas converts no bytes to or from bf16."""
    return ("f16", "f32", "f64") if width(integer) == 8 else ("f16", "bf16", "f32", "f64")


def integer_to_float() -> Iterator[Program]:
    for ty in INTEGERS:
        for f in float_types(ty):
            for rnd in ("rn", "rz", "rm", "rp"):
                yield simple(f"cvt.{rnd}.{f}.{ty}", ty, f, body=f"cvt.{rnd}.{f}.{ty} %d, %a;")
        yield simple(f"cvt.rn.sat.f32.{ty}", ty, "f32")


def float_to_integer() -> Iterator[Program]:
    for ty in INTEGERS:
        for f in float_types(ty):
            bits = width(f)
            for rnd in ("rni", "rzi", "rmi", "rpi"):
                # The value of a NaN as an integer is not defined. Narrow results lie extended in wider registers.
                nan = f"setp.nan.{f} %p0, %a, %a; @%p0 mov.b{bits} %a, 0; "
                result = ty if width(ty) > 8 else ty[0] + "32"
                yield simple(f"cvt.{rnd}.{ty}.{f}", f, result, body=f"{nan}cvt.{rnd}.{ty}.{f} %d, %a;")
        yield simple(f"cvt.rzi.ftz.{ty}.f32", "f32", ty if width(ty) > 8 else ty[0] + "32",
            body=f"setp.nan.f32 %p0, %a, %a; @%p0 mov.b32 %a, 0; cvt.rzi.ftz.{ty}.f32 %d, %a;")  # fmt: skip


def integer_to_integer() -> Iterator[Program]:
    for a in INTEGERS:
        for b in INTEGERS:
            if a == b:
                continue
            result = a if width(a) > 8 else a[0] + "32"
            yield simple(f"cvt.{a}.{b}", b, result)
            if not (width(a) > width(b) and (a[0] == b[0] or a[0] == "s")):
                yield simple(f"cvt.sat.{a}.{b}", b, result)


def float_to_float() -> Iterator[Program]:
    for f in ("f16", "f32", "f64"):
        for rnd in ("rni", "rzi", "rmi", "rpi"):
            yield simple(f"cvt.{rnd}.{f}.{f}", f)
            yield simple(f"cvt.{rnd}.sat.{f}.{f}", f)
    yield simple("cvt.rni.ftz.f32.f32", "f32")
    for rnd in ("rn", "rz", "rm", "rp"):
        yield simple(f"cvt.{rnd}.f32.f64", "f64", "f32")
        yield simple(f"cvt.{rnd}.ftz.f32.f64", "f64", "f32")
        yield simple(f"cvt.{rnd}.sat.f32.f64", "f64", "f32")
        for f in ("f16", "bf16"):
            yield simple(f"cvt.{rnd}.{f}.f32", "f32", f)
            yield simple(f"cvt.{rnd}.{f}.f64", "f64", f)
    yield simple("cvt.rn.ftz.f16.f32", "f32", "f16")
    yield simple("cvt.rn.sat.f16.f32", "f32", "f16")
    for rnd in ("rn", "rz"):
        for f in ("f16", "bf16"):
            for mode in ("", ".relu"):
                yield simple(f"cvt.{rnd}{mode}.{f}x2.f32", "f32 f32", f + "x2")
                if mode:
                    yield simple(f"cvt.{rnd}{mode}.{f}.f32", "f32", f)
    for f in ("f16", "bf16"):
        for to in ("f32", "f64"):
            yield simple(f"cvt.{to}.{f}", f, to)
    yield simple("cvt.sat.f32.f16", "f16", "f32")
    yield simple("cvt.ftz.f32.f16", "f16", "f32")
    yield simple("cvt.f64.f32", "f32", "f64")
    yield simple("cvt.ftz.f64.f32", "f32", "f64")
    yield simple("cvt.sat.f64.f32", "f32", "f64")
    yield simple("cvt.sat.f32.f32", "f32")
    yield simple("cvt.ftz.f32.f32", "f32")
    for mode in ("rna", "rn", "rz", "rn.relu", "rz.relu", "rna.satfinite"):
        version = "8.6" if mode == "rna.satfinite" else "8.4"
        yield simple(f"cvt.{mode}.tf32.f32", "f32", "f32", version=version)


def small_floats() -> Iterator[Program]:
    for small in ("e4m3x2", "e5m2x2"):
        for mode in ("", ".relu"):
            yield simple(f"cvt.rn.satfinite{mode}.{small}.f32", "f32 f32", small)
            yield simple(f"cvt.rn.satfinite{mode}.{small}.f16x2", "f16x2", small)
            yield simple(f"cvt.rn{mode}.f16x2.{small}", small, "f16x2")


def packed() -> Iterator[Program]:
    for to in ("s16", "u16"):
        yield simple(f"cvt.pack.sat.{to}.s32", "s32 s32", "b32")
    for to in ("s8", "u8", "s4", "u4", "s2", "u2"):
        yield simple(f"cvt.pack.sat.{to}.s32.b32", "s32 s32 b32", "b32")


def programs() -> Iterator[Program]:
    for group in (
        integer_to_float,
        float_to_integer,
        integer_to_integer,
        float_to_float,
        small_floats,
        packed,
    ):
        for p in group():
            p.group = "conversions"
            yield p
