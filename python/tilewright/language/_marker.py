"""How functions of the language are marked. Nothing here may be slow: `import tilewright` pays for it."""

from __future__ import annotations

from types import MethodType

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


def also(**names):
    """Marks a function of which parameters have second names: ``@also(ptr="pointer")``."""
    return lambda fn: fn


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


class ConstexprFunction:
    """What :func:`constexpr_function` makes of a function. Calling it calls the function, with the values of constexprs."""

    __constexpr_function__ = True

    def __init__(self, fn):
        self.fn = fn
        self._src = self._first_line = self._jit = None
        self.__wrapped__ = fn
        self.__module__ = fn.__module__
        self.__name__ = fn.__name__
        self.__qualname__ = fn.__qualname__
        self.__doc__ = fn.__doc__

    def __call__(self, *args, _semantic=None, **kwargs):
        # A grid computed at each launch (`cdiv`) has plain integers: there is nothing to take out of them.
        for x in args:
            if type(x) is not int:
                break
        else:
            if not kwargs:
                return self.fn(*args)
        from .core import constexpr

        def value(x):
            return x.value if isinstance(x, constexpr) else x

        return self.fn(*map(value, args), **{name: value(x) for name, x in kwargs.items()})

    def __get__(self, instance, owner=None):
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self):
        # By its name, as a function is.
        return self.__qualname__

    def __repr__(self):
        return f"<constexpr_function {self.__module__}.{self.__qualname__}>"

    @property
    def __globals__(self):
        return self.fn.__globals__

    @property
    def src(self) -> str:
        """The function's source, dedented, from ``def`` on."""
        if self._src is not None:
            return self._src
        from ..runtime.jit import definition

        return definition(self.fn)[0]

    def _unsafe_update_src(self, new_src: str):
        """Has the function mean other source, which may use the globals of its module. Kernels that called it and are compiled already
        keep what they have."""
        self._first_line = self.starting_line_number
        found: dict[str, Any] = {}
        exec(compile(new_src, self.fn.__code__.co_filename, "exec"), self.fn.__globals__, found)
        self.fn = self.__wrapped__ = found[self.fn.__name__]
        self._src, self._jit = new_src, None

    def _source(self):
        """The function for the front end, which evaluates calls with values of run time."""
        if self._jit is None:
            from ..runtime.jit import JITFunction

            self._jit = JITFunction(self.fn)
            if self._src is not None:
                self._jit._replace_source(self._src, self._first_line)
        return self._jit

    @property
    def starting_line_number(self) -> int:
        """The line of the file on which the source starts, decorators included."""
        import inspect

        return self._first_line or inspect.getsourcelines(self.fn)[1]

    @property
    def cache_key(self) -> str:
        """A digest of the source and of that of the functions of kernels that it calls."""
        from ..runtime.jit import digest

        return digest(self)


def constexpr_function(fn: F) -> F:
    """Marks a function that runs at compile time on constants. On the host it is called like any other.

    A kernel keeps what the function gave when the kernel was compiled. A launch after a global, a variable of an enclosing function or
    a function that it reads has changed, so that it would give something else, is an error; what it reads in other ways
    (the environment, files) is read anew by the next process only.
    """
    return fn if isinstance(fn, ConstexprFunction) else ConstexprFunction(fn)  # type: ignore[return-value]


class NotSupportedYet(_LanguageFunction):
    """A name that the reference of TLE has and Tilewright has not yet. It can be imported and passed on; using it says so."""

    def __init__(self, module, name, known):
        self.__module__ = module
        self.__name__ = self.__qualname__ = name
        self._known = known

    def _path(self):
        return f"{self.__module__.partition('.')[2]}.{self.__name__}".removeprefix("experimental.")

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"not supported yet: {self._path()}")

    def __getitem__(self, index):
        raise NotImplementedError(f"not supported yet: {self._path()}")

    def __getattr__(self, name):
        inner = self._known.get(f"{self.__name__}.{name}")
        if inner is None:
            raise AttributeError(f"not supported yet: {self._path()}, nor its `{name}`")
        return inner

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"<not supported yet: {self._path()}>"


def not_supported_yet(module, names):
    """The objects of a module's names that are not there yet, by name."""
    known: dict[str, NotSupportedYet] = {}
    known.update((name, NotSupportedYet(module, name, known)) for name in names)
    return known


def explain_missing(module, names):
    """What a module's ``__getattr__`` says of a name that it has not."""

    def missing(name):
        import difflib

        near = difflib.get_close_matches(name, names, 1)
        hint = f"; did you mean `{near[0]}`?" if near and not name.startswith("_") else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name)

    return missing
