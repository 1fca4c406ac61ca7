"""Functions in other languages as the host declares them, and what the compiler asks of them."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import Annotated, NamedTuple, get_args, get_origin, get_type_hints

_INTEGERS = {1: "int1", 8: "int8", 16: "int16", 32: "int32", 64: "int64"}
_FLOATS = {
    "f16": "fp16",
    "bf16": "bf16",
    "f32": "fp32",
    "f64": "fp64",
    "f8E4M3FN": "fp8e4nv",
    "f8E5M2": "fp8e5",
}
_ADDRESS_SPACE = {"": 0, "1": 1, "3": 3}


class Type(NamedTuple):
    """What a parameter is declared as: its kind, extents (-1 for any), the name of its element and its address space."""

    kind: str
    shape: tuple[int, ...] | None
    element: str | None
    space: int | None


class Direction:
    """``Input["memref<?xf32, 3>"]`` and ``InOut[...]``: the annotation of a parameter."""

    def __init__(self, name, text=None):
        self.name, self.text = name, text

    def __getitem__(self, text):
        if not isinstance(text, str):
            raise TypeError(f"{self.name}[...] takes a type of MLIR as a string, not {text!r}")
        return Direction(self.name, text)

    def __call__(self):
        raise TypeError(f"{self.name} is an annotation: write x: {self.name}['tensor<128xf32>']")

    def __repr__(self):
        return self.name if self.text is None else f"{self.name}[{self.text!r}]"


#: What a function reads only.
Input = Direction("Input")
#: What a function reads and writes: an output of the call.
InOut = Direction("InOut")


class Parameter(NamedTuple):
    """A parameter of a function."""

    name: str
    is_output: bool
    type: Type | None


class Code(NamedTuple):
    """A function compiled for a target: in ``ptx`` or ``llvm`` the text of a module that has it, or PTX to stand in its place (no symbol)."""

    language: str
    symbol: str
    source: str
    #: How many parameters it has; ``None`` where it has operands by name.
    parameters: int | None = None


class RawFunction:
    """A function in another language: what :func:`dialect` makes of a Python function."""

    def __init__(self, fn, module, options):
        self.fn = fn
        self.name = fn.__name__
        # Of the user's, not of this package.
        self.__module__ = fn.__module__
        self.__doc__ = fn.__doc__
        self.module, self.options = module, options
        self.threads_dim = self.sync_scope = None
        self._parameters = None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters; none for a function of ``*args``, which takes any."""
        if self._parameters is None:
            self._parameters = tuple(_parameters_of(self.fn))
        return self._parameters

    def text(self) -> tuple[str, str]:
        """The source in its language, and the name of the file that it stands in."""
        source, file = self.options["source"], self.options["file"]
        if (source is None) == (file is None):
            raise ValueError(f"`{self.name}` needs its source: give dialect either `file` or `source`")
        here = Path(inspect.getsourcefile(self.fn) or ".").parent
        if source is not None:
            name = f"{self.name}.{self.module.SUFFIX}"
            return _text(inspect.cleandoc(source) + "\n", name), name
        path = here / file
        if not path.is_file():
            what = "a folder" if path.is_dir() else "not there"
            raise FileNotFoundError(f"`{self.name}` is in {path}, which is {what}")
        try:
            # Without the mark at the beginning that some editors write.
            return _text(path.read_text(encoding="utf-8-sig"), str(path)), str(path)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not text in UTF-8: {error.reason} at byte {error.start}") from error

    def __call__(self, *args, **kwargs):
        raise TypeError(f"`{self.name}` is called by kernels: tle.raw.call({self.name}, [...])")

    def __repr__(self):
        return f"<{self.module.NAME} function {self.name}>"


def dialect(name, **options):
    """Declares a function in another language: ``@dialect(name="cuda", file="add.cu")``.

    The function's own body is empty but in ``mlir``; its parameters may be annotated by :data:`Input` and :data:`InOut`.

    :param name: the language: ``ptx``, ``llvm``, ``cuda``, ``mlir``.
    :param file: the source's file, from the folder of the Python file on; or ``source``, the text itself.
    :param extern_func_name: the function's name there; by default that of the Python function.
    :param deferred: the outputs are said by each call, in ``output_indices``.
    :raises ValueError: there is no such language, or it knows no such option.
    :raises TypeError: an option is of another kind.
    """
    module = _language(name)
    known = {"file": None, "source": None, "extern_func_name": None, "deferred": False, **module.OPTIONS}
    for key, value in options.items():
        if key not in known:
            raise ValueError(f"the language {name} has no option `{key}`; it has {', '.join(known)}")
        known[key] = value
    for key, kinds in _KINDS.items():
        if known[key] is not None and not isinstance(known[key], kinds):
            raise TypeError(f"`{key}` of dialect is a string, not {known[key]!r}")
    module.check(known)
    return lambda fn: RawFunction(fn, module, known)


def language(name, **options):
    """:func:`dialect` by the name that the architecture document has for it, ``@tle.raw.language(name="mlir")``."""
    return dialect(name, **options)


