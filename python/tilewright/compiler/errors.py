"""The errors of a compilation. A failed ``tl.static_assert`` and what the language does not have are told apart by their text."""

from .._tilewright import CompilationError

CompileTimeAssertionFailure = CompilationError
UnsupportedLanguageConstruct = CompilationError

__all__ = ["CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct"]
