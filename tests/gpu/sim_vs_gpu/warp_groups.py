"""``wgmma`` of every type, N and layout, with A in shared memory or in registers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .formats import generator, width
from .matrices import decode, edges, pack, values
from .program import Exact, Products, Program, module

CTAS = 2
LANES = np.arange(128)
WARP, G, T = LANES // 32, LANES % 32 // 4, LANES % 4


@dataclass
class Operand:
    """A matrix in shared memory as a descriptor describes it (PTX ISA, "Shared Memory Matrix Layout").

    Without a swizzle it is made of cores of 8 × 16 bytes; with one, of atoms of 8 rows of ``swizzle`` bytes. Rows run along
    K, or along M (or N) where the matrix is transposed (``mn_major``).
    """

    rows: int  # M or N
    k: int
    size: int  # bytes of an element
    swizzle: int
    mn_major: bool

    @property
    def width(self) -> int:
        return self.swizzle or 16

    @property
    def lines(self) -> tuple[int, int]:
        """How many atoms lie side by side along the rows' direction, and how many groups of 8 across it."""
        along, across = (self.rows, self.k) if self.mn_major else (self.k, self.rows)
        return -(-along * self.size // self.width), -(-across // 8)

    @property
    def strides(self) -> tuple[int, int]:
        """Bytes between atoms along the rows' direction, and between groups of 8 across it."""
        atom = 8 * self.width
        return atom * self.lines[1], atom

    @property
    def bytes(self) -> int:
        return self.lines[0] * self.lines[1] * 8 * self.width

    def place(self, row: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Byte offset of each element."""
        along, across = (row, k) if self.mn_major else (k, row)
        along = along * self.size
        a, b = self.strides
        offset = along // self.width * a + across // 8 * b + across % 8 * self.width + along % self.width
        bits = {16: 0, 32: 1, 64: 3, 128: 7}[self.width]
        return offset ^ (offset >> 7 & bits) << 4

    def image(self, elements: np.ndarray) -> np.ndarray:
        """What shared memory holds, as words: ``elements`` is [problem, row, k]."""
        row, k = np.meshgrid(np.arange(self.rows), np.arange(self.k), indexing="ij")
        memory = np.zeros((len(elements), self.bytes), np.uint8)
        at = self.place(row, k)[..., None] + np.arange(self.size)
        memory[:, at] = elements[..., None].view(np.uint8).reshape(*elements.shape, self.size)
        return memory.view(np.uint32)

    def descriptor(self) -> int:
        """The bits above the address: leading and stride byte offsets, and the swizzle."""
        a, b = self.strides
        if self.swizzle:
            leading, stride = (a, b) if self.mn_major else (16, b)
        else:
            leading, stride = (b, a) if self.mn_major else (a, b)
        kind = {0: 0, 128: 1, 64: 2, 32: 3}[self.swizzle]
        return leading >> 4 << 16 | stride >> 4 << 32 | kind << 62

    def step(self, index: int, instruction_k: int) -> int:
        """Bytes from the start of the matrix to that of instruction ``index``."""
        k = index * instruction_k
        a, b = self.strides
        if self.mn_major:
            return k // 8 * b
        return k * self.size // self.width * a + k * self.size % self.width


def d_places(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of D by thread and element."""
    i = np.arange(n // 2)
    return (16 * WARP + G)[:, None] + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * T[:, None] + i % 2


def registers(letter: str, n: int) -> str:
    return "{" + ", ".join(f"%{letter}{i}" for i in range(n)) + "}"


def multiply(
    n: int,
    a_type: str,
    b_type: str,
    d_type: str,
    *,
    a_swizzle: int | None = 128,
    b_swizzle: int = 128,
    a_mn: bool = False,
    b_mn: bool = False,
    scale_d: bool = True,
    signs: tuple[int, int] = (1, 1),
    satfinite: bool = False,
    special: bool = False,
) -> Program:
    """D = ±A × ±B (+ D). ``a_swizzle`` of None: A in registers."""
    in_registers = a_swizzle is None
    size = width(a_type) // 8
    step = 32 // size
    # As many instructions as fill the rows of the wider swizzle.
    depth = max(
        [step]
        + [(s or 64) // size for s, mn in ((a_swizzle, a_mn), (b_swizzle, b_mn)) if s is not None and not mn]
    )
    depth = max(depth, 2 * step if a_mn or b_mn else step)
    depth = step if in_registers else depth
    name = f"wgmma.m64n{n}k{step}{'.satfinite' if satfinite else ''}.{d_type}.{a_type}.{b_type}"
    name += (
        " A "
        + ("in registers" if in_registers else f"{a_swizzle}{'t' if a_mn else ''}")
        + f" B {b_swizzle}{'t' if b_mn else ''}"
    )
    name += "" if scale_d else " without D"
    name += "" if signs == (1, 1) else f" signs {signs}"
    name += " edges" if special else ""
    rng, make = generator(name), edges if special else values
    # One more problem than needed: the first quarter of the problems is wide in range.
    a, b, c = (
        make(t, (CTAS, *s), rng) for t, s in ((a_type, (64, depth)), (b_type, (n, depth)), (d_type, (64, n)))
    )
    if not special:
        # A problem of each kind: values of one size, and of many.
        a[:1], b[:1] = (make(t, (4, *s), rng)[:1] for t, s in ((a_type, (64, depth)), (b_type, (n, depth))))
    if d_type == "s32" and not satfinite:
        c &= np.uint32(0x3FFFFFFF)
    left = Operand(64, depth, size, a_swizzle or 0, a_mn)
    right = Operand(n, depth, size, b_swizzle, b_mn)
    places = d_places(n)
    fragment = np.ascontiguousarray(c[:, *places])
    fragment = fragment.view(np.uint32) if d_type == "f16" else fragment
    count = fragment.shape[-1]
    if in_registers:
        per = 4 // size
        r, e = np.arange(4)[:, None], np.arange(per)[None, :]
        rows = (16 * WARP + G)[:, None, None] + 8 * (r % 2) + 0 * e
        columns = T[:, None, None] * per + e + 4 * per * (r // 2)
        image_a = pack(np.ascontiguousarray(a[:, rows, columns]), 8 * size)
    else:
        image_a = left.image(a)
    image_b = right.image(b)
    b_offset = 0 if in_registers else left.bytes
    copies = [] if in_registers else [(0, image_a.shape[1], "in0")]
    copies.append((b_offset, image_b.shape[1], "in1"))
    body = [
        f".shared .align 1024 .b8 s[{b_offset + right.bytes}]; mov.u32 %r50, s; mov.u32 %r51, %ctaid.x;"
        f" .reg .b32 %d<{count}>; .reg .b32 %a<4>;"
    ]
    for k, (offset, words, parameter) in enumerate(copies):
        body.append(
            f"ld.param.u64 %rd0, [{parameter}]; mad.wide.u32 %rd0, %r51, {4 * words}, %rd0; mov.u32 %r0, %tid0; C{k}: setp.ge.u32 %p0, %r0, {words};"
            f" @%p0 bra F{k}; mad.wide.u32 %rd1, %r0, 4, %rd0; ld.global.b32 %r1, [%rd1]; mad.lo.u32 %r2, %r0, 4, %r50; st.shared.b32 [%r2+{offset}], %r1; add.u32 %r0, %r0, 128; bra C{k}; F{k}:"
        )
    if in_registers:
        body.append(
            "ld.param.u64 %rd0, [in0]; mad.lo.u32 %r3, %r51, 128, %tid0; mad.wide.u32 %rd0, %r3, 16, %rd0; ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%rd0];"
        )
    body.append(
        f"ld.param.u64 %rd2, [in2]; mad.lo.u32 %r3, %r51, 128, %tid0; mad.wide.u32 %rd2, %r3, {4 * count}, %rd2;"
    )
    body += [f"ld.global.b32 %d{i}, [%rd2+{4 * i}];" for i in range(count)]
    body.append(
        "fence.proxy.async.shared::cta; bar.sync 0; wgmma.fence.sync.aligned; cvt.u64.u32 %rd3, %r50; shr.u64 %rd3, %rd3, 4; setp.eq.u32 %p1, 0, 0;"
    )
    shape, kinds = f"m64n{n}k{step}", f"{d_type}.{a_type}.{b_type}"
    transposes = ""
    if width(a_type) == 16:
        transposes = f", {int(b_mn)}" if in_registers else f", {int(a_mn)}, {int(b_mn)}"
    scales = "" if d_type == "s32" else f", {signs[0]}, {signs[1]}{transposes}"
    for i in range(depth // step):
        first = not scale_d and i == 0
        if not in_registers:
            body.append(
                f"add.u64 %rd4, %rd3, {left.step(i, step) >> 4}; or.b64 %rd4, %rd4, {left.descriptor():#x};"
            )
        body.append(
            f"add.u64 %rd5, %rd3, {b_offset + right.step(i, step) >> 4}; or.b64 %rd5, %rd5, {right.descriptor():#x};"
        )
        body.append(
            f"wgmma.mma_async.sync.aligned.{shape}{'.satfinite' if satfinite else ''}.{kinds} {registers('d', count)},"
            f" {registers('a', 4) if in_registers else '%rd4'}, %rd5, {'!' if first else ''}%p1{scales};"
        )
    body.append(
        f"wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; ld.param.u64 %rd6, [out]; mad.wide.u32 %rd6, %r3, {4 * count}, %rd6;"
    )
    body += [f"st.global.b32 [%rd6+{4 * i}], %d{i};" for i in range(count)]
    if d_type == "s32":
        judge = Exact()
    elif special:
        judge = Exact("f16x2" if d_type == "f16" else d_type)
    else:
        x, y, z = decode(a_type, a), decode(b_type, b), decode(d_type, c) * (1.0 if scale_d else 0.0)
        exact = signs[0] * signs[1] * np.einsum("wmk,wnk->wmn", x, y) + z
        magnitude = np.einsum("wmk,wnk->wmn", np.abs(x), np.abs(y)) + np.abs(z)
        output = "f16x2" if d_type == "f16" else d_type
        judge = Products(output, exact[:, *places], magnitude[:, *places], f"wgmma.{kinds}", depth // step)
    arguments = [
        image_a.reshape(-1),
        image_b.reshape(-1),
        fragment.reshape(-1),
        np.zeros(fragment.size, np.uint32),
    ]
    params = ".param .u64 in0, .param .u64 in1, .param .u64 in2, .param .u64 out"
    return Program(name, module(params, "\n".join(body)), arguments, {3: judge}, CTAS, group="wgmma")


TYPES = [
    ("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32"),
    *((a, b, d) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2") for d in ("f32", "f16")),
    *((a, b, "s32") for a in ("s8", "u8") for b in ("s8", "u8")),
]  # fmt: skip


def programs() -> Iterator[Program]:
    for n in range(8, 257, 8):
        yield multiply(n, "f16", "f16", "f32")
        yield multiply(n, "bf16", "bf16", "f32", a_swizzle=None, b_mn=True)
        if n <= 24 or n % 16 == 0:
            yield multiply(n, "s8", "u8", "s32")
    for a, b, d in TYPES:
        for n in (8, 64, 96, 256):
            for swizzle in (0, 32, 64, 128):
                if n in (8, 96) or swizzle == 128:
                    if (n, a, d, swizzle) not in (
                        (8, "f16", "f32", 128),
                        (64, "f16", "f32", 128),
                        (96, "f16", "f32", 128),
                        (256, "f16", "f32", 128),
                    ):
                        if (a, b) != ("s8", "u8") or swizzle != 128:
                            yield multiply(n, a, b, d, a_swizzle=swizzle, b_swizzle=swizzle)
            yield multiply(n, a, b, d, a_swizzle=None)
        yield multiply(16, a, b, d, a_swizzle=32, b_swizzle=128)
        yield multiply(32, a, b, d, scale_d=False)
        if d == "s32":
            yield multiply(32, a, b, d, satfinite=True)
            continue
        for signs in ((-1, 1), (1, -1), (-1, -1)):
            yield multiply(32, a, b, d, signs=signs)
        yield multiply(64, a, b, d, special=True)
        yield multiply(64, a, b, d, a_swizzle=None, special=True)
    for a, d in (("f16", "f32"), ("bf16", "f32"), ("f16", "f16")):
        for n in (8, 64, 96, 256):
            for swizzle in (0, 32, 64, 128):
                yield multiply(n, a, a, d, a_swizzle=swizzle, b_swizzle=swizzle, a_mn=True)
                yield multiply(n, a, a, d, a_swizzle=swizzle, b_swizzle=swizzle, b_mn=True)
            yield multiply(n, a, a, d, a_mn=True, b_mn=True)
        yield multiply(128, a, a, d, a_swizzle=64, b_swizzle=32, a_mn=True, b_mn=True)
