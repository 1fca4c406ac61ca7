"""``mma.sync`` and ``wmma`` of every shape and type, and the loads and stores of matrices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .formats import FLOATS, UINT, generator, operand, width
from .program import CTAS, THREADS, Exact, N, Products, Program, module, threadwise

WARPS = N // 32
LANE = np.arange(32)
G, T = LANE // 4, LANE % 4


def values(
    ty: str, shape: tuple[int, ...], rng: np.random.Generator, warps_alike: bool = False
) -> np.ndarray:
    """Encoded elements; the first dimension counts problems, of which a half is normal and a quarter wide in range."""
    if ty not in FLOATS:
        bits = width(ty)
        return rng.integers(0, 1 << bits, shape, dtype=np.uint64).astype(UINT[max(bits, 8)])
    x = rng.standard_normal(shape)
    wide = slice(0, shape[0] // 4)
    spread = {"e4m3": 4, "e5m2": 4, "f16": 5}.get(ty, 12)
    x[wide] *= np.exp2(rng.uniform(-spread, spread, x[wide].shape))
    return FLOATS[ty].encode(x)


def edges(ty: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Small integers, both zeros, and few infinities and NaNs: sums are exact or not finite."""
    x = rng.choice([0.0, -0.0, 1, -1, 2, -3], shape)
    words = FLOATS[ty].encode(x)
    f = FLOATS[ty]
    low = f.bits - 1 - f.exponent - f.fraction
    infinity = ((1 << f.exponent) - 1 << f.fraction) << low
    odd = rng.random(shape)
    if not f.finite:
        words[odd < 0.004] = infinity
        words[odd < 0.002] = infinity | 1 << f.bits - 1
    words[odd > 0.999] = infinity | ((1 << f.fraction) - 1) << low
    return words


def pack(elements: np.ndarray, bits: int) -> np.ndarray:
    """Packs the last dimension, whole registers of 32 bits (or 64 for f64), lowest element first."""
    if bits >= 32:
        return elements[..., 0]
    words = np.zeros(elements.shape[:-1], np.uint32)
    for e in range(elements.shape[-1]):
        words |= elements[..., e].astype(np.uint32) << np.uint32(bits * e)
    return words


