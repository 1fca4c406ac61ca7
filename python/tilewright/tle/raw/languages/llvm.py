"""LLVM IR as text (that of LLVM 19): it is linked with the kernel and inlined."""

import re

from .._function import Code

NAME, SUFFIX = "llvm", "ll"
OPTIONS = {}
IN_REGISTERS = False


def check(options):
    """Everything goes with everything."""


def compile(function, target):
    """The text as it is."""
    text, file = function.text()
    name = function.options["extern_func_name"] or function.name
    found = re.search(rf"^define\b[^@]*@\"?{re.escape(name)}\"?\s*\(", text, re.MULTILINE)
    if found is None:
        there = ", ".join(re.findall(r"^define\b[^@]*@\"?([\w.$]+)", text, re.MULTILINE)) or "none"
        raise ValueError(f"{file} defines no function `@{name}`; there are: {there}")
    return Code("llvm", name, text, _count(text, found.end()))


def _count(text, at):
    """How many parameters a list has that begins here."""
    depth, commas, inside = 0, 0, ""
    for char in text[at:]:
        if char == ")" and depth == 0:
            break
        depth += (char in "(<{[") - (char in ")>}]")
        commas += char == "," and depth == 0
        inside += char
    return commas + 1 if inside.strip() else 0
