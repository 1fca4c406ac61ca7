"""Runs small generated PTX programs on the GPU and in the simulator, and compares every bit that the ISA defines.

``python tests/gpu/sim_vs_gpu.py`` needs NumPy, the wheel and an NVIDIA driver; PTX goes to the driver's own compiler.
``--sim`` runs the simulator alone, to check the programs where there is no GPU; an argument runs the programs whose name
contains it.

Each program is one instruction of one type on 128 threads, each with its own operands: edge values (zeros of both signs,
infinities, NaNs, subnormals, extreme integers) and random bits. Results are 128 elements a thread stores at the end. How
they are compared:

- ``exact``: bit for bit; two NaNs are equal where the ISA leaves the payload open;
- ``ulp N``: at most N units in the last place away from the simulator's value, or an absolute error, for approximate
  instructions (PTX ISA, "Floating Point Instructions");
- ``mma``: |Δ| ≤ c · Σ|a·b|, since tensor cores align and truncate products.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from tilewright.testing import simulate_ptx

THREADS = 128
BITS = {"b16": 16, "f16": 16, "bf16": 16, "b32": 32, "f32": 32, "b64": 64, "f64": 64}
SPECIAL = {
    8: [0, 1, 2, 0x7F, 0x80, 0x81, 0xFF, 0x3C],
    16: [0, 0x8000, 1, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x7FFF, 0x3F80,
         0xFFFF],
    32: [0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
         0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0x4B000001, 0x3F000000, 0x3FC00000, 0x4F000000],
    64: [0, 1 << 63, 1, (1 << 63) + 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x3FF0000000000000, 0xBFF0000000000000,
         0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, (1 << 64) - 1, 0x43E0000000000000],
}  # fmt: skip
UINT = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


@dataclass
class Program:
    """One PTX program and how its result is judged."""

    name: str
    body: str
    inputs: list[int]  # bits of each input element
    output: int  # bits of an output element
    floats: str = ""  # the type of the output where NaNs compare equal: f16, bf16, f32, f64
    ulp: float = 0
    absolute: float = 0
    domain: tuple[float, float] | None = None  # float inputs are uniform in it
    per_thread: int = 1  # output elements a thread
    target: int = 80
    mma: float = 0  # c of |Δ| ≤ c · Σ|a·b|; inputs are small then
    elements: list[int] = field(default_factory=list)  # input elements a thread
    scale: str = ""  # float type of the inputs, for domain and mma


def register(bits: int, name: str) -> str:
    return f".reg .b{max(bits, 16)} {name};"


def text(p: Program) -> str:
    """The module: loads %a, %b, %c (of more elements: %a0, %a1, …), the body, stores %d (%d0, …)."""
    lines, params = [], []
    for k, bits in enumerate(p.inputs):
        letter, count = "abcdefg"[k] if k < 3 else f"x{k}", (p.elements or [1] * len(p.inputs))[k]
        params.append(f".param .u64 in{k}")
        lines.append(f"ld.param.u64 %ptr, [in{k}];\nmad.wide.u32 %ptr, %tid0, {bits // 8 * count}, %ptr;")
        for i in range(count):
            name = f"%{letter}{i if count > 1 else ''}"
            lines.append(register(bits, name))
            kind = "u8" if bits == 8 else f"b{bits}"
            lines.append(f"ld.global.{kind} {name}, [%ptr+{bits // 8 * i}];")
    names = [f"%d{i if p.per_thread > 1 else ''}" for i in range(p.per_thread)]
    lines += [register(p.output, n) for n in names]
    lines.append(p.body)
    lines.append(
        f"ld.param.u64 %ptr, [out];\nmad.wide.u32 %ptr, %tid0, {p.output // 8 * p.per_thread}, %ptr;"
    )
    kind = "u8" if p.output == 8 else f"b{p.output}"
    lines += [f"st.global.{kind} [%ptr+{p.output // 8 * i}], {n};" for i, n in enumerate(names)]
    params.append(".param .u64 out")
    version, arch = ("8.0", f"sm_{p.target}")
    body = "\n".join(lines)
    return (
        f".version {version}\n.target {arch}\n.address_size 64\n.visible .entry k({', '.join(params)}) {{\n"
        f".reg .b64 %ptr; .reg .b32 %tid0; .reg .b32 %t<8>; .reg .b64 %u<8>; .reg .b16 %h<8>; .reg .pred %p<8>;\n"
        f"mov.u32 %tid0, %tid.x;\n{body}\nret;\n}}\n"
    )


def programs() -> list[Program]:
    """All of them."""
    out: list[Program] = []

    def add(name, body, inputs, output, **kw):
        out.append(Program(name, body, inputs, output, **kw))

    def op(name, count, ty, result=None, **kw):
        """An instruction with `count` operands of one type."""
        bits = int(ty[1:]) if ty[0] in "usb" and ty[1:].isdigit() else BITS[ty]
        floats = ty if ty in ("f16", "bf16", "f32", "f64") else ""
        add(
            name,
            f"{name} %d, {', '.join('%' + c for c in 'abc'[:count])};",
            [bits] * count,
            result or bits,
            floats=floats,
            **kw,
        )

    for ty in ("s16", "u16", "s32", "u32", "s64", "u64"):
        for name in ("add", "sub", "mul.lo", "mul.hi", "min", "max"):
            op(f"{name}.{ty}", 2, ty)
        op(f"mad.lo.{ty}", 3, ty)
        bits = int(ty[1:])
        # Division by zero and the overflow of the most negative number are not defined: the divisor is odd and small.
        for name in ("div", "rem"):
            add(
                f"{name}.{ty}",
                f"and.b{bits} %b, %b, 127; or.b{bits} %b, %b, 3; {name}.{ty} %d, %a, %b;",
                [bits, bits],
                bits,
            )
        add(f"shr.{ty}", f"and.b32 %t0, %b, 127; shr.{ty} %d, %a, %t0;", [bits, 32], bits)
        for cmp in ("eq", "ne", "lt", "le", "gt", "ge"):
            add(f"setp.{cmp}.{ty}", f"setp.{cmp}.{ty} %p0, %a, %b; selp.b32 %d, 1, 0, %p0;", [bits, bits], 32)
        if bits < 64:
            op(f"mul.wide.{ty}", 2, ty, result=2 * bits)
    for ty in ("s16", "s32", "s64"):
        op(f"abs.{ty}", 1, ty)
        op(f"neg.{ty}", 1, ty)
    for ty in ("s32", "u32"):
        op(f"mad.hi.{ty}", 3, ty)
        op(f"mul24.lo.{ty}", 2, ty)
        op(f"sad.{ty}", 3, ty)
        op(f"dp4a.{ty}.{ty}", 3, ty)
        add(f"bfe.{ty}", f"and.b32 %b, %b, 255; and.b32 %c, %c, 255; bfe.{ty} %d, %a, %b, %c;", [32] * 3, 32)
        add(f"bfind.{ty}", f"bfind.{ty} %d, %a;", [32], 32)
        add(f"set.lt.u32.{ty}", f"set.lt.u32.{ty} %d, %a, %b;", [32, 32], 32)
    op("add.sat.s32", 2, "s32")
    op("sub.sat.s32", 2, "s32")
    for bits in (16, 32, 64):
        for name in ("and", "or", "xor"):
            op(f"{name}.b{bits}", 2, f"b{bits}")
        op(f"not.b{bits}", 1, f"b{bits}")
        add(f"shl.b{bits}", f"and.b32 %t0, %b, 127; shl.b{bits} %d, %a, %t0;", [bits, 32], bits)
    for bits in (32, 64):
        add(f"popc.b{bits}", f"popc.b{bits} %d, %a;", [bits], 32)
        add(f"clz.b{bits}", f"clz.b{bits} %d, %a;", [bits], 32)
        add(f"brev.b{bits}", f"brev.b{bits} %d, %a;", [bits], bits)
        add(f"bfi.b{bits}", f"and.b32 %t0, %c, 63; shr.u32 %t1, %c, 8; and.b32 %t1, %t1, 63; bfi.b{bits} %d, %a, %b, %t0, %t1;",
            [bits, bits, 32], bits)  # fmt: skip
    for lut in (0x80, 0x96, 0xCA, 0xE8):
        add(f"lop3.b32 {lut:#x}", f"lop3.b32 %d, %a, %b, %c, {lut};", [32] * 3, 32)
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        add(f"prmt.b32{mode}", f"prmt.b32{mode} %d, %a, %b, %c;", [32] * 3, 32)
    for name in ("shf.l.wrap", "shf.l.clamp", "shf.r.wrap", "shf.r.clamp"):
        op(f"{name}.b32", 3, "b32")

    for ty in ("f32", "f64"):
        for rnd in ("rn", "rz", "rm", "rp"):
            for name, count in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3), ("div", 2)):
                op(f"{name}.{rnd}.{ty}", count, ty)
            op(f"sqrt.{rnd}.{ty}", 1, ty)
            op(f"rcp.{rnd}.{ty}", 1, ty)
        for name in ("min", "max"):
            op(f"{name}.{ty}", 2, ty)
        for name in ("abs", "neg"):
            op(f"{name}.{ty}", 1, ty)
        for cmp in (
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "equ",
            "neu",
            "ltu",
            "leu",
            "gtu",
            "geu",
            "num",
            "nan",
        ):
            bits = BITS[ty]
            add(f"setp.{cmp}.{ty}", f"setp.{cmp}.{ty} %p0, %a, %b; selp.b32 %d, 1, 0, %p0;", [bits, bits], 32)
        add(f"copysign.{ty}", f"copysign.{ty} %d, %a, %b;", [BITS[ty]] * 2, BITS[ty], floats=ty)
    for name, count in (
        ("add.rn.ftz", 2),
        ("mul.rn.ftz", 2),
        ("fma.rn.ftz", 3),
        ("add.rn.sat", 2),
        ("mul.rn.sat", 2),
    ):
        op(f"{name}.f32", count, "f32")
    for name in ("min.NaN", "max.NaN", "min.ftz", "max.ftz"):
        op(f"{name}.f32", 2, "f32")
    for ty in ("f16", "bf16"):
        for name, count in (
            ("fma.rn", 3),
            ("min", 2),
            ("max", 2),
            ("min.NaN", 2),
            ("max.NaN", 2),
            ("abs", 1),
            ("neg", 1),
        ):
            op(f"{name}.{ty}", count, ty)
    for name in ("add", "sub", "mul"):
        op(f"{name}.rn.f16", 2, "f16")
        add(f"{name}.rn.f16x2", f"{name}.rn.f16x2 %d, %a, %b;", [32, 32], 32, floats="f16x2")
    for ty in ("f16x2", "bf16x2"):
        add(f"fma.rn.{ty}", f"fma.rn.{ty} %d, %a, %b, %c;", [32] * 3, 32, floats=ty)

    # Approximations, in the domains for which the ISA gives a bound.
    for name, ulp, absolute, domain in (
        ("ex2.approx.ftz.f32", 2, 0, (-120.0, 120.0)),
        ("lg2.approx.f32", 2, 2.0**-21, (1e-3, 1e3)),
        ("rcp.approx.f32", 1, 0, (1e-3, 1e3)),
        ("rsqrt.approx.f32", 3, 0, (1e-3, 1e3)),
        ("sqrt.approx.f32", 2, 0, (1e-3, 1e3)),
        ("sin.approx.f32", 0, 2.0**-20, (-3.14, 3.14)),
        ("cos.approx.f32", 0, 2.0**-20, (-3.14, 3.14)),
        ("tanh.approx.f32", 0, 2.0**-10.5, (-8.0, 8.0)),
    ):
        add(
            name,
            f"{name} %d, %a;",
            [32],
            32,
            floats="f32",
            ulp=ulp,
            absolute=absolute,
            domain=domain,
            scale="f32",
        )
    for name, ulp in (("div.approx.f32", 4), ("div.full.f32", 4)):
        add(
            name,
            f"{name} %d, %a, %b;",
            [32, 32],
            32,
            floats="f32",
            ulp=ulp,
            domain=(0.01, 100.0),
            scale="f32",
        )

    ints = {"s8": 8, "u8": 8, "s16": 16, "u16": 16, "s32": 32, "u32": 32, "s64": 64, "u64": 64}
    for ty, bits in ints.items():
        for f in ("f16", "f32", "f64"):
            for rnd in ("rn",) if f == "f16" else ("rn", "rz"):
                add(f"cvt.{rnd}.{f}.{ty}", f"cvt.{rnd}.{f}.{ty} %d, %a;", [bits], BITS[f], floats=f)
            if bits >= 32:
                # The value of a NaN as an integer is not defined.
                add(f"cvt.rzi.{ty}.{f}", f"setp.nan.{f} %p0, %a, %a; @%p0 mov.b{BITS[f]} %a, 0; cvt.rzi.{ty}.{f} %d, %a;",
                    [BITS[f]], bits)  # fmt: skip
    for f in ("f32", "f64"):
        for rnd in ("rni", "rzi", "rmi", "rpi"):
            add(f"cvt.{rnd}.{f}.{f}", f"cvt.{rnd}.{f}.{f} %d, %a;", [BITS[f]], BITS[f], floats=f)
    for rnd in ("rn", "rz", "rm", "rp"):
        add(f"cvt.{rnd}.f32.f64", f"cvt.{rnd}.f32.f64 %d, %a;", [64], 32, floats="f32")
    for rnd in ("rn", "rz"):
        for f in ("f16", "bf16"):
            add(f"cvt.{rnd}.{f}.f32", f"cvt.{rnd}.{f}.f32 %d, %a;", [32], 16, floats=f)
            add(f"cvt.{rnd}.{f}x2.f32", f"cvt.{rnd}.{f}x2.f32 %d, %a, %b;", [32, 32], 32, floats=f + "x2")
    add("cvt.f32.f16", "cvt.f32.f16 %d, %a;", [16], 32, floats="f32")
    add("cvt.f64.f32", "cvt.f64.f32 %d, %a;", [32], 64, floats="f64")
    add("cvt.f64.f16", "cvt.f64.f16 %d, %a;", [16], 64, floats="f64")
    for ty, wide in (
        ("s8", "s32"),
        ("u8", "u32"),
        ("s16", "s32"),
        ("s32", "s64"),
        ("u32", "u64"),
        ("s64", "s32"),
    ):
        add(f"cvt.{wide}.{ty}", f"cvt.{wide}.{ty} %d, %a;", [ints[ty]], ints[wide])
    for narrow, ty in (
        ("s8", "s32"),
        ("u8", "s32"),
        ("s16", "s32"),
        ("u16", "s32"),
        ("s32", "s64"),
        ("u32", "s64"),
    ):
        if ints[narrow] > 8:
            add(f"cvt.sat.{narrow}.{ty}", f"cvt.sat.{narrow}.{ty} %d, %a;", [ints[ty]], ints[narrow])
        else:
            add(f"cvt.sat.{narrow}.{ty}", f"cvt.sat.{narrow}.{ty} %d, %a;", [ints[ty]], 32)

    for mode in ("idx", "up", "down", "bfly"):
        clamp = 0 if mode == "up" else 31
        for lane in (1, 5, 16):
            add(f"shfl.sync.{mode} {lane}",
                f"shfl.sync.{mode}.b32 %d0|%p0, %a, {lane}, {clamp}, 0xffffffff; selp.b32 %d1, 1, 0, %p0;",
                [32], 32, per_thread=2)  # fmt: skip
    for name in ("add", "min", "max"):
        for ty in ("s32", "u32"):
            add(f"redux.sync.{name}.{ty}", f"redux.sync.{name}.{ty} %d, %a, 0xffffffff;", [32], 32)
            add(f"atom.shared.{name}.{ty}", atomic(f"atom.shared.{name}.{ty} %t0, [%u0], %a;"), [32], 32)
    for name in ("and", "or", "xor"):
        add(f"redux.sync.{name}.b32", f"redux.sync.{name}.b32 %d, %a, 0xffffffff;", [32], 32)
        add(f"atom.shared.{name}.b32", atomic(f"atom.shared.{name}.b32 %t0, [%u0], %a;"), [32], 32)
    add("vote.sync.ballot", "setp.lt.s32 %p0, %a, 0; vote.sync.ballot.b32 %d, %p0, 0xffffffff;", [32], 32)
    for name in ("any", "all", "uni"):
        add(f"vote.sync.{name}", f"setp.lt.s32 %p0, %a, 0; vote.sync.{name}.pred %p1, %p0, 0xffffffff; selp.b32 %d, 1, 0, %p1;",
            [32], 32)  # fmt: skip
    add("match.any.sync.b32", "and.b32 %a, %a, 3; match.any.sync.b32 %d, %a, 0xffffffff;", [32], 32)
    add("shared transpose",
        ".shared .align 16 .b8 s[512]; mov.u64 %u0, s; mad.wide.u32 %u1, %tid0, 4, %u0; st.shared.b32 [%u1], %a;"
        " bar.sync 0; xor.b32 %t0, %tid0, 77; mad.wide.u32 %u1, %t0, 4, %u0; ld.shared.b32 %d, [%u1];",
        [32], 32)  # fmt: skip
    for trans in ("", ".trans"):
        add(f"ldmatrix.x4{trans}",
            ".shared .align 16 .b8 s[2048]; mov.u64 %u0, s; mad.wide.u32 %u1, %tid0, 16, %u0;"
            " st.shared.v4.b32 [%u1], {%a0, %a1, %a2, %a3}; bar.sync 0;"
            f" ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%d0, %d1, %d2, %d3}}, [%u1];",
            [32], 32, per_thread=4, elements=[4])  # fmt: skip

    def mma(shape, a, b, c, count, ty, bound):
        body = (
            f"mma.sync.aligned.{shape}.row.col.{ty} {{{listed('d', count[3])}}}, {{{listed('a', count[0])}}},"
            f" {{{listed('b', count[1])}}}, {{{listed('c', count[2])}}};"
        )
        float_out = ty.split(".")[0]
        add(f"mma.{shape}.{ty}", body, [32, 32, 32], 32, per_thread=count[3], elements=list(count[:3]), mma=bound,
            scale=f"{a},{b},{c}", floats={"f32": "f32", "f16": "f16x2"}.get(float_out, ""))  # fmt: skip

    def listed(letter, n):
        return ", ".join(f"%{letter}{i if n > 1 else ''}" for i in range(n))

    # The bounds: one unit of the accumulator's alignment a product; fp16 accumulators round to fp16 as well.
    mma("m16n8k16", "f16", "f16", "f32", (4, 2, 4, 4), "f32.f16.f16.f32", 2.0**-21)
    mma("m16n8k8", "f16", "f16", "f32", (2, 1, 4, 4), "f32.f16.f16.f32", 2.0**-21)
    mma("m16n8k16", "bf16", "bf16", "f32", (4, 2, 4, 4), "f32.bf16.bf16.f32", 2.0**-21)
    mma("m16n8k8", "bf16", "bf16", "f32", (2, 1, 4, 4), "f32.bf16.bf16.f32", 2.0**-21)
    mma("m16n8k8", "tf32", "tf32", "f32", (4, 2, 4, 4), "f32.tf32.tf32.f32", 2.0**-21)
    mma("m16n8k4", "tf32", "tf32", "f32", (2, 1, 4, 4), "f32.tf32.tf32.f32", 2.0**-21)
    mma("m16n8k16", "f16", "f16", "f16", (4, 2, 2, 2), "f16.f16.f16.f16", 2.0**-10)
    for ty in ("s8", "u8"):
        mma("m16n8k32", "", "", "", (4, 2, 4, 4), f"s32.{ty}.{ty}.s32", 0)
        mma("m16n8k16", "", "", "", (2, 1, 4, 4), f"s32.{ty}.{ty}.s32", 0)
    return out


def atomic(instruction: str) -> str:
    """All threads update one word of shared memory; each reads the result."""
    return (
        ".shared .align 16 .b8 s[16]; mov.u64 %u0, s; setp.eq.u32 %p0, %tid0, 0; @%p0 st.shared.b32 [%u0], 0; bar.sync 0; "
        + instruction
        + " bar.sync 0; ld.shared.b32 %d, [%u0];"
    )


def float_bits(values: np.ndarray, ty: str) -> np.ndarray:
    """32-bit words that hold values of the type, two a word for 16-bit ones."""
    if ty == "f16":
        return values.astype(np.float16).view(np.uint32)
    bits = values.astype(np.float32).view(np.uint32)
    if ty == "bf16":
        return (bits >> 16).astype(np.uint16).view(np.uint32)
    return bits & np.uint32(0xFFFFE000) if ty == "tf32" else bits


def inputs_of(p: Program, rng: np.random.Generator) -> list[np.ndarray]:
    arrays = []
    for k, bits in enumerate(p.inputs):
        n = THREADS * (p.elements or [1] * len(p.inputs))[k]
        if p.scale and p.mma:
            ty = p.scale.split(",")[k]
            values = rng.standard_normal(n * (2 if ty in ("f16", "bf16") else 1))
            arrays.append(float_bits(values, ty))
        elif p.domain:
            arrays.append(rng.uniform(*p.domain, n).astype(np.float32).view(np.uint32))
        else:
            values = rng.integers(0, 1 << bits, n, dtype=np.uint64, endpoint=False) if bits < 64 else (
                rng.integers(0, (1 << 64) - 1, n, dtype=np.uint64, endpoint=True)
            )  # fmt: skip
            special = np.array(SPECIAL[bits], np.uint64)
            # The k-th operand meets the special values in another order, so that pairs of them occur.
            at = np.arange(n // 2)
            values[: n // 2] = special[
                (at // len(special) ** k) % len(special) if k < 2 else at * 7 % len(special)
            ]
            arrays.append(values.astype(UINT[bits]))
    return arrays


def as_floats(bits: np.ndarray, ty: str) -> np.ndarray:
    if ty.endswith("x2"):
        return as_floats(bits.view(np.uint16), ty[:-2])
    if ty == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.view({"f16": np.float16, "f32": np.float32, "f64": np.float64}[ty]).astype(np.float64)


def mma_bound(p: Program, inputs: list[np.ndarray]) -> float:
    """c · Σ|a·b| from above: every product of a warp is at most the largest a times the largest b."""
    kinds = p.scale.split(",")
    tops = [
        np.abs(as_floats(x, {"f16": "f16x2", "bf16": "bf16x2"}.get(t, "f32"))).max()
        for x, t in zip(inputs, kinds)
    ]
    depth = int(p.name.split("k")[1].split(".")[0])
    return p.mma * (depth * tops[0] * tops[1] + tops[2])


def differences(p: Program, inputs, got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where the GPU's bits are not what the simulator's allow."""
    wrong = got != want
    if not p.floats or not wrong.any():
        return np.flatnonzero(wrong)
    with np.errstate(all="ignore"):
        if p.floats.endswith("x2"):
            wrong = got.view(np.uint16) != want.view(np.uint16)
        g, w = as_floats(got, p.floats), as_floats(want, p.floats)
        wrong &= ~(np.isnan(g) & np.isnan(w))
        error = np.abs(g - w)
        if p.mma:
            wrong &= ~(error <= mma_bound(p, inputs))
        elif p.ulp or p.absolute:
            unit = np.spacing(np.abs(w).astype(np.float32)).astype(np.float64)
            # The simulator's value is itself off by up to the bound.
            wrong &= ~((error <= 2 * p.ulp * unit) | (error <= 2 * p.absolute))
    return np.flatnonzero(wrong)


