"""``tilewright.jit``: a decorated function is a kernel, or a function that kernels call.

The work of a launch is done by the extension (``_tilewright.JitBase``); what stands here is what people read: the
decorator's options, the kernel's parameters and its source.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import pickle
import textwrap
from functools import cached_property

from .._tilewright import JitBase, call_error_text
from ..language._marker import constexpr_function

__all__ = [
    "JITFunction",
    "KernelInterface",
    "KernelParam",
    "MockTensor",
    "TensorWrapper",
    "constexpr_function",
    "jit",
    "reinterpret",
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
}
_SHORT = frozenset(_CANONICAL.values())


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


class JITFunction(JitBase):
    """A function in the Triton language.

    ``kernel[grid](*args, **meta)`` runs it: ``grid`` is one to three program counts, or a function from a dict of the
    arguments to them; ``meta`` may hold the launch options ``num_warps`` (4), ``num_stages`` (3), ``num_ctas`` (1),
    ``maxnreg``, … It gives the compiled kernel. Other kernels call a ``JITFunction`` like any function.
    """

    def __new__(cls, fn, *, noinline=False, debug=False, **_):
        return super().__new__(cls, fn, bool(noinline), bool(debug))

    def __init__(
        self,
        fn,
        *,
        version=None,
        do_not_specialize=None,
        do_not_specialize_on_alignment=None,
        debug=None,
        noinline=None,
        repr=None,
        launch_metadata=None,
    ):
        self.__name__ = fn.__name__
        self.__qualname__ = fn.__qualname__
        self.__doc__ = fn.__doc__
        self.__module__ = fn.__module__
        self.module = fn.__module__
        self.version = version
        self.do_not_specialize = do_not_specialize or []
        self.do_not_specialize_on_alignment = do_not_specialize_on_alignment or []
        self.debug = debug
        self.noinline = noinline
        self.launch_metadata = launch_metadata
        self._repr = repr
        self.pre_run_hooks = []

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
        for option in (self.do_not_specialize, self.do_not_specialize_on_alignment):
            for item in option:
                if isinstance(item, str) and item not in known:
                    raise ValueError(
                        f"@jit of {self.__name__}: no parameter is named {item!r}; there are {sorted(known)}"
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
        return inspect.getsourcelines(self.fn)[0]

    @cached_property
    def starting_line_number(self) -> int:
        """The line of the file on which :attr:`raw_src` starts."""
        return inspect.getsourcelines(self.fn)[1]

    @cached_property
    def _def(self) -> tuple[str, int]:
        """The function's source, dedented, from ``def`` on, and the number of its first line."""
        text = textwrap.dedent("".join(self.raw_src))
        lines = text.splitlines(keepends=True)
        start = next((i for i, line in enumerate(lines) if line.startswith(("def ", "async def "))), 0)
        return "".join(lines[start:]), self.starting_line_number + start

    @property
    def src(self) -> str:
        """The function's source, dedented, from ``def`` on."""
        return self._def[0]

    def _unsafe_update_src(self, new_src: str):
        """Has the function mean other source, with the same parameters. Functions that call it and are compiled already
        keep what they have."""
        self._def = (new_src, self._def[1])
        self._replaced = True
        self._replace_source(*self._def)

    def __copy__(self):
        """Another kernel of the same function: it compiles for itself, and its hooks and source may differ from then on."""
        options = {name: getattr(self, name) for name in ("version", "debug", "noinline", "launch_metadata")}
        other = type(self)(
            self.fn,
            do_not_specialize=list(self.do_not_specialize),
            do_not_specialize_on_alignment=list(self.do_not_specialize_on_alignment),
            repr=self._repr,
            **{name: value for name, value in options.items() if value is not None},
        )
        known = {name: value for name, value in vars(self).items() if name not in vars(other)}
        vars(other).update(known, pre_run_hooks=list(self.pre_run_hooks))
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
            raise pickle.PicklingError(
                f"kernel {self.__qualname__} cannot be pickled: {self.__module__}.{self.__qualname__} is not it. Define it at the "
                "top of a module"
            )
        return _named, (self.__module__, self.__qualname__)

    @property
    def cache_key(self) -> str:
        """A digest of the source of this function and of the functions that it calls, and of the constants that they
        name. The kernels on disk have keys of their own, of which it is no part."""
        return _digest(self, set())

    def repr(self, specialization):
        """The name under which a specialization appears in profiles."""
        return self.__qualname__ if self._repr is None else self._repr(specialization)

    def add_pre_run_hook(self, hook):
        """Has ``hook(*args, **kwargs)`` called before each :meth:`run`."""
        if not callable(hook):
            raise TypeError("a hook must be callable")
        self.pre_run_hooks.append(hook)

    def run(self, *args, grid, warmup=False, **kwargs):
        """Compiles if need be and, unless ``warmup``, launches; gives the compiled kernel."""
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        return self._run(grid, warmup, args, kwargs)

    def warmup(self, *args, grid=None, target=None, **kwargs):
        """Compiles without launching. A dtype (``torch.float32``, ``np.float32``, ``tl.float32``) stands for an array
        of it that is aligned to 16 bytes.

        :param target: what to compile for, such as ``"cuda:90"``, whether or not it is there (so does the environment
            variable ``TILEWRIGHT_TARGET``); otherwise where the arguments live.
        """
        return self._run(grid, True, args, kwargs, target)

    def __call__(self, *args, **kwargs):
        name = self.__name__
        raise TypeError(
            call_error_text(
                f"{name} is a kernel, and the grid is missing",
                f"write {name}[grid](…), where grid is one to three program counts such as (n_blocks,); or call {name} "
                "inside another kernel",
            )
        )

    def __repr__(self):
        return f"JITFunction({self.module}:{self.__qualname__})"


