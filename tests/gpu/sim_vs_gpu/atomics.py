"""``atom`` and ``red`` of every operation and type, in global and shared memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .formats import FLOATS, UINT, generator, operand, scalar, width
from .program import Exact, N, Program, threadwise

OPERATIONS = [
    *((op, ty) for op in ("add", "min", "max") for ty in ("u32", "s32", "u64", "s64") if (op, ty) != ("add", "s64")),
    *((op, f"b{bits}") for op in ("and", "or", "xor", "exch", "cas") for bits in (32, 64)),
    ("inc", "u32"), ("dec", "u32"), ("add", "f32"), ("add", "f64"), ("cas", "b16"),
    *(("add.noftz", ty) for ty in ("f16", "f16x2", "bf16", "bf16x2")),
    ("cas", "b128"), ("exch", "b128"),
]  # fmt: skip


def alone(op: str, ty: str, space: str) -> Program:
    """Each thread updates a word of its own: the old value, and what memory holds afterwards."""
    name = f"atom.{space}.{op}.{ty}"
    rng, wide = generator(name), ty == "b128"
    element = "b64" if wide else ty
    per = 2 if wide else 1
    old = operand(element, N * per, 0, rng)
    new = operand(element, N * per, 1, rng)
    if op == "cas":
        # Half of them find what they compare with.
        new = np.where(rng.integers(0, 2, N).repeat(per) == 1, old, new)
    swap = operand(element, N * per, 2, rng)
    size = width(ty) // 8
    bits = 8 * size
    inputs = [(old, per), (new, per)] + ([(swap, per)] if op == "cas" else [])
    args = "%old, [%rd1], %x" + (", %y" if op == "cas" else "")
    if wide:
        values = "mov.b128 %x, {%b0, %b1};" + (" mov.b128 %y, {%c0, %c1};" if op == "cas" else "")
        start, result, n = (
            "st.{s}.v2.b64 [%rd1], {{%a0, %a1}};",
            "mov.b128 {%d0, %d1}, %old; ld.{s}.v2.b64 {{%d2, %d3}}, [%rd1];",
            4,
        )
        result = "mov.b128 {{%d0, %d1}}, %old; ld.{s}.v2.b64 {{%d2, %d3}}, [%rd1];"
    else:
        values = f"mov.b{bits} %x, %b;" + (f" mov.b{bits} %y, %c;" if op == "cas" else "")
        start, n = f"st.{{s}}.b{bits} [%rd1], %a;", 2
        result = f"mov.b{bits} %d0, %old; ld.{{s}}.b{bits} %d1, [%rd1];"
    if space == "shared":
        place = (
            f".shared .align 16 .b8 s[{128 * size}]; mov.u64 %rd0, s; mad.wide.u32 %rd1, %tid0, {size}, %rd0;"
        )
    else:
        # The operand's own array is what is updated.
        place = f"ld.param.u64 %rd0, [in0]; mad.wide.u32 %rd1, %index, {size}, %rd0;"
        start = ""
    reg = f".reg .b{max(bits, 16)}"
    body = (
        f"{reg} %old; {reg} %x; {reg} %y; {place} {start.format(s=space)} {values}"
        f" atom.{space}.{op}.{ty} {args}; {result.format(s=space)}"
    )
    element = element if element[0] in "fb" and scalar(element)[0] in FLOATS else f"b{min(bits, 64)}"
    return threadwise(name, body, inputs, element, Exact(element), per_thread=n, group="atomics")


def together(instruction: str, op: str, ty: str, space: str, n: int = 1) -> Program:
    """All threads of a CTA update two words; the operation commutes, so that memory has one possible end."""
    name = f"{instruction}.{space}.{op}.{ty}, contended" + (f" .v{n}" if n > 1 else "")
    rng, base, lanes = generator(name), *scalar(ty)
    size = width(ty) // 8
    if base in FLOATS:
        # Small integers: their sums are exact in any order.
        words = FLOATS[base].encode(rng.integers(-3, 4, N * lanes * n).astype(np.float64))
        values = words.view(UINT[8 * size])
    else:
        values = operand(ty, N * n, 0, rng)
    bits, letters = 8 * size, [f"%a{i}" if n > 1 else "%a" for i in range(n)]
    vector = f"{{{', '.join(letters)}}}" if n > 1 else letters[0]
    form = f"{instruction}.{space}." + (f"{op.replace('.noftz', '')}.noftz.v{n}.{ty}" if n > 1 and "noftz" in op else
        f"{op}.v{n}.{ty}" if n > 1 else f"{op}.{ty}")  # fmt: skip
    old = f".reg .b{max(bits, 16)} %old;" if instruction == "atom" else ""
    operands = ("%old, " if instruction == "atom" else "") + f"[%rd1], {vector}"
    block = size * n * 2  # two places a CTA
    zero = " ".join(f"st.{space}.b{bits} [%rd0+{k * size}], 0;" for k in range(2 * n))
    if space == "shared":
        place, clear = f".shared .align 16 .b8 s[{block}]; mov.u64 %rd0, s;", True
    else:
        place, clear = f"ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %index, {n * size}, %rd0; and.b32 %r1, %tid0, 127; mul.wide.u32 %rd2, %r1, {n * size}; sub.u64 %rd0, %rd0, %rd2;", False  # fmt: skip
    body = (
        f"{old} {place}"
        + (f" setp.eq.u32 %p0, %tid0, 0; @!%p0 bra ready; {zero} ready: bar.sync 0;" if clear else "")
        + f" and.b32 %r0, %tid0, 1; mad.wide.u32 %rd1, %r0, {size * n}, %rd0; {form} {operands}; bar.sync 0;"
    )
    names = [f"%d{i}" if n > 1 else "%d" for i in range(n)]
    reads = " ".join(f"ld.{space}.b{bits} {d}, [%rd1+{i * size}];" for i, d in enumerate(names))
    # In global memory every thread stores to the output, whose first words of each CTA are the contended ones: read first.
    body += f" {reads} bar.sync 0;"
    element = ty if base in FLOATS else f"b{bits}"
    return threadwise(name, body, [(values, n)], element, Exact(element), per_thread=n, group="atomics")


def generic_order(instruction: str) -> Program:
    """Orders and scopes are accepted and change no result."""
    name = f"{instruction} with orders and scopes"
    values = operand("u32", N, 0, generator(name))
    forms = [
        f"{o}.{s}"
        for o in ("relaxed", "acquire", "release", "acq_rel")
        for s in ("cta", "gpu", "sys", "cluster")
    ]
    if instruction == "red":
        forms = [f for f in forms if f.startswith(("relaxed", "release"))]
    old = "%r1, " if instruction == "atom" else ""
    body = "ld.param.u64 %rd0, [in0]; mad.wide.u32 %rd1, %index, 4, %rd0; cvta.to.global.u64 %rd1, %rd1;"
    body += "".join(f" {instruction}.{f}.global.add.u32 {old}[%rd1], {k + 1};" for k, f in enumerate(forms))
    body += " ld.global.b32 %d, [%rd1];"
    return threadwise(name, body, [(values, 1)], "b32", Exact(), group="atomics")


def programs() -> Iterator[Program]:
    for space in ("global", "shared"):
        for op, ty in OPERATIONS:
            yield alone(op, ty, space)
            if op in ("exch", "cas", "inc", "dec"):
                continue
            for instruction in ("atom", "red"):
                yield together(instruction, op, ty, space)
    for instruction in ("atom", "red"):
        yield generic_order(instruction)
    # Vectors are for global memory, and new with sm_90.
    for n in (2, 4):
        yield together("red", "add", "f32", "global", n)
    for n in (2, 4, 8):
        for ty in ("f16", "bf16"):
            yield together("red", "add.noftz", ty, "global", n)
    for n in (2, 4):
        for ty in ("f16x2", "bf16x2"):
            yield together("red", "add.noftz", ty, "global", n)