class Driver:
    """The CUDA driver by ctypes: loads PTX and launches it on arrays that are copied there and back."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()

    def call(self, name, *args):
        status = getattr(self.cuda, name)(*args)
        if status:
            message = ctypes.c_char_p()
            self.cuda.cuGetErrorName(status, ctypes.byref(message))
            raise RuntimeError(f"{name}: {(message.value or b'?').decode()}")

    def run(self, ptx: str, arrays: list[np.ndarray]) -> None:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ptx.encode() + b"\0")
        try:
            self.call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
            pointers = [ctypes.c_uint64() for _ in arrays]
            for pointer, array in zip(pointers, arrays):
                self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(array.nbytes))
                self.call(
                    "cuMemcpyHtoD_v2",
                    pointer,
                    ctypes.c_void_p(array.ctypes.data),
                    ctypes.c_size_t(array.nbytes),
                )
            params = (ctypes.c_void_p * len(pointers))(*(ctypes.addressof(p) for p in pointers))
            self.call("cuLaunchKernel", function, 1, 1, 1, THREADS, 1, 1, 0, None, params, None)
            self.call("cuCtxSynchronize")
            for pointer, array in zip(pointers, arrays):
                self.call(
                    "cuMemcpyDtoH_v2",
                    ctypes.c_void_p(array.ctypes.data),
                    pointer,
                    ctypes.c_size_t(array.nbytes),
                )
                self.call("cuMemFree_v2", pointer)
        finally:
            self.call("cuModuleUnload", module)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("only", nargs="?", default="")
    parser.add_argument("--sim", action="store_true", help="the simulator alone")
    options = parser.parse_args()
    driver = None if options.sim else Driver()
    print(driver.name if driver else "simulator alone")
    tally, failures = Counter(), []
    for number, p in enumerate(programs()):
        if options.only not in p.name:
            continue
        ptx = text(p)
        inputs = inputs_of(p, np.random.default_rng(number))
        results = []
        try:
            for gpu in (False, True) if driver else (False,):
                out = np.zeros(THREADS * p.per_thread, UINT[p.output])
                arrays = [*(x.copy() for x in inputs), out]
                if gpu:
                    driver.run(ptx, arrays)
                else:
                    report = simulate_ptx(ptx, "k", 1, THREADS, arrays)
                    if report["findings"]:
                        raise RuntimeError(report["findings"][0]["message"])
                results.append(out)
            wrong = differences(p, inputs, results[-1], results[0])
        except Exception as error:
            failures.append(p.name)
            print(f"{p.name:32} {'GPU' if len(results) else 'simulator'}: {str(error)[:300]}", flush=True)
            continue
        kind = "mma" if p.mma else "approximate" if p.ulp or p.absolute else "exact"
        tally[kind] += 1
        if len(wrong):
            failures.append(p.name)
            at = wrong[0] // (2 if p.floats.endswith("x2") else 1)
            thread = at // p.per_thread
            operands = [x.reshape(THREADS, -1)[thread].tolist() for x in inputs]
            shown = ", ".join("/".join(f"{v:#x}" for v in x) for x in operands)
            print(
                f"{p.name:32} {len(wrong)} differ; ({shown}) GPU {results[-1][at]:#x}, simulator {results[0][at]:#x}"
            )
    total = sum(tally.values())
    print(
        f"{total} programs ran ({', '.join(f'{n} {k}' for k, n in tally.items())}); {len(failures)} failed: {failures}"
    )
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
