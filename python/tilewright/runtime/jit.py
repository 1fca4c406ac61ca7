"""``tilewright.jit``: a decorated function is a kernel, or a function that kernels call.

The work of a launch is done by the extension (``_tilewright.JitBase``); what stands here is what people read: the
decorator's options, the kernel's parameters and its source.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import sys
import textwrap
import threading
import warnings
from collections import namedtuple
from collections.abc import Mapping, MutableMapping
from functools import cached_property

from .._tilewright import JitBase, call_error_text
from ..backends.compiler import BaseBackend
from ..language._marker import ConstexprFunction, constexpr_function
from .errors import hint
from .specialization import binder, compute_cache_key, native_specialize_impl, serialize_specialization_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Generic, TypeVar, overload

    from .._tilewright import CompiledKernel, Grid

    # What `@jit` decorates, and what that gives.
    K = TypeVar("K")
    F = TypeVar("F", bound=Callable[..., Any])
    R = TypeVar("R")
    Names = Sequence[str | int] | None
else:
    K = None

    class Generic:
        # As in `typing`, which is slow to import: `KernelInterface[T]` stands in annotations and base classes.
        def __class_getitem__(cls, _):
            return cls


__all__ = [
    "ConstexprFunction",
    "JITCallable",
    "JITFunction",
    "KernelInterface",
    "KernelParam",
    "MockTensor",
    "TensorWrapper",
    "compute_cache_key",
    "constexpr_function",
    "jit",
    "native_specialize_impl",
    "reinterpret",
    "serialize_specialization_data",
]

# Spellings of types in annotations, as signatures write them.
_CANONICAL = {
    "bool": "u1",
    "int1": "u1",
    "uint1": "u1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "float8e4nv": "fp8e4nv",
    "float8e5": "fp8e5",
    "float8e4b8": "fp8e4b8",
    "float8e4b15": "fp8e4b15",
    "float8e5b16": "fp8e5b16",
    "void": "void",
    # As torch has them.
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16",
}
_SHORT = frozenset(_CANONICAL.values())
#: The spelling in signatures for each name of a type, short ones included.
type_canonicalisation_dict = _CANONICAL | {name: name for name in _SHORT}


def _annotation_text(annotation) -> str:
    """An annotation as a string: ``constexpr``, ``*fp32``, ``i64``, ``const``, …; empty for none."""
    if annotation is inspect.Parameter.empty or annotation is None:
        return ""
    if isinstance(annotation, str):
        text = annotation.strip()
    elif isinstance(annotation, type):
        text = annotation.__name__
    else:
        # An instance of tl.dtype prints its name, and so does a pointer_type, as `pointer<fp32>`.
        text = str(annotation)
    if text.startswith("pointer<") and text.endswith(">"):
        return "*" + _annotation_text(text[len("pointer<") : -1])
    if text.startswith("const "):
        return "*k" + _annotation_text(text[len("const ") :].strip().removeprefix("*"))
    if text.startswith("*"):
        return "*" + _annotation_text(text[1:])
    text = text.removeprefix("tl.").removeprefix("triton.language.").removeprefix("tilewright.language.")
    return _CANONICAL.get(text, text)


class KernelParam:
    """A parameter of a kernel."""

    __slots__ = ("_parameter", "annotation", "do_not_specialize", "do_not_specialize_on_alignment", "num")

    def __init__(self, num, parameter, do_not_specialize, do_not_specialize_on_alignment):
        self.num = num
        self._parameter = parameter
        self.annotation = _annotation_text(parameter.annotation)
        self.do_not_specialize = do_not_specialize
        self.do_not_specialize_on_alignment = do_not_specialize_on_alignment

    @property
    def name(self) -> str:
        return self._parameter.name

    @property
    def is_constexpr(self) -> bool:
        """Whether the parameter is a compile-time constant (``BLOCK: tl.constexpr``)."""
        return "constexpr" in self.annotation

    @property
    def is_const(self) -> bool:
        """Whether the memory behind the pointer is only read (``x: tl.const``, ``"*k…"``)."""
        return not self.is_constexpr and ("const" in self.annotation or self.annotation.startswith("*k"))

    @property
    def annotation_type(self) -> str:
        """The type that the annotation fixes (``i64``, ``*fp16``), or an empty string."""
        bare = self.annotation.removeprefix("*k").removeprefix("*")
        return self.annotation if bare in _SHORT else ""

    @property
    def has_default(self) -> bool:
        return self._parameter.default is not inspect.Parameter.empty

    @property
    def default(self):
        return self._parameter.default

    def __repr__(self):
        return f"KernelParam({self._parameter})"


#: What ``@jit(repr=…)`` gets: the types and the constants of a kernel, by the parameters' names.
Specialization = namedtuple("Specialization", ("constants", "signature"))


class KernelInterface(Generic[K]):
    """A base for wrappers of kernels that have a ``run``: gives them ``wrapper[grid](…)``."""

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launches."""
        raise NotImplementedError

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        """Compiles without launching."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def _begin(self, ahead, warmup, args, kwargs):
        """Begins to compile what :meth:`run` needs on the threads of ``ahead``; ``None`` where that isn't known."""
        return None

    def __getitem__(self, grid: Grid) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def __call__(self, *args, **kwargs):
        name = getattr(self, "__name__", "the kernel")
        raise TypeError(
            call_error_text(
                f"{name} is a kernel, and the grid is missing",
                f"write {name}[grid](…), where grid is one to three program counts such as (n_blocks,)",
            )
        )