def hardware_constraint(threads_dim=None, sync_scope=None):
    """Says of a function in another language how many dimensions its threads are numbered in, and who waits for each other in it.

    :param threads_dim: calls that say ``hardware={"threads": (…)}`` give as many numbers.
    :param sync_scope: ``"block"``, or ``"warp"`` for a function without a barrier of all threads.
    """
    if threads_dim is not None and threads_dim not in (1, 2, 3):
        raise ValueError(f"threads_dim must be 1, 2 or 3, not {threads_dim!r}")
    if sync_scope not in (None, "block", "warp"):
        if sync_scope in ("cluster", "grid"):
            raise NotImplementedError(f'not supported yet: sync_scope="{sync_scope}"')
        raise ValueError(f'sync_scope is "block" or "warp", not {sync_scope!r}')

    def mark(function):
        # The decorators stand in either order.
        if not isinstance(function, RawFunction):
            function.__tle_hardware__ = (threads_dim, sync_scope)
        else:
            function.threads_dim, function.sync_scope = threads_dim, sync_scope
        return function

    return mark


#: What the options of every language are.
_KINDS = {"file": (str, os.PathLike), "source": str, "extern_func_name": str}


def _text(text, file):
    """A source, which a compiler would read up to its first character NUL alone."""
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ValueError(f"{file} has a character NUL in line {line}")
    return text


def _language(name):
    from .languages import find

    return find(name)


def _parameters_of(fn):
    try:
        hints = get_type_hints(fn, include_extras=True)
    except Exception:
        # Types of packages that are not there: MLIR's own are written, and not needed.
        hints = dict(getattr(fn, "__annotations__", {}))
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return
        hint = hints.get(parameter.name)
        if isinstance(hint, str) and (
            said := re.fullmatch(r"\s*\w*\.?(Input|InOut)\[\s*(['\"])(.*)\2\s*\]\s*", hint)
        ):
            hint = Direction(said[1], said[3])
        if get_origin(hint) is Annotated:
            text = next((part for part in get_args(hint)[1:] if isinstance(part, str)), None)
            hint = Direction("Annotated", text)
        if isinstance(hint, Direction):
            declared = _type(hint.text, parameter.name) if hint.text else None
            yield Parameter(parameter.name, hint.name == "InOut", declared)
        else:
            yield Parameter(parameter.name, False, None)


def _element(text, where):
    text = text.strip()
    if text == "index":
        return "int64"
    if found := re.fullmatch(r"[su]?i(\d+)", text):
        name = _INTEGERS.get(int(found[1]))
        if name is not None:
            return f"u{name}" if text.startswith("u") else name
    if text in _FLOATS:
        return _FLOATS[text]
    raise ValueError(f"the type `{text}` of `{where}` is none that kernels have")


def _type(text, where):
    """A type of MLIR as it is written: ``tensor<1024xf32>``, ``memref<?x8xf16, 3>``, ``!llvm.ptr<1>``, ``i32``."""
    text = text.strip()
    if found := re.fullmatch(r"!llvm\.ptr(?:<\s*(\d)\s*>)?", text):
        space = _ADDRESS_SPACE.get(found[1] or "")
        if space is None:
            raise ValueError(f"`{where}` is `{text}`: there are address spaces 1 (global) and 3 (shared)")
        return Type("ptr", None, None, space)
    if found := re.fullmatch(
        r"(tensor|memref)<\s*((?:(?:\d+|\?)\s*x\s*)*)([^,>]+?)\s*(?:,[^>]*?(\d*)\s*)?>", text
    ):
        extents = tuple(-1 if n == "?" else int(n) for n in re.findall(r"\d+|\?", found[2]))
        return Type(found[1], extents, _element(found[3], where), _ADDRESS_SPACE.get(found[4] or "", 0))
    return Type("scalar", None, _element(text, where), None)


def _helper(fn):
    """A plain Python function that a function in MLIR calls: it is one, too."""
    from ...runtime.jit import jit

    return _JITTED.setdefault(fn, jit(fn))


# Functions by what the front end knows them by: one for each, always the same.
_JITTED: dict = {}


def _body(function):
    """The Python function that a function in MLIR is."""
    if function not in _JITTED:
        _JITTED[function] = function.module.body(function)
    return _JITTED[function]


def _entries(value):
    """What a constant of a kernel holds that is a dictionary: pairs of keys and values."""
    return tuple(value.items()) if isinstance(value, dict) else None


def _describe(function, target):
    """What the front end asks of a function (``crates/frontend``, ``eval/builtins/raw.rs``): compiled for the target where there is one."""
    marked = getattr(function.fn, "__tle_hardware__", None)
    threads_dim, sync_scope = marked or (function.threads_dim, function.sync_scope)
    name = function.options["extern_func_name"] or function.name
    native = function.module.NAME != "mlir"
    code = Code(function.module.NAME, name, "")
    if target is not None or not native:
        code = function.module.compile(function, target)
    if sync_scope == "warp" and re.search(r"\bbar(rier)?\.(cta\.)?(sync|red|arrive)", code.source):
        raise ValueError(
            f'`{function.name}` has a barrier of all threads, and is declared with sync_scope="warp"'
        )
    if function.options["deferred"] and code.symbol and not function.options["extern_func_name"]:
        raise RuntimeError(f"`{function.name}` is deferred: it needs `extern_func_name`")
    return (
        function.name,
        code.language,
        code.symbol,
        code.source,
        code.parameters,
        function.module.IN_REGISTERS,
        tuple((p.name, p.is_output, tuple(p.type) if p.type else ()) for p in function.parameters),
        threads_dim,
        bool(function.options["deferred"]),
    )
