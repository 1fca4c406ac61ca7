"""How functions of the language are marked. Nothing here may be slow: `import tilewright` pays for it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, overload

    F = TypeVar("F", bound=Callable[..., Any])


class KernelOnlyError(RuntimeError):
    """A function of the language was called by Python instead of by a kernel."""


class _LanguageFunction:
    """A function that exists inside kernels. Calling it from Python raises :class:`KernelOnlyError`."""

    def __init__(self, fn):
        self.fn = fn
        self.__wrapped__ = fn
        self.__module__ = fn.__module__
        self.__name__ = fn.__name__
        self.__qualname__ = fn.__qualname__
        self.__doc__ = fn.__doc__

    def __call__(self, *args, **kwargs):
        raise KernelOnlyError(
            f"tl.{self.__name__} can only be called inside a kernel (a function decorated with @tilewright.jit); "
            "on the host use Python, NumPy or torch instead"
        )

    def __get__(self, instance, owner=None):
        # Members of `tl.tensor` are listed on the class for help() and completion only.
        return self

    def __repr__(self):
        return f"<{type(self).__name__} tl.{self.__name__}>"


class Builtin(_LanguageFunction):
    """A function that the compiler implements; its Python body is empty, its signature is what the compiler checks."""

    __triton_builtin__ = True


class LibraryFunction(_LanguageFunction):
    """A function of the standard library, written in the language itself."""


def builtin(fn=None, *, on_host=False):
    """Marks a function that the compiler implements. With ``on_host`` Python may call it, too, and runs its body."""
    if fn is None:
        return lambda fn: builtin(fn, on_host=on_host)
    if on_host:
        fn.__triton_builtin__ = True
        return fn
    return Builtin(fn)


if TYPE_CHECKING:

    @overload
    def must_use_result(x: F, s: bool = True) -> F: ...
    @overload
    def must_use_result(x: str) -> Callable[[F], F]: ...


def must_use_result(x, s=True):
    """Marks a function whose result must be used: a call of it as a statement of its own is an error at compile time.

    ``@must_use_result("why")`` says why in the error.
    """
    if isinstance(x, str):
        return lambda fn: must_use_result(fn, x)
    x._must_use_result = s
    return x


def jit(fn):
    """Marks a function of the standard library that is written in the language."""
    return LibraryFunction(fn)


def constexpr_function(fn: F) -> F:
    """Marks a function that runs at compile time on constants. It is an ordinary Python function on the host.

    A kernel keeps what the function gave when the kernel was compiled. A launch after a global, a variable of an enclosing function or
    a function that it reads has changed, so that it would give something else, is an error; what it reads in other ways
    (the environment, files) is read anew by the next process only.
    """
    fn.__constexpr_function__ = True
    return fn
