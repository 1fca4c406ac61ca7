"""Integer, bit, floating-point and half-precision arithmetic, comparisons and approximations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from .formats import FLOATS, generator, operand, scalar, width
from .program import Exact, N, Near, Program, threadwise

LETTERS = "abcefg"


def simple(
    name: str, operands: str, result: str | None = None, body: str = "", label: str = "", **keywords
) -> Program:
    """One instruction on operands of the types listed; ``body`` replaces the plain form."""
    types, label = operands.split(), label or name
    rng = generator(label)
    inputs = [(operand(t, N, k, rng), 1) for k, t in enumerate(types)]
    result = result or types[0]
    body = body or f"{name} %d, {', '.join('%' + c for c in LETTERS[: len(types)])};"
    return threadwise(label, body, inputs, result, Exact(result), **keywords)


def predicate(name: str, operands: str, body: str = "", **keywords) -> Program:
    """A comparison into a predicate, stored as 0 or 1."""
    letters = ", ".join("%" + c for c in LETTERS[: len(operands.split())])
    body = body or f"{name} %p0, {letters};"
    return simple(name, operands, "b32", body + " selp.b32 %d, 1, 0, %p0;", **keywords)


def integers() -> Iterator[Program]:
    for ty in ("s16", "u16", "s32", "u32", "s64", "u64"):
        bits = width(ty)
        for name in ("add", "sub", "mul.lo", "mul.hi", "min", "max"):
            yield simple(f"{name}.{ty}", f"{ty} {ty}")
        yield simple(f"mad.lo.{ty}", f"{ty} {ty} {ty}")
        # Division by zero and the overflow of the most negative number are not defined: divisors are odd and small.
        for name in ("div", "rem"):
            yield simple(f"{name}.{ty}", f"{ty} {ty}",
                body=f"and.b{bits} %b, %b, 127; or.b{bits} %b, %b, 3; {name}.{ty} %d, %a, %b;")  # fmt: skip
        yield simple(f"shr.{ty}", f"{ty} b32", body=f"and.b32 %r0, %b, 127; shr.{ty} %d, %a, %r0;")
        for cmp in ("eq", "ne", "lt", "le", "gt", "ge"):
            yield predicate(f"setp.{cmp}.{ty}", f"{ty} {ty}")
        if bits < 64:
            yield simple(f"mul.wide.{ty}", f"{ty} {ty}", f"{ty[0]}{2 * bits}")
            yield simple(f"mad.wide.{ty}", f"{ty} {ty} {ty[0]}{2 * bits}", f"{ty[0]}{2 * bits}")
        yield simple(f"selp.{ty}", f"{ty} {ty} b32",
            body=f"setp.lt.s32 %p0, %c, 0; selp.{ty} %d, %a, %b, %p0;")  # fmt: skip
        yield simple(f"slct.{ty}.s32", f"{ty} {ty} s32")
    for ty in ("s16", "s32", "s64"):
        yield simple(f"abs.{ty}", ty)
        yield simple(f"neg.{ty}", ty)
    for ty in ("s32", "u32"):
        for name in ("mad.hi", "sad", "mad24.lo", "mad24.hi"):
            yield simple(f"{name}.{ty}", f"{ty} {ty} {ty}")
        for name in ("mul24.lo", "mul24.hi"):
            yield simple(f"{name}.{ty}", f"{ty} {ty}")
        for other in ("s32", "u32"):
            yield simple(f"dp4a.{ty}.{other}", f"{ty} {other} s32")
            for half in ("lo", "hi"):
                yield simple(f"dp2a.{half}.{ty}.{other}", f"{ty} {other} s32")
        for cmp in ("eq", "lt", "ge"):
            yield simple(f"set.{cmp}.u32.{ty}", f"{ty} {ty}", "u32")
            yield simple(f"set.{cmp}.f32.{ty}", f"{ty} {ty}", "f32")
        yield simple(f"mad.hi.cc/madc.hi.{ty}", f"{ty} {ty} {ty}",
            body=f"mad.lo.cc.{ty} %r0, %a, %b, %c; madc.hi.{ty} %d, %a, %b, %c;")  # fmt: skip
    for ty in ("s64", "u64"):
        yield simple(f"sad.{ty}", f"{ty} {ty} {ty}")
        yield simple(f"mad.hi.{ty}", f"{ty} {ty} {ty}")
    for name in ("add.sat", "sub.sat"):
        yield simple(f"{name}.s32", "s32 s32")
    yield simple("mad.hi.sat.s32", "s32 s32 s32")
    for name in ("add", "sub"):
        for ty in ("u32", "u64"):
            bits = width(ty)
            yield simple(f"{name}.cc/{name}c.{ty}", f"{ty} {ty} {ty}",
                body=f"{name}.cc.{ty} %a, %a, %b; {name}c.{ty} %d, %c, %b; xor.b{bits} %d, %d, %a;")  # fmt: skip
    for name in ("add", "min", "max"):
        for ty in ("s16x2", "u16x2"):
            yield simple(f"{name}.{ty}", f"{ty} {ty}")


def bits() -> Iterator[Program]:
    for bits in (16, 32, 64):
        for name in ("and", "or", "xor"):
            yield simple(f"{name}.b{bits}", f"b{bits} b{bits}")
        yield simple(f"not.b{bits}", f"b{bits}")
        yield simple(f"cnot.b{bits}", f"b{bits}")
        yield simple(f"shl.b{bits}", f"b{bits} b32", body=f"and.b32 %r0, %b, 127; shl.b{bits} %d, %a, %r0;")
        yield simple(f"selp.b{bits}", f"b{bits} b{bits} b32",
            body=f"setp.lt.s32 %p0, %c, 0; selp.b{bits} %d, %a, %b, %p0;")  # fmt: skip
    for name in ("and", "or", "xor", "not"):
        second = "" if name == "not" else ", %p1"
        yield predicate(f"{name}.pred", "s32 s32", body=f"setp.lt.s32 %p2, %a, 0; setp.lt.s32 %p1, %b, 0; {name}.pred %p0, %p2{second};")  # fmt: skip
    for bits in (32, 64):
        for name in ("popc", "clz"):
            yield simple(f"{name}.b{bits}", f"b{bits}", "b32")
        yield simple(f"brev.b{bits}", f"b{bits}")
        yield simple(f"bfi.b{bits}", f"b{bits} b{bits} b32",
            body="and.b32 %r0, %c, 127; shr.u32 %r1, %c, 8; and.b32 %r1, %r1, 127;"
            f" bfi.b{bits} %d, %a, %b, %r0, %r1;")  # fmt: skip
        for sign in "su":
            ty = f"{sign}{bits}"
            yield simple(f"bfe.{ty}", f"{ty} b32 b32", body=f"and.b32 %b, %b, 255; and.b32 %c, %c, 127; bfe.{ty} %d, %a, %b, %c;")  # fmt: skip
            yield simple(f"bfind.{ty}", ty, "b32")
            yield simple(f"bfind.shiftamt.{ty}", ty, "b32")
    for lut in (0x80, 0x96, 0xCA, 0xE8, 0x01, 0x1D):
        yield simple("lop3.b32", "b32 b32 b32", body=f"lop3.b32 %d, %a, %b, %c, {lut};", label=f"lop3.b32 {lut:#x}")  # fmt: skip
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield simple(f"prmt.b32{mode}", "b32 b32 b32")
    for bits, part in ((16, 8), (32, 8), (32, 16), (64, 16), (64, 32)):
        names = [f"x{k}" for k in range(bits // part)]
        yield simple(f"mov.b{bits}", f"b{bits}", label=f"mov.b{bits} of {bits // part} parts",
            body=f".reg .b{part} {', '.join(names)}; mov.b{bits} {{{', '.join(names)}}}, %a;"
            f" mov.b{bits} %d, {{{', '.join(reversed(names))}}};")  # fmt: skip
    for name, parts in itertools.product(("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"), (2, 4)):
        for types, mode in itertools.product(
            ("u32.u32.u32", "s32.s32.s32", "s32.u32.s32"), ("", ".sat", ".add")
        ):
            yield simple(f"{name}{parts}.{types}{mode}", "b32 b32 b32")
    for name in ("l.wrap", "l.clamp", "r.wrap", "r.clamp"):
        yield simple(f"shf.{name}.b32", "b32 b32 b32")
    for mode in ("clamp", "wrap"):
        for ty in ("s32", "u32"):
            yield simple(f"szext.{mode}.{ty}", f"{ty} u32")
        yield simple(f"bmsk.{mode}.b32", "u32 u32")
    yield simple(
        "fns.b32", "b32 b32 s32", body="and.b32 %b, %b, 31; rem.s32 %c, %c, 33; fns.b32 %d, %a, %b, %c;"
    )


ORDERED = ("eq", "ne", "lt", "le", "gt", "ge")
UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def floats() -> Iterator[Program]:
    for ty in ("f32", "f64"):
        for ftz in ("", ".ftz") if ty == "f32" else ("",):
            for rnd in ("rn", "rz", "rm", "rp"):
                for name, count in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3), ("div", 2), ("sqrt", 1), ("rcp", 1)):  # fmt: skip
                    yield simple(f"{name}.{rnd}{ftz}.{ty}", " ".join([ty] * count))
            for name in ("min", "max"):
                yield simple(f"{name}{ftz}.{ty}", f"{ty} {ty}")
            for name in ("abs", "neg"):
                yield simple(f"{name}{ftz}.{ty}", ty)
            for cmp in ORDERED + UNORDERED:
                yield predicate(f"setp.{cmp}{ftz}.{ty}", f"{ty} {ty}")
            yield simple(f"slct{ftz}.{ty}.s32" if not ftz else "slct.ftz.f32.f32",
                f"{ty} {ty} {'f32' if ftz else 's32'}")  # fmt: skip
        yield simple(f"copysign.{ty}", f"{ty} {ty}")
        for kind in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield predicate(f"testp.{kind}.{ty}", ty)
        for cmp in ("lt", "geu", "nan"):
            yield simple(f"set.{cmp}.u32.{ty}", f"{ty} {ty}", "u32")
            yield simple(f"set.{cmp}.f32.{ty}", f"{ty} {ty}", "f32")
            # A boolean operation with a further predicate.
            yield predicate(f"setp.{cmp}.and.{ty}", f"{ty} {ty} s32", body=f"setp.lt.s32 %p1, %c, 0; setp.{cmp}.and.{ty} %p0, %a, %b, !%p1;")  # fmt: skip
    for name, count in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3)):
        for mode in ("rn.sat", "rz.sat", "rn.ftz.sat"):
            yield simple(f"{name}.{mode}.f32", " ".join(["f32"] * count))
    for name in ("min.NaN", "max.NaN", "min.ftz.NaN", "max.ftz.NaN", "min.xorsign.abs", "max.xorsign.abs",
                 "min.NaN.xorsign.abs"):  # fmt: skip
        yield simple(f"{name}.f32", "f32 f32")


def smallest_normal() -> Iterator[Program]:
    """Results just below the smallest normal number: whether ``.ftz`` looks at them before or after rounding."""
    rng = generator("smallest normal")
    for ty in ("f32", "f16"):
        f = FLOATS[ty]
        x = np.exp2(-rng.integers(f.fraction // 2, f.fraction + 1, N).astype(np.float64))
        scale = np.where(rng.integers(0, 2, N), 1.0, -1.0)
        half = np.exp2((1 - f.bias) // 2)
        other = np.exp2((1 - f.bias) - (1 - f.bias) // 2)
        # (1 + x)(1 − x) = 1 − x²: exact products a hair below a power of two.
        a, b = f.encode((1 + x) * half * scale), f.encode((1 - x) * other)
        c = np.where(rng.integers(0, 2, N), f.encode(np.exp2(1.0 - f.bias) * scale), 0).astype(a.dtype)
        b3 = np.where(c != 0, f.encode(-x * x / 8 * other), b).astype(b.dtype)
        modes = ("rn", "rz", "rm", "rp") if ty == "f32" else ("rn",)
        for mode in modes:
            for name, inputs in (("mul", (a, b)), ("fma", (a, b3, c))):
                instruction = f"{name}.{mode}.ftz.{ty}"
                body = f"{instruction} %d, {', '.join('%' + x for x in LETTERS[: len(inputs)])};"
                label = f"{instruction} at the smallest normal"
                yield threadwise(label, body, [(v, 1) for v in inputs], ty, Exact(ty))
        yield threadwise(
            f"fma.rn.{ty} at the smallest normal",
            f"fma.rn.{ty} %d, %a, %b, %c;",
            [(v, 1) for v in (a, b3, c)],
            ty,
            Exact(ty),
        )


def halves() -> Iterator[Program]:
    for base in ("f16", "bf16"):
        for ty in (base, base + "x2"):
            for name in ("add", "sub", "mul"):
                for mode in ("", ".rn"):
                    yield simple(f"{name}{mode}.{ty}", f"{ty} {ty}")
                if base == "f16":
                    for mode in (".rn.ftz", ".rn.sat"):
                        yield simple(f"{name}{mode}.{ty}", f"{ty} {ty}")
            modes = ("rn", "rn.relu") + (("rn.ftz", "rn.sat", "rn.ftz.relu") if base == "f16" else ())
            for mode in modes:
                yield simple(f"fma.{mode}.{ty}", f"{ty} {ty} {ty}")
            for name in ("min", "max"):
                for mode in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs") + (
                    (".ftz",) if base == "f16" else ()
                ):
                    yield simple(f"{name}{mode}.{ty}", f"{ty} {ty}")
            for name in ("abs", "neg"):
                yield simple(f"{name}.{ty}", ty)
        for cmp in ORDERED + UNORDERED:
            yield predicate(f"setp.{cmp}.{base}", f"{base} {base}")
        for cmp in ("lt", "neu"):
            yield predicate(f"setp.{cmp}.{base}x2", f"{base}x2 {base}x2", body=(
                f"setp.{cmp}.{base}x2 %p1|%p2, %a, %b; xor.pred %p0, %p1, %p2;"))  # fmt: skip
            yield simple(f"set.{cmp}.u32.{base}", f"{base} {base}", "u32")
            yield simple(f"set.{cmp}.{base}x2.{base}x2", f"{base}x2 {base}x2")


def approximation(
    name: str, ty: str, function, low: float, high: float, relative=0.0, absolute=0.0, count=1, label=""
):
    """A function in the domain for which the ISA bounds its error."""
    rng = generator(label or name)
    base, lanes = scalar(ty)
    f = FLOATS[base]
    values = [f.encode(rng.uniform(low, high, N * lanes)) for _ in range(count)]
    exact = function(*(f.decode(v) for v in values))
    inputs = [(v if lanes == 1 else v.view(np.uint32), 1) for v in values]
    body = f"{name} %d, {', '.join('%' + c for c in LETTERS[:count])};"
    return threadwise(label or name, body, inputs, ty, Near(ty, exact, relative, absolute))


def approximations() -> Iterator[Program]:
    """The bounds are those of the ISA's description of each instruction."""
    for ftz in ("", ".ftz"):
        yield approximation(f"ex2.approx{ftz}.f32", "f32", np.exp2, -120, 120, relative=2.0**-22)
        yield approximation(f"lg2.approx{ftz}.f32", "f32", np.log2, 0.5, 2, absolute=2.0**-22)
        yield approximation(f"rcp.approx{ftz}.f32", "f32", lambda x: 1 / x, 1e-3, 1e3, relative=2.0**-23)
        yield approximation(f"sqrt.approx{ftz}.f32", "f32", np.sqrt, 1e-3, 1e3, relative=2.0**-23)
        yield approximation(f"rsqrt.approx{ftz}.f32", "f32", lambda x: 1 / np.sqrt(x), 1e-3, 1e3, relative=2.0**-22.9)  # fmt: skip
        yield approximation(f"sin.approx{ftz}.f32", "f32", np.sin, -3.14, 3.14, absolute=2.0**-20.5)
        yield approximation(f"cos.approx{ftz}.f32", "f32", np.cos, -3.14, 3.14, absolute=2.0**-20.5)
        for name in ("div.approx", "div.full"):
            yield approximation(f"{name}{ftz}.f32", "f32", lambda x, y: x / y, 0.01, 100, relative=2.0**-22, count=2)  # fmt: skip
    yield approximation(
        "lg2.approx.f32", "f32", np.log2, 2, 1e6, relative=2.0**-22, label="lg2.approx.f32 wide"
    )
    yield approximation("tanh.approx.f32", "f32", np.tanh, -8, 8, relative=2.0**-11)
    for ty, relative in (("f16", 2.0**-9.9), ("f16x2", 2.0**-9.9)):
        yield approximation(f"ex2.approx.{ty}", ty, np.exp2, -12, 12, relative=relative)
        yield approximation(f"tanh.approx.{ty}", ty, np.tanh, -4, 4, absolute=2.0**-10.987)
    for ty in ("bf16", "bf16x2"):
        yield approximation(f"ex2.approx.ftz.{ty}", ty, np.exp2, -60, 60, relative=2.0**-7)
        yield approximation(f"tanh.approx.{ty}", ty, np.tanh, -4, 4, absolute=2.0**-8)
    yield approximation("rcp.approx.ftz.f64", "f64", lambda x: 1 / x, 1e-3, 1e3, relative=2.0**-20)
    yield approximation("rsqrt.approx.f64", "f64", lambda x: 1 / np.sqrt(x), 1e-3, 1e3, relative=2.0**-20)
    # At zeros, infinities and NaN approximations are defined exactly.
    for name in (
        "ex2.approx.ftz",
        "lg2.approx.ftz",
        "rcp.approx.ftz",
        "sqrt.approx.ftz",
        "rsqrt.approx.ftz",
        "sin.approx.ftz",
        "tanh.approx",
    ):
        edges = np.array([0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000], np.uint32)
        values = np.resize(edges, N)
        yield threadwise(f"{name}.f32 edges", f"{name}.f32 %d, %a;", [(values, 1)], "f32", Exact("f32"))


