"""PTX: instructions that stand in place of the call, with ``%[x]`` for the parameter ``x``, or a function of a module of PTX."""

import re

from .._function import Code
from ._ptx_text import function_of, with_lines

NAME, SUFFIX = "ptx", "ptx"
OPTIONS = {}
IN_REGISTERS = True


def check(options):
    """Everything goes with everything."""


def compile(function, target):
    """The text with its lines."""
    text, file = function.text()
    if not re.search(r"^\s*(\.\w+\s+)*\.func\b", text, re.MULTILINE):
        return Code("ptx", "", with_lines(text, file, inside=True))
    symbol, parameters = function_of(text, function.options["extern_func_name"] or function.name)
    return Code("ptx", symbol, with_lines(text, file, inside=False), parameters)