def a_places(m: int, k: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of A by lane, register and element (PTX ISA, "Matrix Fragments for mma")."""
    per = max(1, 32 // bits)
    registers = m * k // 32 // per
    r, e = np.arange(registers)[:, None], np.arange(per)[None, :]
    if m == 16:
        rows = G[:, None, None] + 8 * (r % 2) + 0 * e
        columns = T[:, None, None] * per + e + 4 * per * (r // 2)
    else:
        rows = G[:, None, None] + 0 * r + 0 * e
        columns = T[:, None, None] * per + e + 4 * per * r
    return rows, columns


def b_places(k: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of B (k × 8) by lane, register and element."""
    per = max(1, 32 // bits)
    r, e = np.arange(k * 8 // 32 // per)[:, None], np.arange(per)[None, :]
    return T[:, None, None] * per + e + 4 * per * r, G[:, None, None] + 0 * r + 0 * e


def c_places(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of C and D (m × 8) by lane and element."""
    i = np.arange(m // 4)
    return G[:, None] + 8 * (i // 2), 2 * T[:, None] + i % 2


def decode(ty: str, words: np.ndarray) -> np.ndarray:
    """Encoded elements as numbers: floats exactly, integers as int64."""
    if ty in FLOATS:
        return FLOATS[ty].decode(words)
    x = words.astype(np.int64)
    bits = width(ty)
    return np.where(x >> bits - 1 & 1, x - (1 << bits), x) if ty[0] == "s" else x


DIRECTED = (".rz", ".rm", ".rp")


def registers(letter: str, n: int) -> str:
    return "{" + ", ".join(f"%{letter}{i if n > 1 else ''}" for i in range(n)) + "}"


def product(kind: str, a_type: str, b_type: str, d_type: str, a, b, c, places) -> Exact | Products:
    """How D = A × B + C is judged: ``places`` picks the elements in the order in which they are stored."""
    if d_type == "s32":
        return Exact()
    x, y, z = decode(a_type, a), decode(b_type, b), decode(d_type, c)
    if d_type == "f64":
        x, y, z = (v.astype(np.longdouble) for v in (x, y, z))
    exact = np.einsum("wmk,wkn->wmn", x, y) + z
    magnitude = np.einsum("wmk,wkn->wmn", np.abs(x), np.abs(y)) + np.abs(z)
    rows, columns = places
    return Products(d_type, exact[:, rows, columns], magnitude[:, rows, columns], kind)


def mma(
    m: int,
    k: int,
    a_type: str,
    b_type: str,
    d_type: str,
    mode: str = "",
    special: bool = False,
    bit_op: str = "",
    **keywords,
) -> Program:
    """One multiply of m × 8 × k a warp."""
    name = f"mma.m{m}n8k{k}{mode}.{d_type}.{a_type}.{b_type}.{d_type}{bit_op}" + (" edges" if special else "")
    rng, make = generator(name), edges if special else values
    bits = width(a_type)
    a, b = make(a_type, (WARPS, m, k), rng), make(b_type, (WARPS, k, 8), rng)
    c = make(d_type, (WARPS, m, 8), rng)
    if d_type == "s32" and not mode:
        c &= np.uint32(0x3FFFFFFF)  # without .satfinite the overflow is not what is tested
    per_a = pack(a[:, *a_places(m, k, bits)], bits).reshape(-1)
    per_b = pack(b[:, *b_places(k, bits)], bits).reshape(-1)
    fragment = np.ascontiguousarray(c[:, *c_places(m)])
    per_c = fragment.reshape(-1).view(np.uint32) if d_type == "f16" else fragment.reshape(-1)
    counts = [x.size // N for x in (per_a, per_b, per_c)]
    shape = f"m{m}n8k{k}"
    body = (
        f"mma.sync.aligned.{shape}.row.col{mode}.{d_type}.{a_type}.{b_type}.{d_type}{bit_op}"
        f" {registers('d', counts[2])}, {registers('a', counts[0])}, {registers('b', counts[1])}, {registers('c', counts[2])};"
    )
    judge = Exact(d_type if d_type in FLOATS else "") if special else product(
        f"mma.{d_type}.{a_type}.{b_type}{mode if mode in DIRECTED else ''}", a_type, b_type, d_type, a, b, c, c_places(m))  # fmt: skip
    output = "f16x2" if d_type == "f16" else d_type
    inputs = list(zip((per_a, per_b, per_c), counts))
    return threadwise(name, body, inputs, output, judge, per_thread=counts[2], group="mma", **keywords)


def multiplies() -> Iterator[Program]:
    for k in (8, 16):
        for special in (False, True):
            yield mma(16, k, "f16", "f16", "f32", special=special)
            yield mma(16, k, "f16", "f16", "f16", special=special)
            yield mma(16, k, "bf16", "bf16", "f32", special=special)
    for k in (4, 8):
        for special in (False, True):
            yield mma(16, k, "tf32", "tf32", "f32", special=special)
    for m, k in ((8, 4), (16, 4), (16, 8), (16, 16)):
        for mode in ("", ".rn", ".rz", ".rm", ".rp"):
            yield mma(m, k, "f64", "f64", "f64", mode=mode)
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            for special in (False, True):
                yield mma(16, 32, a, b, "f32", special=special)
            yield mma(16, 16, a, b, "f32", version="8.7")
            yield mma(16, 32, a, b, "f16", version="8.7")
            yield mma(16, 16, a, b, "f16", version="8.7")
    for eight, shapes in ((8, ((8, 16), (16, 16), (16, 32))), (4, ((8, 32), (16, 32), (16, 64)))):
        for a in "su":
            for b in "su":
                for m, k in shapes:
                    for mode in ("", ".satfinite"):
                        yield mma(m, k, f"{a}{eight}", f"{b}{eight}", "s32", mode)
    for op in (".xor.popc", ".and.popc"):
        for m, k in ((8, 128), (16, 128), (16, 256)):
            yield bits_mma(m, k, op)


def bits_mma(m: int, k: int, op: str) -> Program:
    """Single bits: any registers will do, since each is 32 of them."""
    name = f"mma.m{m}n8k{k}.s32.b1.b1.s32{op}"
    rng = generator(name)
    counts = (m * k // 1024, k // 128, m // 4)
    inputs = [(rng.integers(0, 1 << 31, N * n, dtype=np.uint32), n) for n in counts]
    body = (
        f"mma.sync.aligned.m{m}n8k{k}.row.col.s32.b1.b1.s32{op}"
        f" {registers('d', counts[2])}, {registers('a', counts[0])}, {registers('b', counts[1])}, {registers('c', counts[2])};"
    )
    return threadwise(name, body, inputs, "b32", Exact(), per_thread=counts[2], group="mma")


def wmma(
    shape: tuple[int, int, int], a_type: str, d_type: str, a_layout: str, b_layout: str, space: str = "global"
) -> Program:
    """Whole matrices from memory to memory: the fragments are nobody's business."""
    m, n, k = shape
    name = f"wmma.m{m}n{n}k{k}.{a_layout}.{b_layout}.{d_type}.{a_type} {space}"
    rng = generator(name)
    a, b, c = (
        values(a_type, (WARPS, m, k), rng),
        values(a_type, (WARPS, k, n), rng),
        values(d_type, (WARPS, m, n), rng),
    )
    if d_type == "s32":
        c &= np.uint32(0x3FFFFFFF)
    rows, columns = np.indices((m, n))
    judge = product(f"wmma.{d_type}.{a_type}", a_type, a_type, d_type, a, b, c, (rows, columns))
    memory_a = np.ascontiguousarray(a if a_layout == "row" else a.transpose(0, 2, 1))
    memory_b = np.ascontiguousarray(b if b_layout == "row" else b.transpose(0, 2, 1))
    counts = {"f16": (8, 8), "bf16": (4, 4), "tf32": (4, 4), "s8": (2, 2), "u8": (2, 2), "f64": (1, 1)}[
        a_type
    ]
    if (m, n) == (32, 8) and a_type != "f16":
        counts = (counts[0] * 2, counts[1] // 2)
    if (m, n) == (8, 32) and a_type != "f16":
        counts = (counts[0] // 2, counts[1] * 2)
    count_d = 2 if d_type == "f64" else 4 if d_type == "f16" else 8
    reg = ".b64" if d_type == "f64" else ".b32"
    declare = f".reg {reg} %a<8>; .reg {reg} %b<8>; .reg {reg} %c<8>; .reg {reg} %d<8>;"
    sizes = [x[0].nbytes for x in (memory_a, memory_b, c)]
    text = f"m{m}n{n}k{k}"
    body = [declare, "mov.u32 %r0, %ctaid.x; shr.u32 %r1, %tid0, 5; mad.lo.u32 %r0, %r0, 4, %r1;"]
    for i, (p, size) in enumerate(zip(("in0", "in1", "in2", "out"), (*sizes, sizes[2]))):
        body.append(f"ld.param.u64 %rd{i}, [{p}]; mad.wide.u32 %rd{i}, %r0, {size}, %rd{i};")

    def vector(letter, count):
        return "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"

    rounding = ".rn" if d_type == "f64" else ""
    kinds = f"{d_type}.{a_type}.{a_type}.{d_type}" if a_type not in ("f16",) else f"{d_type}.{d_type}"
    body += [
        f"wmma.load.a.sync.aligned.{text}.{a_layout}.global.{a_type} {vector('a', counts[0])}, [%rd0], {k if a_layout == 'row' else m};",
        f"wmma.load.b.sync.aligned.{text}.{b_layout}.global.{a_type} {vector('b', counts[1])}, [%rd1], {n if b_layout == 'row' else k};",
        f"wmma.load.c.sync.aligned.{text}.row.global.{d_type} {vector('c', count_d)}, [%rd2], {n};",
        f"wmma.mma.sync.aligned.{a_layout}.{b_layout}.{text}{rounding}.{kinds} {vector('d', count_d)}, {vector('a', counts[0])}, {vector('b', counts[1])}, {vector('c', count_d)};",
        f"wmma.store.d.sync.aligned.{text}.row.global.{d_type} [%rd3], {vector('d', count_d)}, {n};",
    ]  # fmt: skip
    params = ".param .u64 in0, .param .u64 in1, .param .u64 in2, .param .u64 out"
    if d_type == "s32":
        exact = np.einsum("wmk,wkn->wmn", decode(a_type, a), decode(a_type, b)) + c.astype(np.int32)
        assert np.abs(exact).max() < 1 << 31
    arrays = [memory_a, memory_b, c, np.zeros_like(c)]
    return Program(name, module(params, "\n".join(body)), arrays, {3: judge}, CTAS, THREADS, group="wmma")


def whole_matrices() -> Iterator[Program]:
    for shape in ((16, 16, 16), (32, 8, 16), (8, 32, 16)):
        for layouts in (("row", "col"), ("col", "row"), ("row", "row"), ("col", "col")):
            for d in ("f32", "f16"):
                yield wmma(shape, "f16", d, *layouts)
            yield wmma(shape, "bf16", "f32", *layouts)
        for ty in ("s8", "u8"):
            yield wmma(shape, ty, "s32", "row", "col")
            yield wmma(shape, ty, "s32", "col", "row")
    for layouts in (("row", "col"), ("col", "row")):
        yield wmma((16, 16, 8), "tf32", "f32", *layouts)
        yield wmma((8, 8, 4), "f64", "f64", *layouts)


def loads_and_stores() -> Iterator[Program]:
    # Lane l gives the address of row (7 l + 3) mod 32 of its warp's 512 bytes.
    rows = (
        ".shared .align 16 .b8 s[2048]; mov.u64 %rd0, s; mad.wide.u32 %rd1, %tid0, 16, %rd0; {start}"
        " and.b32 %r0, %tid0, 31; mad.lo.u32 %r0, %r0, 7, 3; and.b32 %r0, %r0, 31; and.b32 %r1, %tid0, 96; or.b32 %r0, %r0, %r1;"
        " mad.wide.u32 %rd2, %r0, 16, %rd0; "
    )
    fill = "st.shared.v4.b32 [%rd1], {%a0, %a1, %a2, %a3}; bar.sync 0;"
    zero = "mov.b32 %r2, 0; st.shared.v4.b32 [%rd1], {%r2, %r2, %r2, %r2}; bar.sync 0;"
    for n in (1, 2, 4):
        for trans in ("", ".trans"):
            name = f"ldmatrix.m8n8.x{n}{trans}.b16"
            data = operand("b32", 4 * N, 0, generator(name))
            body = (
                rows.format(start=fill)
                + f"ldmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 {registers('d', n)}, [%rd2];"
            )
            yield threadwise(name, body, [(data, 4)], "b32", Exact(), per_thread=n)
            name = f"stmatrix.m8n8.x{n}{trans}.b16"
            data = operand("b32", n * N, 0, generator(name))
            body = (
                rows.format(start=zero)
                + f"stmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 [%rd2], {registers('a', n)};"
            )
            body += " bar.sync 0; ld.shared.v4.b32 {%d0, %d1, %d2, %d3}, [%rd1];"
            yield threadwise(name, body, [(data, n)], "b32", Exact(), per_thread=4)
    data = operand("b32", N, 0, generator("movmatrix"))
    body = "movmatrix.sync.aligned.m8n8.trans.b16 %d, %a;"
    yield threadwise("movmatrix.m8n8.trans.b16", body, [(data, 1)], "b32", Exact())


def programs() -> Iterator[Program]:
    for group, name in ((multiplies, "mma"), (whole_matrices, "wmma"), (loads_and_stores, "matrix moves")):
        for p in group():
            p.group = name
            yield p
