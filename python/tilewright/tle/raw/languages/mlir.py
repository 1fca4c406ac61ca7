"""MLIR: a Python function that builds its operations (:mod:`tilewright.tle.raw.mlir`), or text, evaluated by our own front end."""

import builtins

from .._function import Code
from ._mlir_text import python_of

NAME, SUFFIX = "mlir", "mlir"
OPTIONS = {"pipeline": None}
IN_REGISTERS = False


def check(options):
    """Refuses what there is no place for: passes are ours."""
    if options["pipeline"]:
        raise NotImplementedError(
            "not supported yet: `pipeline` of MLIR functions, whose passes are the compiler's own"
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
