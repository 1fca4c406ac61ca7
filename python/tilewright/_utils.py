"""Small functions that programs take from ``triton._utils``."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

__all__ = ["find_paths_if", "get_iterable_path", "is_power_of_two"]


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
