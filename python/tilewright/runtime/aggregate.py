"""What the compiler asks of a class that is decorated with ``@_aggregate``: its fields and functions."""

from __future__ import annotations

import inspect
import types
import typing

from ..language._marker import ConstexprFunction
from .jit import JITFunction

__all__ = ["parts"]


def parts(cls):
    """The annotated fields as ``(name, class)``, and the functions as ``(name, function, kind, static)``.

    A class that is a tuple stands for any of several. A kind is ``"jit"``, ``"constexpr"`` or ``"plain"``.
    """
    known = cls.__dict__.get("_aggregate_parts")
    if known is None:
        fields = [(name, _classes(annotation)) for name, annotation in _annotations(cls).items()]
        known = cls._aggregate_parts = (fields, list(_functions(cls)))
    return known


def _annotations(cls):
    # Those of a module that postpones them are texts, which mean what they mean to the functions.
    init = vars(cls).get("__init__")
    if not isinstance(init, types.FunctionType):
        return inspect.get_annotations(cls, eval_str=True)
    closure = inspect.getclosurevars(init).nonlocals
    return inspect.get_annotations(cls, globals=init.__globals__, locals=closure | vars(cls), eval_str=True)


def _classes(annotation):
    if annotation is types.NoneType:
        return None
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return tuple(map(_classes, typing.get_args(annotation)))
    return typing.get_origin(annotation) or annotation


def _functions(cls):
    members = {}
    for base in reversed(cls.__mro__[:-1]):
        members |= vars(base)
    for name, member in members.items():
        static = isinstance(member, staticmethod)
        function = member.__func__ if static else member
        if isinstance(function, JITFunction):
            yield name, function, "jit", static
        elif isinstance(function, ConstexprFunction):
            yield name, JITFunction(function.fn), "constexpr", static
        elif isinstance(function, types.FunctionType) and name != "__new__":
            yield name, JITFunction(function), "plain", static
