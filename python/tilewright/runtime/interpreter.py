"""What programs look for in Triton's interpreter. The CPU executor runs the same ``JITFunction`` that GPUs run."""

from __future__ import annotations

__all__ = ["InterpretedFunction"]


class InterpretedFunction:
    """A function that only the interpreter runs: no function here is one, so ``isinstance`` says no."""

    def __init__(self, fn, **options):
        raise TypeError(
            "not supported yet: InterpretedFunction; decorate the function with @jit, and TRITON_INTERPRET=1 runs it on the CPU"
        )