FUNCTIONS = """
.func (.param .b32 y) twice(.param .b32 x) { .reg .b32 %r; ld.param.b32 %r, [x]; shl.b32 %r, %r, 1; st.param.b32 [y], %r; ret; }
.func (.param .b32 y) third(.param .b32 x) { .reg .b32 %r; ld.param.b32 %r, [x]; div.u32 %r, %r, 3; st.param.b32 [y], %r; ret; }
.func (.param .b32 y) steps(.param .b32 x, .param .b64 f) {
  .reg .b32 %r<4>; .reg .pred %p; .reg .b64 %f; ld.param.b32 %r0, [x]; ld.param.b64 %f, [f]; mov.b32 %r2, 0;
  setp.lt.u32 %p, %r0, 2; @%p bra E; and.b32 %r1, %r0, 15; shr.u32 %r0, %r0, 2;
  { .param .b32 a; .param .b64 b; .param .b32 c; st.param.b32 [a], %r0; st.param.b64 [b], %f; call (c), steps, (a, b); ld.param.b32 %r2, [c]; }
  { .param .b32 a; .param .b32 c; st.param.b32 [a], %r2; P: .callprototype (.param .b32 _) _ (.param .b32 _); call (c), %f, (a), P; ld.param.b32 %r2, [c]; }
  add.u32 %r2, %r2, %r1;
  E: st.param.b32 [y], %r2; ret;
}
.global .u64 table[2] = {twice, third};
"""  # fmt: skip


