"""What a compilation gives, and the errors it raises."""

from .._tilewright import CompilationError, CompiledKernel

__all__ = ["CompilationError", "CompiledKernel"]
