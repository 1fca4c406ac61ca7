"""MLIR: a Python function that builds its operations (:mod:`tilewright.tle.raw.mlir`), evaluated by our own front end."""

from .._function import Code

NAME, SUFFIX = "mlir", "mlir"
OPTIONS = {"pipeline": None}
IN_REGISTERS = False


def check(options):
    """Refuses what there is no place for: passes are ours, and text is not read yet."""
    if options["pipeline"]:
        raise NotImplementedError(
            "not supported yet: `pipeline` of MLIR functions, whose passes are the compiler's own"
        )
    for key in ("file", "source", "extern_func_name"):
        if options[key] is not None:
            raise NotImplementedError(
                f"not supported yet: `{key}` of MLIR functions (write a Python function)"
            )


def compile(function, target):
    """Nothing: the function is evaluated with the kernel."""
    return Code("mlir", "", "")
