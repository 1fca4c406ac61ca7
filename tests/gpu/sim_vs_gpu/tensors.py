"""``cp.async.bulk.tensor`` and ``cp.reduce.async.bulk.tensor`` of one to five dimensions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .copies import Typed, wait
from .formats import FLOATS, UINT, generator, operand, width
from .program import Exact, Program, TensorMap, module

SIZES = {1: [100], 2: [40, 12], 3: [24, 6, 5], 4: [24, 5, 4, 3], 5: [20, 4, 3, 3, 2]}


def tensor_map(
    ty: str, rank: int, swizzle: int, inner: int = 0, steps: list[int] | None = None, nan_fill=False
):
    """A tensor of a few rows whose pitch is more than its width, and a box whose rows have ``inner`` bytes.

    Most rows end inside a piece of 16 bytes.
    """
    size = width(ty) // 8
    dims = [max(16 // size, d) for d in SIZES[rank]]
    dims[0] = max(dims[0], 2 * (inner or 32) // size - 3)
    strides, pitch = [], (dims[0] * size + 16) // 16 * 16
    for d in dims[1:]:
        strides.append(pitch)
        pitch = pitch * d + 16
    box = [(inner or swizzle or 32) // size] + [8, 3, 2, 2][: rank - 1]
    return TensorMap(1, ty, dims, strides, box, steps or [1] * rank, swizzle, nan_fill), pitch


def coordinates(m: TensorMap, before: bool = True) -> list[list[int]]:
    """Inside, and past each end of each dimension; ``before``: before its beginning too, where an H100 stores nothing but
    stops. A box begins at a multiple of 16 bytes of its row."""
    n = len(m.dims)
    step = 16 * 8 // width(m.type)
    unit = [step] + [1] * (n - 1)
    last = [(d - 1) // u for d, u in zip(m.dims, unit, strict=True)]
    out = [[0] * n, [1] * n]
    for d in range(n):
        low, high = [0] * n, [0] * n
        low[d], high[d] = -2 if d else -1, last[d] - (1 if d else 0)
        out += [low, high]
    out += [last, [-1000] * n]
    places = [[c * u for c, u in zip(place, unit, strict=True)] for place in out]
    return [p for p in places if before or min(p) >= 0] + [[1000 * u for u in unit]]


def copied(m: TensorMap) -> int:
    """Bytes that a copy moves."""
    count = m.box[0]
    for b, s in list(zip(m.box, m.element_strides))[1:]:
        count *= -(-b // s)
    return count * width(m.type) // 8


def footprint(m: TensorMap) -> int:
    """Bytes of shared memory that a box lies in: rows narrower than the swizzle begin at multiples of it."""
    row = m.box[0] * width(m.type) // 8
    return copied(m) // row * max(row, m.swizzle)


def coordinate_loads(rank: int, at: str) -> str:
    lines = f"ld.param.u64 %rd4, [coords]; mul.lo.u32 %r20, {at}, {4 * rank}; cvt.u64.u32 %rd5, %r20; add.u64 %rd4, %rd4, %rd5;"
    return lines + "".join(f" ld.global.s32 %r{21 + d}, [%rd4+{4 * d}];" for d in range(rank))


def place(rank: int) -> str:
    return "[%rd0, {" + ", ".join(f"%r{21 + d}" for d in range(rank)) + "}]"


PARAMETERS = ".param .align 64 .b8 map[128], .param .u64 tensor, .param .u64 coords, .param .u64 data"


def load(
    ty: str, rank: int, swizzle: int, inner: int = 0, steps: list[int] | None = None, nan_fill: bool = False
) -> Program:
    """A CTA for each place: what shared memory holds afterwards."""
    m, total = tensor_map(ty, rank, swizzle, inner, steps, nan_fill)
    name = f"cp.async.bulk.tensor.{rank}d {ty} swizzle {swizzle}"
    name += f" rows of {inner}" if inner else ""
    name += f" strides {m.element_strides}" if steps else ""
    name += " NaN" if nan_fill else ""
    rng = generator(name)
    places = coordinates(m)
    size = footprint(m)
    # What a copy leaves between narrow rows is seen too.
    fill = (
        f"mov.u32 %r11, %tid0; mov.b32 %r13, 0x5a5a5a5a; G: setp.ge.u32 %p1, %r11, {size // 4}; @%p1 bra H;"
        " mad.lo.u32 %r12, %r11, 4, %r50; st.shared.b32 [%r12], %r13; add.u32 %r11, %r11, 128; bra G; H: "
    )
    body = (
        f".shared .align 1024 .b8 s[{-(-size // 1024) * 1024}]; .shared .align 8 .b64 bar; mov.u32 %r50, s; setp.eq.u32 %p10, %tid0, 0;"
        " mov.b64 %rd0, map; cvta.param.u64 %rd0, %rd0; mov.u32 %r10, %ctaid.x; " + coordinate_loads(rank, "%r10")
        + (fill if size > copied(m) else "")
        + " @%p10 mbarrier.init.shared::cta.b64 [bar], 1; fence.proxy.async.shared::cta; bar.sync 0; @!%p10 bra L;"
        f" mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {copied(m)};"
        f" cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes [%r50], {place(rank)}, [bar]; L: "
        + wait("bar", 0, "")
        + f"ld.param.u64 %rd1, [data]; mad.wide.u32 %rd1, %r10, {size}, %rd1; mov.u32 %r11, %tid0;"
        f" C: setp.ge.u32 %p1, %r11, {size // 4}; @%p1 bra E; mad.lo.u32 %r12, %r11, 4, %r50; ld.shared.b32 %r13, [%r12]; mad.wide.u32 %rd2, %r11, 4, %rd1; st.global.b32 [%rd2], %r13; add.u32 %r11, %r11, 128; bra C; E:"
    )  # fmt: skip
    tensor = operand(ty, -(-total // (width(ty) // 8)), 0, rng).view(np.uint8)
    coords = np.array(places, np.int32).reshape(-1)
    data = np.zeros(len(places) * size // 4, np.uint32)
    judge = Typed(ty) if ty in FLOATS else Exact()
    return Program(
        name,
        module(PARAMETERS, body),
        [m, tensor, coords, data],
        {3: judge},
        len(places),
        group="tensor copies",
    )


def store(
    ty: str, rank: int, swizzle: int, inner: int = 0, steps: list[int] | None = None, reduction: str = ""
) -> Program:
    """One CTA stores boxes at each place, one after the other: what the tensor holds afterwards."""
    m, total = tensor_map(ty, rank, swizzle, inner, steps)
    verb = f"cp.reduce.async.bulk.tensor {reduction}" if reduction else "cp.async.bulk.tensor store"
    name = f"{verb} {rank}d {ty} swizzle {swizzle}" + (f" rows of {inner}" if inner else "") + (f" strides {m.element_strides}" if steps else "")  # fmt: skip
    rng = generator(name)
    places, size, bits = coordinates(m, before=False), footprint(m), width(ty)
    elements = -(-total // (bits // 8))
    if ty in FLOATS and reduction == "add":
        tensor = FLOATS[ty].encode(rng.integers(-8, 9, elements).astype(np.float64))
        data = FLOATS[ty].encode(rng.integers(-8, 9, size * 8 // bits).astype(np.float64))
    else:
        tensor, data = operand(ty, elements, 0, rng), operand(ty, size * 8 // bits, 1, rng)
    instruction = (
        f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{reduction}.bulk_group" if reduction else f"cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group"
    )  # fmt: skip
    body = (
        f".shared .align 1024 .b8 s[{-(-size // 1024) * 1024}]; mov.u32 %r50, s; setp.eq.u32 %p10, %tid0, 0;"
        " mov.b64 %rd0, map; cvta.param.u64 %rd0, %rd0; ld.param.u64 %rd1, [data]; mov.u32 %r11, %tid0;"
        f" C: setp.ge.u32 %p1, %r11, {size // 4}; @%p1 bra F; mad.lo.u32 %r12, %r11, 4, %r50; mad.wide.u32 %rd2, %r11, 4, %rd1; ld.global.b32 %r13, [%rd2]; st.shared.b32 [%r12], %r13; add.u32 %r11, %r11, 128; bra C;"
        " F: fence.proxy.async.shared::cta; bar.sync 0; @!%p10 bra E; mov.u32 %r14, 0; S: " + coordinate_loads(rank, "%r14")
        + f" {instruction} {place(rank)}, [%r50]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; add.u32 %r14, %r14, 1; setp.lt.u32 %p1, %r14, {len(places)}; @%p1 bra S; E:"
    )  # fmt: skip
    arguments = [m, tensor.view(np.uint8), np.array(places, np.int32).reshape(-1), data.view(np.uint32)]
    judge = TypedBytes(ty) if ty in FLOATS else Exact()
    return Program(name, module(PARAMETERS, body), arguments, {1: judge}, group="tensor copies")


class TypedBytes(Typed):
    """A tensor as bytes, compared by its elements."""

    def canonical(self, bits: np.ndarray) -> np.ndarray:
        return super().canonical(np.ascontiguousarray(bits).view(UINT[width(self.type)]))


def multicast(n: int) -> Program:
    """Each CTA of a cluster loads a part of a box for all of them."""
    m, total = tensor_map("f16", 2, 128)
    m.box[1] = 8
    name = f"cp.async.bulk.tensor.2d multicast in a cluster of {n}"
    size = copied(m)
    body = (
        f".shared .align 1024 .b8 s[{size * n}]; .shared .align 8 .b64 bar; mov.u32 %r50, s; setp.eq.u32 %p10, %tid0, 0;"
        " mov.b64 %rd0, map; cvta.param.u64 %rd0, %rd0; mov.u32 %r10, %ctaid.x; mov.u32 %r9, %cluster_ctarank; " + coordinate_loads(2, "%r10")
        + " @%p10 mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; @!%p10 bra L;"
        f" mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {size * n}; mad.lo.u32 %r8, %r9, {size}, %r50; mov.b16 %h0, {(1 << n) - 1};"
        f" cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r8], {place(2)}, [bar], %h0; L: "
        + wait("bar", 0, "")
        + f"ld.param.u64 %rd1, [data]; mad.wide.u32 %rd1, %r10, {size * n}, %rd1; mov.u32 %r11, %tid0;"
        f" C: setp.ge.u32 %p1, %r11, {size * n // 4}; @%p1 bra E; mad.lo.u32 %r12, %r11, 4, %r50; ld.shared.b32 %r13, [%r12]; mad.wide.u32 %rd2, %r11, 4, %rd1; st.global.b32 [%rd2], %r13; add.u32 %r11, %r11, 128; bra C; E:"
        " barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    )  # fmt: skip
    places = coordinates(m)[:8]
    tensor = operand("f16", total // 2 + 8, 0, generator(name)).view(np.uint8)
    data = np.zeros(len(places) * size * n // 4, np.uint32)
    return Program(name, module(PARAMETERS, body), [m, tensor, np.array(places, np.int32).reshape(-1), data], {3: Exact()}, len(places), cluster=n, group="tensor copies")  # fmt: skip


def programs() -> Iterator[Program]:
    for rank in range(1, 6):
        for ty in ("u8", "f16", "f32", "u64"):
            for swizzle in (0, 32, 64, 128):
                if rank < 3 or ty in ("f16", "f32"):
                    yield load(ty, rank, swizzle)
                    yield store(ty, rank, swizzle)
        for ty in ("f16", "bf16", "f32", "f64"):
            yield load(ty, rank, 0, nan_fill=True)
        if rank > 1:
            steps = [1, 2, 3, 1, 2][:rank]
            yield load("f16", rank, 0, steps=steps)
            yield load("f32", rank, 128, steps=steps)
            yield store("f16", rank, 64, steps=steps)
    for ty in ("u16", "u32", "s32", "s64", "f64", "bf16"):
        yield load(ty, 2, 128)
        yield store(ty, 3, 0)
    # Rows narrower than the swizzle.
    for swizzle, inner in ((64, 32), (128, 32), (128, 64), (32, 16), (128, 16)):
        yield load("f16", 2, swizzle, inner)
        yield store("f16", 3, swizzle, inner)
    for inner in (16, 48, 256):
        yield load("f16", 2, 0, inner)
    for reduction, types in (
        ("add", ("u32", "s32", "u64", "f16", "bf16", "f32", "f64")),
        ("min", ("u32", "s32", "u64", "s64", "f16", "bf16")),
        ("max", ("u32", "s32", "u64", "s64", "f16", "bf16")),
        ("inc", ("u32",)),
        ("dec", ("u32",)),
        ("and", ("u32", "u64")),
        ("or", ("u32", "u64")),
        ("xor", ("u32", "u64")),
    ):
        for ty in types:
            yield store(ty, 2, 128 if ty == "f16" else 0, reduction=reduction)
    for rank in (1, 3, 4, 5):
        yield store("f32", rank, 32, reduction="add")
    # Rows that end inside a piece of 16 bytes.
    for ty, reduction, inner in (
        ("u32", "and", 64),
        ("u32", "add", 64),
        ("f16", "add", 48),
        ("f16", "min", 48),
        ("u64", "max", 112),
    ):
        yield store(ty, 3, 0, inner, reduction=reduction)
    for n in (2, 4):
        yield multicast(n)