def _target_of_arch(arch: str | None):
    """The target that an option ``arch`` or, without it, ``knobs.runtime.override_arch`` names; none if neither does."""
    from .. import knobs

    arch = arch or knobs.runtime.override_arch
    if not arch:
        return None
    from ..backends.nvidia.compiler import target_of_arch

    return target_of_arch(arch)


class JITFunction(JitBase, KernelInterface[K]):
    """A function in the Triton language.

    ``kernel[grid](*args, **meta)`` runs it: ``grid`` is one to three program counts, or a function from a dict of the
    arguments to them; ``meta`` may hold the launch options ``num_warps`` (4), ``num_stages`` (3), ``num_ctas`` (1),
    ``maxnreg``, … It gives the compiled kernel. Other kernels call a ``JITFunction`` like any function.
    """

    def __new__(
        cls,
        fn,
        version=None,
        do_not_specialize=None,
        do_not_specialize_on_alignment=None,
        debug=None,
        noinline=None,
        repr=None,
        launch_metadata=None,
        warp_level=None,
    ):
        return super().__new__(cls, fn, bool(noinline), bool(debug), bool(warp_level))

    def __init__(
        self,
        fn,
        version=None,
        do_not_specialize=None,
        do_not_specialize_on_alignment=None,
        debug=None,
        noinline=None,
        repr=None,
        launch_metadata=None,
        warp_level=None,
    ):
        self.__name__ = fn.__name__
        self.__qualname__ = fn.__qualname__
        self.__doc__ = fn.__doc__
        self.__module__ = fn.__module__
        self.module = fn.__module__
        self.version = version
        self.do_not_specialize = _listed(do_not_specialize)
        self.do_not_specialize_on_alignment = _listed(do_not_specialize_on_alignment)
        self.debug = debug
        self.noinline = noinline
        self.warp_level = bool(warp_level)
        self.launch_metadata = launch_metadata
        self._repr = repr
        self._fn_name = f"{fn.__module__}.{fn.__qualname__}"
        self.pre_run_hooks = []
        # Triton's own slots, which programs set to nothing.
        self.hash = None
        self.kernel = None

    @property
    def __wrapped__(self):
        return self.fn

    @property
    def __globals__(self):
        return self.fn.__globals__

    @cached_property
    def signature(self) -> inspect.Signature:
        """The Python signature."""
        return inspect.signature(self.fn)

    @cached_property
    def params(self) -> list[KernelParam]:
        """The parameters, in order."""
        known = set(self.signature.parameters)
        for option in ("do_not_specialize", "do_not_specialize_on_alignment"):
            for item in getattr(self, option):
                if isinstance(item, str) and item not in known:
                    warnings.warn(
                        f"@jit of {self.__name__}: no parameter is named {item!r}, which {option} lists; {hint(item, sorted(known))}",
                        stacklevel=2,
                    )
                elif not isinstance(item, str) and item not in range(len(known)):
                    warnings.warn(
                        f"@jit of {self.__name__}: no parameter has the number {item!r}, which {option} lists; there are 0 to {len(known) - 1}",
                        stacklevel=2,
                    )
        params = []
        for num, parameter in enumerate(self.signature.parameters.values()):
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(
                    f"kernel {self.__name__} has the parameter {parameter}: a kernel launched from Python has a fixed "
                    "list of parameters; pass a tuple instead"
                )
            params.append(
                KernelParam(
                    num,
                    parameter,
                    num in self.do_not_specialize or parameter.name in self.do_not_specialize,
                    num in self.do_not_specialize_on_alignment
                    or parameter.name in self.do_not_specialize_on_alignment,
                )
            )
        return params

    @property
    def arg_names(self) -> list[str]:
        """The names of the parameters, in order."""
        return [p.name for p in self.params]

    @property
    def constexprs(self) -> list[int]:
        """The numbers of the parameters that are compile-time constants."""
        return [p.num for p in self.params if p.is_constexpr]

    @cached_property
    def raw_src(self) -> list[str]:
        """The source lines, decorators included."""
        return source_lines(self.fn)[0]

    @cached_property
    def starting_line_number(self) -> int:
        """The line of the file on which :attr:`raw_src` starts."""
        return source_lines(self.fn)[1]

    @cached_property
    def _def(self) -> tuple[str, int]:
        """The function's source, dedented, from ``def`` on, and the number of its first line."""
        return definition(self.fn)

    @property
    def src(self) -> str:
        """The function's source, dedented, from ``def`` on."""
        return self._def[0]

    def parse(self) -> ast.Module:
        """The syntax tree of :attr:`src`: a module with one function."""
        return ast.parse(self.src)

    def get_capture_scope(self) -> dict:
        """What names outside the function mean: the module's globals, and variables of enclosing functions."""
        return self.__globals__ | inspect.getclosurevars(self.fn).nonlocals

    @property
    def used_global_vals(self) -> dict:
        """The values that the function and those it calls read from elsewhere, by name and the namespace's ``id``."""
        from .reads import reads

        return {
            (name, id(container)): (container[name], container)
            for container, name, _ in reads(self)
            if isinstance(container, dict) and name in container and _is_plain(container[name])
        }

    @property
    def device_caches(self):
        """The kernels compiled in this process as Triton has them: ``device_caches[device][0]`` is a mapping of them."""
        return _DeviceCaches(self)

    @cached_property
    def _put(self) -> dict:
        # Kernels that programs put into `device_caches`.
        return {}

    @property
    def cache(self):
        """By device a mapping of the kernels that are compiled."""
        return {device: caches[0] for device, caches in _DeviceCaches(self).items()}

    @property
    def ASTSource(self) -> type:
        """The class of sources that :attr:`compile` takes."""
        from ..compiler import ASTSource

        return ASTSource

    @property
    def compile(self) -> Callable[..., CompiledKernel]:
        """``tilewright.compile``."""
        from ..compiler import compile

        return compile

    def is_gluon(self) -> bool:
        """Whether the function is in Triton's other language: never."""
        return False

    @property
    def type(self):
        """The type that the function has in a kernel."""
        from ..language import core

        return core.constexpr_type(self)

    def preload(self, specialization_data: str):
        """Compiles what another process compiled, of which ``specialization_data`` tells (``jit_cache_hook`` gets it)."""
        import json

        from ..compiler import ASTSource, compile
        from ..language.core import dtype

        data = json.loads(specialization_data)
        if data["name"] != self._fn_name:
            raise RuntimeError(f"the data are of {data['name']}, not of {self._fn_name}")

        def value(item):
            if isinstance(item, list):
                return tuple(map(value, item))
            return dtype(item) if isinstance(item, str) and dtype.is_dtype(item) else item

        def ty(item):
            return tuple(map(ty, item)) if isinstance(item, list) else item

        source = ASTSource(
            self,
            {name: ty(item) for name, item in data["signature"].items()},
            {tuple(key): value(item) for key, item in zip(data["constant_keys"], data["constant_vals"])},
            {tuple(key): item for key, item in zip(data["attrs_keys"], data["attrs_vals"])},
        )
        return compile(source, options=data["options"])

    def _unsafe_update_src(self, new_src: str):
        """Has the function mean other source, with the same parameters. Functions that call it and are compiled already
        keep what they have."""
        self._def = (new_src, self._def[1])
        self._replaced = True
        self._replace_source(*self._def)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "run":
            self._has_run()

    def _by_run(self, grid):
        """``kernel[grid]`` where a program has a :meth:`run` of its own."""
        return KernelInterface.__getitem__(self, grid)

    def _compiles_otherwise(self) -> bool:
        """Whether a program has put a function of its own in the place of :meth:`_do_compile`, which is not at work already."""
        own = "_do_compile" in vars(self) or type(self)._do_compile is not _do_compile
        return own and getattr(_compiling, "kernel", None) is not self

    def _do_compile(self, key, signature, device, constexprs, options, attrs, warmup):
        """Compiles a specialization for a launch or :meth:`warmup`; gives the compiled kernel. Programs put functions of their own in its
        place, on the class or on an object, which call it: they are called for each specialization that is not there.

        :param key: what tells the specialization from others.
        :param signature: the types of the parameters, by name.
        :param device: the GPU's number; ``None`` where it is compiled for none of this machine.
        :param constexprs: the constants, by the parameters' places.
        :param options: an object with the options of the launch (``num_warps``, …).
        :param attrs: what is known of the parameters besides, by their places.
        """
        from ..compiler import ASTSource
        from ..compiler.compiler import compile_source

        # A program's function may have begun to compile in another thread.
        place = getattr(options, "_place", None) or getattr(_compiling, "place", None)
        with compiling(self, place):
            return compile_source(ASTSource(self, signature, constexprs, attrs), dict(vars(options)), place)

    def __copy__(self):
        """Another kernel of the same function: it compiles for itself, and its hooks and source may differ from then on."""
        options = {
            name: getattr(self, name)
            for name in ("version", "debug", "noinline", "launch_metadata", "warp_level")
        }
        other = type(self)(
            self.fn,
            do_not_specialize=list(self.do_not_specialize),
            do_not_specialize_on_alignment=list(self.do_not_specialize_on_alignment),
            repr=self._repr,
            **{name: value for name, value in options.items() if value is not None},
        )
        known = {name: value for name, value in vars(self).items() if name not in vars(other)}
        vars(other).update(known, pre_run_hooks=list(self.pre_run_hooks))
        if "run" in known:
            other._has_run()
        if known.get("_replaced"):
            other._replace_source(*self._def)
        return other

    def __deepcopy__(self, memo):
        return self.__copy__()

    def __reduce__(self):
        # As functions are: by the name under which another process finds it.
        try:
            found = _named(self.__module__, self.__qualname__)
        except (AttributeError, ImportError, TypeError):
            found = None
        if found is not self:
            from pickle import PicklingError

            raise PicklingError(
                f"kernel {self.__qualname__} cannot be pickled: {self.__module__}.{self.__qualname__} is not it. Define it at the "
                "top of a module"
            )
        return _named, (self.__module__, self.__qualname__)

    @property
    def cache_key(self) -> str:
        """A digest of the source of this function and of the functions that it calls, and of the constants that they
        name. The kernels on disk have keys of their own, of which it is no part."""
        return digest(self, set())

    def repr(self, specialization):
        """What a specialization is called in its code, and so in profiles: what ``@jit(repr=…)`` gives for its ``signature`` and
        ``constants``, which are by the parameters' names."""
        return self.__qualname__ if self._repr is None else self._repr(specialization)

    def _name_of(self, signature: dict, constants: dict) -> str:
        return str(self.repr(Specialization(constants, signature)))

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Has ``hook(*args, **kwargs)`` called before each :meth:`run`."""
        if not callable(hook):
            raise TypeError("a hook must be callable")
        self.pre_run_hooks.append(hook)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> CompiledKernel:
        """Compiles if need be and, unless ``warmup``, launches; gives the compiled kernel."""
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        return self._run(grid, warmup, args, kwargs)

    def _begin(self, ahead, warmup, args, kwargs):
        if self._runs_otherwise() or self._compiles_otherwise():
            return None
        kwargs = {name: value for name, value in kwargs.items() if name not in ("grid", "warmup")}
        return ahead.begin(self, warmup, args, kwargs)

    def warmup(
        self, *args: Any, grid: Any = None, target: str | None = None, **kwargs: Any
    ) -> CompiledKernel:
        """Compiles without launching. A dtype (``torch.float32``, ``np.float32``, ``tl.float32``) stands for an array
        of it that is aligned to 16 bytes.

        :param target: what to compile for, such as ``"cuda:90"``, whether or not it is there (so does the environment
            variable ``TILEWRIGHT_TARGET``); otherwise where the arguments live. The option ``arch="sm90"`` and
            ``knobs.runtime.override_arch`` say it too. Of a kernel that has a parameter ``target`` it is the argument.
        """
        if target is not None and "target" in self.arg_names:
            kwargs["target"], target = target, None
        arch = kwargs.pop("arch", None) if "arch" not in self.arg_names else None
        if target is None:
            target = _target_of_arch(arch)
        if not isinstance(target, str) and target is not None:
            if not isinstance(getattr(target, "name", None), str):
                raise TypeError(
                    call_error_text(
                        f"a target is a name or a GPUTarget, and this one is {type(target).__name__}",
                        'write target="cuda:90", or GPUTarget("cuda", 90, 32)',
                    )
                )
            target = target.name
        mode = _async_mode()
        if target is None and self._runs_otherwise():
            return self.run(*args, grid=grid, warmup=True, **kwargs)
        if mode is None:
            return self._run(grid, True, args, kwargs, target)
        shown = tuple(str(a.dtype) if hasattr(a, "dtype") else repr(a) for a in (*args, *kwargs.values()))
        key = (id(self), shown, tuple(kwargs), target)
        return mode.submit(key, lambda: self._run(grid, True, args, kwargs, target), lambda kernel: None)

    # What it is in kernels, where a number may be given for a constexpr and for a tensor.
    def __call__(self: JITFunction[Callable[..., R]], *args: Any, **kwargs: Any) -> R:
        name = self.__name__
        raise RuntimeError(
            call_error_text(
                f"{name} is a kernel, and the grid is missing",
                f"write {name}[grid](…), where grid is one to three program counts such as (n_blocks,); or call {name} "
                "inside another kernel",
            )
        )

    def __repr__(self):
        return f"JITFunction({self.module}:{self.__qualname__})"


JitBase._is_run(JITFunction.run)
_do_compile = JITFunction._do_compile

#: While a program's function in the place of ``_do_compile`` is at work: ``kernel``, what it compiles, and ``place``, what for.
_compiling = threading.local()


@contextlib.contextmanager
def compiling(kernel, place):
    """Meanwhile this thread compiles a kernel without a program's function in the place of ``_do_compile``."""
    before = dict(vars(_compiling))
    vars(_compiling).update(kernel=kernel, place=place)
    try:
        yield
    finally:
        vars(_compiling).clear()
        vars(_compiling).update(before)


