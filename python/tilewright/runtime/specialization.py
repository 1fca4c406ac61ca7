"""What a launch finds out about its arguments, for programs that take a launch apart; launches themselves do it in the extension."""

from __future__ import annotations

import json
from collections.abc import Callable

from .._tilewright import JitBase, signature_of
from ..language._marker import ConstexprFunction

__all__ = ["binder", "compute_cache_key", "native_specialize_impl", "serialize_specialization_data"]


def native_specialize_impl(backend, arg, is_const: bool, specialize_value: bool, align: bool) -> tuple:
    """The type of an argument as signatures spell it, and what is known of its value: a number or object that is compiled in, or
    a word such as ``D`` for a multiple of 16; of a tuple a tuple of each.

    :param backend: the backend, or its class, whose ``get_int_specialization`` and ``get_tensor_specialization`` give the word.
    :param is_const: whether the kernel only reads the memory (``tl.const``).
    :param specialize_value: whether the number 1 is compiled in, and a word looked for.
    :param align: whether multiples of 16 are looked for.
    """
    if isinstance(arg, tuple):
        parts = [native_specialize_impl(backend, x, is_const, specialize_value, align) for x in arg]
        again = getattr(type(arg), "_make", tuple)
        return again([ty for ty, _ in parts]), again([known for _, known in parts])
    if isinstance(arg, (JitBase, ConstexprFunction)):
        return "constexpr", arg.cache_key
    ty = signature_of(arg, is_const, specialize_value)
    if ty == "constexpr":
        return ty, arg
    if not specialize_value:
        return ty, None
    if ty[0] == "*":
        # What has no address of Triton's kind (NumPy's arrays, dtypes in place of arrays) is not known to be aligned.
        return ty, backend.get_tensor_specialization(arg, align=align) if hasattr(arg, "data_ptr") else ""
    if ty[0] in "iu" and ty != "u1":
        return ty, backend.get_int_specialization(arg, align=align)
    return ty, None


def binder(fn, backend) -> Callable[..., tuple[dict, list[tuple], dict]]:
    """A function that takes the arguments of a launch, and gives those of the kernel by name, for each parameter what
    :func:`native_specialize_impl` gives, and the options.

    :param fn: what ``@jit`` gave.
    """
    names = set(fn.arg_names)

    def specialized(param, value) -> tuple:
        if param.is_constexpr:
            return "constexpr", value
        plain = param.do_not_specialize or param.annotation_type[:2] in ("u1", "fp", "bf")
        align = not param.do_not_specialize_on_alignment
        ty, known = native_specialize_impl(backend, value, param.is_const, not plain, align)
        return param.annotation_type or ty, known

    def bind(*args, **kwargs):
        given = {name: value for name, value in kwargs.items() if name in names}
        bound = fn.signature.bind(*args, **given)
        bound.apply_defaults()
        specialization = [specialized(param, bound.arguments[param.name]) for param in fn.params]
        return bound.arguments, specialization, {k: v for k, v in kwargs.items() if k not in names}

    return bind


def compute_cache_key(kernel_key_cache: dict, specialization: list[tuple], options: dict) -> str:
    """The key of a kernel in a mapping of a program's own: functions among the arguments count by their source."""

    def text(item) -> str:
        if isinstance(item, (tuple, list)):
            return f"({', '.join(map(text, item))})"
        return item.cache_key if isinstance(item, JitBase) else repr(item)

    known = (tuple(map(text, specialization)), str(options))
    return kernel_key_cache.setdefault(known, f"{text(specialization)}{options}")


def serialize_specialization_data(name, signature, constants: dict, attrs: dict, options, key) -> str:
    """A compilation as JSON, from which :meth:`JITFunction.preload` repeats it in another process.

    :param constants: values that are compiled in, by path.
    :param attrs: what is known of arguments, by path.
    :param options: the options by name, or an object that has them as attributes.
    """
    return json.dumps(
        {
            "name": name,
            "signature": signature,
            "constant_keys": [list(path) for path in constants],
            "constant_vals": [_constant(value) for value in constants.values()],
            "attrs_keys": [list(path) for path in attrs],
            "attrs_vals": list(attrs.values()),
            "options": options if isinstance(options, dict) else vars(options),
            "key": key,
        },
        default=str,
    )


def _constant(value):
    if isinstance(value, tuple):
        return list(map(_constant, value))
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