def _named(module: str, qualname: str) -> JITFunction:
    """The kernel of this name, below its autotuner and heuristics."""
    found = importlib.import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    while not isinstance(found, JITFunction):
        found = found.fn
    return found


def _digest(function: JITFunction, above: set[JITFunction]) -> str:
    """See :attr:`JITFunction.cache_key`; ``above`` are the functions that lead here, so that recursion ends."""
    parts = [function.src, str(function.starting_line_number)]
    names = {**function.__globals__, **inspect.getclosurevars(function.fn).nonlocals}
    tree = ast.parse(function.src)
    loads = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    for name in sorted(loads & names.keys()):
        value = names[name]
        if isinstance(value, JITFunction):
            if value is not function and value not in above:
                parts.append(f"{name}={_digest(value, above | {function})}")
        elif not inspect.ismodule(value) and not callable(value):
            parts.append(f"{name}={value!r}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class KernelInterface:
    """A base for wrappers of kernels that have a ``run``: gives them ``wrapper[grid](…)``."""

    def run(self, *args, grid, warmup, **kwargs):
        """Launches."""
        raise NotImplementedError

    def warmup(self, *args, grid=None, **kwargs):
        """Compiles without launching."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def __call__(self, *args, **kwargs):
        name = getattr(self, "__name__", "the kernel")
        raise TypeError(
            call_error_text(
                f"{name} is a kernel, and the grid is missing",
                f"write {name}[grid](…), where grid is one to three program counts such as (n_blocks,)",
            )
        )


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
):
    """Marks a function as written in the Triton language: a kernel, or a function that kernels call.

    :param do_not_specialize: names or numbers of parameters for which neither 1 nor multiples of 16 or 8 get a kernel of
        their own.
    :param do_not_specialize_on_alignment: the same for multiples alone.
    :param debug: checks ``tl.device_assert`` in this kernel.
    :param noinline: keeps a call to this function a call.
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

    def copy_(self, other):
        """Takes the bytes of another wrapper."""
        self.base.copy_(other.base)

    def __str__(self):
        return f"TensorWrapper[{self.dtype}]({self.base})"


def reinterpret(array, dtype):
    """The array with its bytes read as ``dtype`` (a torch, NumPy or ``tl`` dtype), for a kernel's argument."""
    if isinstance(array, TensorWrapper):
        return array.base if dtype == array.base.dtype else TensorWrapper(array.base, dtype)
    if hasattr(array, "data_ptr") or hasattr(array, "__array_interface__"):
        return TensorWrapper(array, dtype)
    raise TypeError(f"cannot reinterpret a {type(array).__name__}: it is not an array")