def _async_mode():
    """The ``AsyncCompileMode`` that is active, if its module is used at all."""
    module = sys.modules.get("tilewright.runtime._async_compile")
    return None if module is None else module.active_mode.get()


def _is_plain(value) -> bool:
    """Whether a value is one that a kernel could read: no module, no class, no function."""
    return not (inspect.ismodule(value) or inspect.isclass(value) or callable(value))


class _Kernels(MutableMapping):
    """The kernels of a function on one device, by specialization."""

    def __init__(self, function: JITFunction, device: int):
        self._function, self._device = function, device

    def __setitem__(self, key, kernel):
        # What a program compiled itself, under a key of its own.
        self._function._put[self._device, key] = kernel

    def _kernels(self) -> dict:
        from ..compiler.hooks import key_of

        put = {key: kernel for (device, key), kernel in self._function._put.items() if device == self._device}

        def key(kernel):
            return key_of(kernel._signature, kernel._divisors, kernel._kept["constants"], kernel._options)

        return put | {key(kernel): kernel for kernel in self._function.compiled_kernels}

    def __getitem__(self, key):
        return self._kernels()[key]

    def __iter__(self):
        return iter(self._kernels())

    def __len__(self) -> int:
        return len(self._kernels())

    def __delitem__(self, key):
        del self._function._put[self._device, key]

    def clear(self) -> None:
        """Forgets the kernels."""
        self._function._put.clear()
        self._function.clear_cache()


