"""MLIR: a Python function that builds its operations (:mod:`tilewright.tle.raw.mlir`), or text, evaluated by our own front end."""

import builtins
import re

from .._function import Code
from ._mlir_text import python_of

NAME, SUFFIX = "mlir", "mlir"
OPTIONS = {"pipeline": None}
IN_REGISTERS = False


# Passes of MLIR that change no meaning, and that the compiler has its own for: they simplify, or take a function down to LLVM's dialect.
_SIMPLIFY = ("canonicalize", "cse", "inline", "loop-invariant-code-motion", "sccp", "symbol-dce")
_LOWER = r"(convert|expand|finalize|lower|reconcile|arith|memref|one-shot)(-[a-z0-9]+)+"


def check(options):
    """Refuses passes that the compiler has nothing for: those that simplify or lower run in any case, as its own."""
    pipeline = options["pipeline"]
    if pipeline is None:
        return
    if not isinstance(pipeline, (list, tuple)) or not all(isinstance(name, str) for name in pipeline):
        raise TypeError(f"`pipeline` of a function in MLIR is a list of names of passes, not {pipeline!r}")
    for name in pipeline:
        bare = name.strip().removeprefix("--").split("{")[0].strip()
        if bare not in _SIMPLIFY and not re.fullmatch(_LOWER, bare):
            raise ValueError(
                f"`pipeline` has the pass {name!r}, which the compiler has nothing for; it simplifies ({', '.join(_SIMPLIFY)}) "
                "and lowers (convert-…, expand-…, finalize-…, lower-…) by passes of its own"
            )


def compile(function, target):
    """Nothing: the function is evaluated with the kernel."""
    return Code("mlir", "", "")


def body(function):
    """The Python function that it is, which text is made to, as one that the front end evaluates."""
    from ....runtime.jit import jit
    from .. import mlir

    if function.options["source"] is None and function.options["file"] is None:
        return jit(function.fn)
    text, file = function.text()
    name = function.options["extern_func_name"] or function.name
    source = python_of(text, name)
    space = {dialect: getattr(mlir, dialect) for dialect in mlir.__all__}
    exec(builtins.compile(source, file, "exec"), space)
    made = jit(space[name])
    first = len(source) - len(source.lstrip("\n"))
    made._replace_source(source[first:], first + 1)
    return made
