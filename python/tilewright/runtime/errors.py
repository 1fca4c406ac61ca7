"""The errors that Tilewright raises; ``str(error)`` holds everything there is to say.

A wrong call (an unknown keyword, a missing argument, a bad grid) raises ``TypeError`` or ``ValueError``.
"""

from .._tilewright import CompilationError, DriverError, KernelError, OutOfResources, TilewrightError

# Names that Triton programs catch.
TritonError = TilewrightError
PTXASError = CompilationError
InterpreterError = KernelError


class AutotunerError(TilewrightError):
    """An autotuner was told something that cannot be."""


def hint(name, known: list[str]) -> str:
    """What to write instead of a name that is none of those known."""
    from difflib import get_close_matches

    near = get_close_matches(str(name), known, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {known}"


# Triton's OutOfResources is made of three numbers and words, and programs make some of their own. Ours has a text alone.
def _part(at: int, doc: str) -> property:
    return property(lambda error: error.args[at] if len(error.args) == 3 else None, doc=doc)


def _text(error: OutOfResources) -> str:
    if len(error.args) != 3:
        return Exception.__str__(error)
    required, limit, name = error.args
    return f"out of resources: {name}: {required} are needed, and the hardware has {limit}"


OutOfResources.required = _part(0, "How much is needed, where a program said it.")
OutOfResources.limit = _part(1, "How much there is, where a program said it.")
OutOfResources.name = _part(2, "Of what, where a program said it.")
OutOfResources.__str__ = _text

__all__ = [
    "AutotunerError",
    "CompilationError",
    "DriverError",
    "InterpreterError",
    "KernelError",
    "OutOfResources",
    "PTXASError",
    "TilewrightError",
    "TritonError",
]