class _DeviceCaches(Mapping):
    """For each device the mapping of kernels, a mapping of keys, the target, the backend and a binder, as Triton has them."""

    def __init__(self, function: JITFunction):
        self._function = function

    def __getitem__(self, device: int) -> tuple:
        from ..compiler.compiler import make_backend
        from .driver import driver

        target = driver.active.get_current_target()
        backend = make_backend(target)
        return _Kernels(self._function, device), {}, target, backend, binder(self._function, backend)

    def __iter__(self):
        return iter([0] if self._function.compiled_kernels else [])

    def __len__(self) -> int:
        return bool(self._function.compiled_kernels)

    def clear(self) -> None:
        """Forgets the kernels of all devices."""
        self._function._put.clear()
        self._function.clear_cache()


def _named(module: str, qualname: str) -> JITFunction:
    """The kernel of this name, below its autotuner and heuristics."""
    found = importlib.import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    while not isinstance(found, JITFunction):
        found = found.fn
    return found


def _listed(given):
    """Names or numbers of parameters; one alone is a list of itself."""
    alone = isinstance(given, (str, int)) and not isinstance(given, bool)
    return [given] if alone else given or []


def source_lines(fn) -> tuple[list[str], int]:
    """A Python function's source lines, decorators included, and the number of the first; OSError, with what to do, where there are none."""
    try:
        return inspect.getsourcelines(fn)
    except OSError as error:
        raise OSError(
            f"the source of kernel {fn.__qualname__} cannot be read ({error}): define kernels in a file (or a notebook cell); "
            "what exec() runs needs its lines in linecache.cache, under the name it was compiled with"
        ) from None


