"""Small functions that programs take from ``triton._utils``."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import Any

from .language.core import TRITON_MAX_TENSOR_NUMEL, dtype

__all__ = [
    "BITWIDTH_DICT",
    "TRITON_MAX_TENSOR_NUMEL",
    "canonicalize_dtype",
    "canonicalize_ptr_dtype",
    "find_paths_if",
    "get_iterable_path",
    "get_primitive_bitwidth",
    "is_namedtuple",
    "is_power_of_two",
    "type_canonicalisation_dict",
    "validate_block_shape",
]

_OTHER_NAMES = {
    "u1": "bool int1 uint1 i1",
    "i32": "int",
    "fp8e4nv": "float8e4nv float8_e4m3fn",
    "fp8e4b8": "float8e4b8 float8_e4m3fnuz",
    "fp8e4b15": "float8e4b15",
    "fp8e5": "float8e5 float8_e5m2",
    "fp8e5b16": "float8e5b16 float8_e5m2fnuz",
    "fp16": "float16 half",
    "bf16": "bfloat16",
    "fp32": "float32 float",
    "fp64": "float64 double",
}
type_canonicalisation_dict = {
    **{f"{kind}int{n}": f"{kind or 'i'}{n}" for kind in ("", "u") for n in (8, 16, 32, 64)},
    **{other: name for name, others in _OTHER_NAMES.items() for other in others.split()},
    "void": "void",
}
"""Names of types, torch's and C's too, and how a signature spells them."""
type_canonicalisation_dict |= {name: name for name in type_canonicalisation_dict.values()}

BITWIDTH_DICT = {
    name: dtype(short if short in dtype.FP_TYPES else "void").primitive_bitwidth
    if short[0] not in "iu"
    else int(short[1:])
    for name, short in type_canonicalisation_dict.items()
}
"""The bits of an element, by any of these names."""


def canonicalize_dtype(dtype) -> str:
    """How a signature spells a type: ``fp16`` for ``torch.float16``. An unknown one is a ``KeyError``."""
    return type_canonicalisation_dict[str(dtype).split(".")[-1]]


def canonicalize_ptr_dtype(dtype, is_const: bool) -> str:
    """How it spells a pointer to that: ``*fp16``, or ``*kfp16`` to memory that is only read."""
    return f"{'*k' if is_const else '*'}{canonicalize_dtype(dtype)}"


def get_primitive_bitwidth(dtype: str) -> int:
    """The bits of an element of a type, by its name."""
    return BITWIDTH_DICT[dtype]


def validate_block_shape(shape: list[int]) -> int:
    """How many elements a block has. More than there may be is a ``ValueError``, an extent that is no ``int`` a ``TypeError``."""
    for at, extent in enumerate(shape):
        if not isinstance(extent, int):
            raise TypeError(f"extent {at} of a block is an integer, not {extent!r}")
    if (count := prod(shape)) > TRITON_MAX_TENSOR_NUMEL:
        raise ValueError(f"a block of {count} elements is larger than {TRITON_MAX_TENSOR_NUMEL}")
    return count


def is_namedtuple(val) -> bool:
    """Whether a class is one of ``namedtuple``."""
    return isinstance(val, type) and issubclass(val, tuple) and hasattr(val, "_fields")


def get_iterable_path(iterable, path: tuple[int, ...]) -> Any:
    """What stands at a path of indices in nested tuples and lists."""
    return reduce(lambda inner, at: inner[at], path, iterable)


def find_paths_if(iterable, pred: Callable[[tuple[int, ...], Any], bool]) -> list[tuple[int, ...]]:
    """The paths, in order, of what is in nested tuples and lists and of which ``pred(path, item)`` is true."""

    def paths(path: tuple[int, ...], item):
        if isinstance(item, (list, tuple)):
            for at, inner in enumerate(item):
                yield from paths((*path, at), inner)
        elif pred(path, item):
            yield path

    return list(paths((), iterable))


def is_power_of_two(x: int) -> bool:
    """Whether a number has one bit, or none."""
    return x & (x - 1) == 0