def calls() -> Iterator[Program]:
    """Functions by name and by address, and one that calls itself."""
    fetch = "and.b32 %r0, %b, 1; mov.b64 %rd0, table; mad.wide.u32 %rd0, %r0, 8, %rd0; ld.global.b64 %rd1, [%rd0]; "
    prototype = "P: .callprototype (.param .b32 _) _ (.param .b32 _);"
    give = "{ .param .b32 a; .param .b32 c; st.param.b32 [a], %a; "
    for name, body in (
        ("call by name", give + "call (c), twice, (a); ld.param.b32 %d, [c]; }"),
        ("call by address", fetch + give + prototype + "call (c), %rd1, (a), P; ld.param.b32 %d, [c]; }"),
        ("call that a predicate guards", fetch + "setp.lt.s32 %p0, %b, 0; mov.b32 %d, 7; " + give + prototype
            + "@%p0 call (c), %rd1, (a), P; ld.param.b32 %r1, [c]; selp.b32 %d, %r1, %d, %p0; }"),
        ("call of a function that calls itself", fetch + give
            + ".param .b64 f; st.param.b64 [f], %rd1; call (c), steps, (a, f); ld.param.b32 %d, [c]; }"),
    ):  # fmt: skip
        yield simple("call", "u32 b32", "b32", body=body, label=name, declare=FUNCTIONS)


def programs() -> Iterator[Program]:
    for group in (integers, bits, floats, smallest_normal, halves, approximations, calls):
        for p in group():
            p.group = group.__name__
            yield p
