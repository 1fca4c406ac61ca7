"""A program, its arguments, and how its results are judged."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .formats import FLOATS, UINT, scalar, width


@dataclass
class Exact:
    """Bit for bit; the ISA leaves the payload of a NaN open, so that any two NaNs of ``type`` are equal."""

    type: str = ""

    def canonical(self, bits: np.ndarray) -> np.ndarray:
        """The bits with every NaN replaced by one."""
        name = scalar(self.type)[0]
        if name not in FLOATS:
            return bits
        parts = bits.reshape(-1).view(UINT[width(name)]).copy()
        parts[np.isnan(FLOATS[name].decode(parts))] = (1 << FLOATS[name].bits) - 1
        return parts

    def wrong(self, gpu: np.ndarray, sim: np.ndarray) -> np.ndarray:
        """Indices of elements that differ."""
        return np.flatnonzero(self.canonical(gpu) != self.canonical(sim))


@dataclass
class Near:
    """An approximation: each side is within the ISA's bound of ``exact``, a relative or an absolute error."""

    type: str
    exact: np.ndarray
    relative: float = 0
    absolute: float = 0

    def error(self, bits: np.ndarray) -> float:
        """The largest error as a fraction of the bound."""
        name = scalar(self.type)[0]
        got = FLOATS[name].decode(bits.reshape(-1).view(UINT[width(name)]))
        with np.errstate(invalid="ignore"):
            # Half a unit for the rounding of the result to its type is not part of the function's error.
            step = np.ldexp(np.abs(self.exact), -FLOATS[name].fraction - 1)
            bound = np.maximum(self.relative * np.abs(self.exact), self.absolute) + step
            error = np.where(got == self.exact, 0, np.abs(got - self.exact) / bound)
        return float(np.nanmax(np.where(np.isnan(got) != np.isnan(self.exact), np.inf, error)))


@dataclass
class Products:
    """Sums of products: |Δ| ≤ c · Σ|a·b| against ``exact`` for each instruction; the addend counts as a product."""

    type: str
    exact: np.ndarray
    magnitude: np.ndarray
    kind: str  # which c holds: the instruction and its types
    instructions: int = 1  # how many followed each other

    def ratio(self, bits: np.ndarray) -> float:
        """The largest |Δ| / Σ|a·b| of an instruction."""
        name = scalar(self.type)[0]
        got = FLOATS[name].decode(bits.reshape(-1).view(UINT[width(name)]))
        delta = np.abs(got - self.exact.reshape(-1))
        return float(np.max(delta / np.maximum(self.magnitude.reshape(-1), 1e-300))) / self.instructions


@dataclass
class TensorMap:
    """A tensor in the array at ``argument``, and the box that one copy moves; dimension 0 is the innermost."""

    argument: int
    type: str  # u8, u16, u32, u64, s32, s64, f16, bf16, f32, f64
    dims: list[int]
    strides: list[int]  # bytes, for each dimension but the innermost
    box: list[int]
    element_strides: list[int] = field(default_factory=list)
    swizzle: int = 0  # bytes: 0, 32, 64, 128
    nan_fill: bool = False


@dataclass
class Program:
    """One PTX module with an entry ``k``."""

    name: str
    ptx: str
    arguments: list[np.ndarray | TensorMap]
    outputs: dict[int, Exact | Near | Products]  # by argument
    grid: int = 1
    block: int = 128
    cluster: int = 1
    group: str = ""

    def copies(self) -> list:
        """The arguments, with arrays of their own."""
        return [aligned(a) if isinstance(a, np.ndarray) else a for a in self.arguments]


def aligned(values: np.ndarray) -> np.ndarray:
    """A copy at a multiple of 256 bytes, as the driver's allocations are."""
    raw = np.empty(values.nbytes + 256, np.uint8)
    start = -raw.ctypes.data % 256
    copy = raw[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def module(params: str, body: str, target: str = "sm_90a", version: str = "8.4", declare: str = "") -> str:
    """PTX text with an entry ``k``; ``%tid0`` is the thread, ``%p``, ``%r``, ``%rd``, ``%h``, ``%f`` are registers."""
    return (
        f".version {version}\n.target {target}\n.address_size 64\n{declare}\n"
        f".visible .entry k({params}) {{\n"
        ".reg .pred %p<16>; .reg .b16 %h<32>; .reg .b32 %r<64>; .reg .b64 %rd<64>; .reg .b32 %tid0;\n"
        f"mov.u32 %tid0, %tid.x;\n{body}\nret;\n}}\n"
    )


THREADS, CTAS = 128, 8
N = THREADS * CTAS


def register(bits: int, name: str) -> str:
    return f".reg .b{max(bits, 16)} {name};"


def threadwise(
    name: str,
    body: str,
    inputs: list[tuple[np.ndarray, int]],
    output: str,
    judge,
    per_thread: int = 1,
    group: str = "",
    **keywords,
) -> Program:
    """Each thread loads its operands (%a, %b, %c; of several elements %a0, %a1, …), runs ``body`` and stores %d.

    :param inputs: arrays of N × count elements, and count.
    :param output: type of an element of the result, of which each thread has ``per_thread``.
    """
    lines = [
        ".reg .b64 %ptr; .reg .b32 %index; mov.u32 %index, %ctaid.x;"
        f" mad.lo.u32 %index, %index, {THREADS}, %tid0;"
    ]
    params = []
    for k, (array, count) in enumerate(inputs):
        letter, bits = "abcefg"[k], array.itemsize * 8
        params.append(f".param .u64 in{k}")
        lines.append(
            f"ld.param.u64 %ptr, [in{k}]; mad.wide.u32 %ptr, %index, {array.itemsize * count}, %ptr;"
        )
        for i in range(count):
            reg = f"%{letter}{i if count > 1 else ''}"
            kind = "u8" if bits == 8 else f"b{bits}"
            lines.append(f"{register(bits, reg)} ld.global.{kind} {reg}, [%ptr+{array.itemsize * i}];")
    bits = width(output)
    names = [f"%d{i if per_thread > 1 else ''}" for i in range(per_thread)]
    lines += [register(bits, n) for n in names]
    lines.append(body)
    lines.append(f"ld.param.u64 %ptr, [out]; mad.wide.u32 %ptr, %index, {bits // 8 * per_thread}, %ptr;")
    kind = "u8" if bits == 8 else f"b{bits}"
    lines += [f"st.global.{kind} [%ptr+{bits // 8 * i}], {n};" for i, n in enumerate(names)]
    params.append(".param .u64 out")
    arrays = [a for a, _ in inputs]
    result = np.zeros(N * per_thread, UINT[bits])
    return Program(
        name,
        module(", ".join(params), "\n".join(lines), **keywords),
        [*arrays, result],
        {len(arrays): judge},
        grid=CTAS,
        block=THREADS,
        group=group,
    )
