"""Kinds of elements: what the language calls them, how wide they are, which integers they hold."""

from __future__ import annotations

# What a kind is called in the language.
DTYPES = {
    "b": "int1",
    **{
        f"{s}{bits}": f"{word}{bits}" for s, word in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)
    },
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "e4m3": "float8e4nv",
    "e5m2": "float8e5",
}
# What NumPy calls those that it calls otherwise.
NUMPY = {"b": "bool", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}

# Integers up to here are exact, and so are their sums: a step below the end of the format's integers.
EXACT = {"f16": 1024, "bf16": 128, "f32": 2**23, "f64": 2**40}
# How wide they are.
BITS = {"b": 1, "e4m3": 8, "e5m2": 8, "f16": 16, "bf16": 16, "f32": 32, "f64": 64} | {
    f"{s}{bits}": bits for s in "iu" for bits in (8, 16, 32, 64)
}
# What is chosen from, the usual ones more often.
KINDS = "f32 f32 f32 f16 f16 bf16 f64 i32 i32 i32 i8 i16 i64 u8 u16 u32 u64 b".split()
BYTES = {kind: max(bits // 8, 1) for kind, bits in BITS.items()}
# Elements of a tile.
LARGEST = 4096


def whole(kind: str) -> int:
    """The largest magnitude of a kind."""
    return EXACT[kind] if kind in EXACT else 1 if kind == "b" else 2 ** BITS[kind]


def is_float(kind: str) -> bool:
    return kind in EXACT