def definition(fn) -> tuple[str, int]:
    """A Python function's source, dedented, from ``def`` on, and the number of its first line."""
    lines, first = source_lines(fn)
    lines = textwrap.dedent("".join(lines)).splitlines(keepends=True)
    start = next((i for i, line in enumerate(lines) if line.startswith(("def ", "async def "))), 0)
    return "".join(lines[start:]), first + start


def digest(function: JITFunction | ConstexprFunction, above: frozenset = frozenset()) -> str:
    """See :attr:`JITFunction.cache_key`; ``above`` are the functions that lead here, so that recursion ends."""
    from hashlib import sha256

    parts = [function.src, str(function.starting_line_number)]
    names = {**function.__globals__, **inspect.getclosurevars(function.fn).nonlocals}
    tree = ast.parse(function.src)
    loads = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    for name in sorted(loads & names.keys()):
        value = names[name]
        if isinstance(value, (JITFunction, ConstexprFunction)):
            if value is not function and value not in above:
                parts.append(f"{name}={digest(value, above | {function})}")
        elif not inspect.ismodule(value) and not callable(value):
            parts.append(f"{name}={value!r}")
    return sha256("\0".join(parts).encode()).hexdigest()


def empty_kernel(name: str, params: list[str], **options) -> JITFunction:
    """A kernel with these parameters that does nothing, and stands in no file."""
    text, space = f"def {name}({', '.join(params)}):\n    pass\n", {}
    exec(text, space)
    kernel = JITFunction(space[name], **options)
    kernel.__dict__["_def"] = (text, 1)
    kernel._replace_source(text, 1)
    return kernel


