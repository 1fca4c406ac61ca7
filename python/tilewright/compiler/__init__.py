"""What a compilation gives, and the errors it raises."""

import importlib

from .._tilewright import CompilationError, CompiledKernel

__all__ = [
    "ASTSource",
    "AsmDict",
    "CompilationError",
    "CompiledKernel",
    "IRSource",
    "LazyDict",
    "compile",
    "get_cache_key",
    "make_backend",
]


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


# Imported when they are asked for: most programs only call kernels.
_MODULES = ("code_generator", "compiled", "compiler", "errors", "hooks")


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in __all__:
        return getattr(importlib.import_module(".compiler", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
