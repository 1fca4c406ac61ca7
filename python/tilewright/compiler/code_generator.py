"""What programs look for in Triton's code generator. Ours is in Rust: it gives IR as text."""

from __future__ import annotations

from .errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct

__all__ = ["CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct", "ast_to_ttir"]


def ast_to_ttir(fn, src, context=None, options=None, codegen_fns=None, module_map=None, module=None) -> str:
    """The ``tt`` module of an ``ASTSource``, as text.

    :param options: an object or a dict with a launch's options.
    """
    from .compiler import compile

    given = dict(options) if isinstance(options, dict) else dict(vars(options)) if options is not None else {}
    return compile(src, options=given).asm["ttir"]


def __getattr__(name: str):
    raise AttributeError(
        f"not supported yet: triton.compiler.code_generator.{name} (the code generator is in Rust)"
    )
