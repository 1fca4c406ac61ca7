"""What a compilation gives, and the errors it raises."""

from .._tilewright import CompilationError, CompiledKernel

__all__ = ["AsmDict", "CompilationError", "CompiledKernel"]


class AsmDict(dict):
    """The stages of a compiled kernel by name; ``"sass"`` is disassembled when it is asked for."""

    def __init__(self, kernel: CompiledKernel):
        super().__init__()
        self._kernel = kernel

    def __missing__(self, key):
        if key != "sass" or "cubin" not in self:
            raise KeyError(key)
        self[key] = self._kernel.disassemble()
        return self[key]