def mangle_type(arg, specialize: bool = False) -> str:
    """The type of an argument as signatures spell it, such as ``i32`` or ``*fp16``.

    :param specialize: gives ``constexpr`` for the number 1.
    """

    return native_specialize_impl(BaseBackend, arg, False, specialize, specialize)[0]


#: Triton's base of functions in the language.
JITCallable = JITFunction


if TYPE_CHECKING:

    @overload
    def jit(fn: F) -> JITFunction[F]: ...
    @overload
    def jit(
        fn: None = None,
        *,
        version: Any = None,
        repr: Callable[[Specialization], str] | None = None,
        launch_metadata: Callable[..., dict[str, Any]] | None = None,
        do_not_specialize: Names = None,
        do_not_specialize_on_alignment: Names = None,
        debug: bool | None = None,
        noinline: bool | None = None,
        warp_level: bool | None = None,
    ) -> Callable[[F], JITFunction[F]]: ...


def jit(
    fn=None,
    *,
    version=None,
    repr=None,
    launch_metadata=None,
    do_not_specialize=None,
    do_not_specialize_on_alignment=None,
    debug=None,
    noinline=None,
    warp_level=None,
):
    """Marks a function as written in the Triton language: a kernel, or a function that kernels call.

    :param do_not_specialize: names or numbers of parameters for which neither 1 nor multiples of 16 or 8 get a kernel of
        their own.
    :param do_not_specialize_on_alignment: the same for multiples alone.
    :param debug: checks ``tl.device_assert`` in this kernel.
    :param noinline: keeps a call to this function a call, on GPUs too. One that takes, gives or makes tensor descriptors is inlined all
        the same, and so are all where ``num_ctas`` is more than 1, a loop asks for ``warp_specialize``, or the kernel is written for one warp.
    :param warp_level: the kernel is code as one warp sees it (:doc:`warp-level </warp-level>`): each of a program's ``num_warps`` warps runs
        it with tensors of its own, ``tl.warp_id()`` says which one it is, and buffers (``tl.alloc``) and barriers (``tl.barrier``) are
        those of all. Such a function is called from such kernels only; they call any.
    """

    def decorate(fn):
        if isinstance(fn, JITFunction):
            return fn
        if not inspect.isfunction(fn):
            raise TypeError(f"@jit decorates a function defined with `def`, not {type(fn).__name__}")
        return JITFunction(
            fn,
            version=version,
            do_not_specialize=do_not_specialize,
            do_not_specialize_on_alignment=do_not_specialize_on_alignment,
            debug=debug,
            noinline=noinline,
            repr=repr,
            launch_metadata=launch_metadata,
            warp_level=warp_level,
        )

    return decorate if fn is None else decorate(fn)


