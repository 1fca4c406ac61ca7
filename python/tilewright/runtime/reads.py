"""What a Python function reads from its surroundings: where a change of its result could come from."""

from __future__ import annotations

import dis
from types import CodeType, FunctionType, MethodType, ModuleType

from .._tilewright import JitBase


def reads(function) -> list[tuple[object, str, str]]:
    """The places that a function and the functions it calls read, as ``(container, name, function)``.

    A container is a namespace (a dict), a module, or the cell of a variable of an enclosing function. What a function reads
    in other ways (files, the environment, attributes of objects) is not listed.
    """
    places: list[tuple[object, str, str]] = []
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        function = _plain(waiting.pop())
        if function is None or id(function) in seen:
            continue
        seen.add(id(function))
        for container, name, value in _reads_of(function):
            places.append((container, name, function.__name__))
            waiting.append(value)
    return places


def _plain(value) -> FunctionType | None:
    """The Python function behind a value; none for anything else, and for this package's own."""
    if isinstance(value, JitBase):
        value = value.fn
    if isinstance(value, MethodType):
        value = value.__func__
    # What functools made of a function, such as a cache in front of it.
    if not isinstance(value, FunctionType) and callable(value):
        value = getattr(value, "__wrapped__", None)
    if not isinstance(value, FunctionType):
        return None
    return None if (value.__module__ or "").partition(".")[0] in ("tilewright", "triton") else value


def _reads_of(function: FunctionType):
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield cell, name, cell.cell_contents
        except ValueError:  # not assigned yet
            pass
    yield from _globals_of(function.__code__, function.__globals__)


def _globals_of(code: CodeType, namespace: dict):
    holder = None  # the module that the instruction before put on the stack
    for instruction in dis.get_instructions(code):
        name = instruction.argval
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            value = namespace.get(name)
            yield namespace, name, value
            holder = value if isinstance(value, ModuleType) else None
        elif holder is not None and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            value = getattr(holder, name, None)
            yield holder, name, value
            holder = value if isinstance(value, ModuleType) else None
        elif instruction.opname not in ("CACHE", "PUSH_NULL", "EXTENDED_ARG"):
            holder = None
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_of(constant, namespace)