class MockTensor:
    """Stands for a tensor in :meth:`JITFunction.warmup`: a dtype and an aligned address."""

    def __init__(self, dtype, shape=None):
        self.dtype = dtype
        self.shape = [1] if shape is None else shape

    @staticmethod
    def wrap_dtype(arg):
        """A stand-in for a torch dtype; anything else unchanged."""
        if type(arg).__module__ == "torch" and type(arg).__name__ == "dtype":
            return MockTensor(arg)
        return arg

    def stride(self):
        """Strides of a contiguous tensor of this shape."""
        strides = [1]
        for extent in reversed(self.shape[1:]):
            strides.append(strides[-1] * extent)
        return tuple(reversed(strides))

    @staticmethod
    def data_ptr():
        """An address that is a multiple of 16."""
        return 0


class TensorWrapper:
    """An array whose bytes are read as another dtype; made by :func:`reinterpret`."""

    def __init__(self, base, dtype):
        self.base = base
        self.dtype = dtype
        self.data = getattr(base, "data", None)
        self.device = getattr(base, "device", None)
        self.shape = base.shape

    def data_ptr(self):
        """The address of the first element."""
        if hasattr(self.base, "data_ptr"):
            return self.base.data_ptr()
        return self.base.__array_interface__["data"][0]

    def stride(self, *args):
        """Strides in elements."""
        return self.base.stride(*args)

    def element_size(self):
        """Bytes of an element of the base."""
        return self.base.element_size()

    def cpu(self):
        """A copy in host memory."""
        return TensorWrapper(self.base.cpu(), self.dtype)

    def to(self, device):
        """A copy on a device."""
        return TensorWrapper(self.base.to(device), self.dtype)

    def clone(self):
        """A copy."""
        return TensorWrapper(self.base.clone(), self.dtype)

    def new_empty(self, sizes):
        """An array of the same dtype and another shape, with nothing written in it."""
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)

    def copy_(self, other):
        """Takes the bytes of another wrapper."""
        self.base.copy_(other.base)

    def __str__(self):
        return f"TensorWrapper[{self.dtype}]({self.base})"


def reinterpret(array: Any, dtype: Any) -> Any:
    """The array with its bytes read as ``dtype`` (a torch, NumPy or ``tl`` dtype), for a kernel's argument."""
    if isinstance(array, TensorWrapper):
        return array.base if dtype == array.base.dtype else TensorWrapper(array.base, dtype)
    if hasattr(array, "data_ptr") or hasattr(array, "__array_interface__"):
        return TensorWrapper(array, dtype)
    raise TypeError(f"cannot reinterpret a {type(array).__name__}: it is not an array")


def __getattr__(name: str):
    # What a decorated function is in annotations.
    if name == "T":
        from typing import TypeVar

        return globals().setdefault("T", TypeVar("T"))
    if name in ("find_paths_if", "get_iterable_path"):
        return getattr(importlib.import_module("tilewright._utils"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
