"""``compile``: a kernel for given types of its arguments, without calling it."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

from .. import _tilewright
from .._C.libtriton import get_cache_invalidating_env_vars
from .._tilewright import CompiledKernel, OutOfResources
from ..backends.compiler import BaseBackend, GPUTarget, Language
from ..language.core import constexpr
from ..runtime.cache import (
    get_cache_key,
    get_cache_manager,
    get_dump_manager,
    get_override_manager,
    triton_key,
)
from ..runtime.driver import driver
from . import AsmDict

__all__ = [
    "ASTSource",
    "AsmDict",
    "CompiledKernel",
    "GPUTarget",
    "IRSource",
    "LazyDict",
    "OutOfResources",
    "compile",
    "driver",
    "get_cache_invalidating_env_vars",
    "get_cache_key",
    "get_cache_manager",
    "get_dump_manager",
    "get_override_manager",
    "make_backend",
    "max_shared_mem",
    "triton_key",
]


class ASTSource:
    """A kernel with the types of its arguments.

    :param fn: what ``@jit`` gave.
    :param signature: the type of each parameter by name: ``"*fp16"``, ``"i32"``, ``"constexpr"``, …; a tuple of types for a tuple.
    :param constexprs: values that are compiled in, by name or by path (``(2,)``; ``(1, 0)`` is in a tuple). ``constants`` is
        another name of it.
    :param attrs: what is known of arguments, by path: ``{(0,): [["tt.divisibility", 16]]}``.
    """

    def __init__(self, fn, signature, constexprs=None, attrs=None, *, constants=None):
        self.fn = fn
        self.language = Language.TRITON
        self.ext = "ttir"
        self.name = fn.__name__
        if isinstance(signature, str):
            signature = dict(enumerate(part.strip() for part in signature.split(",")))
        names = list(fn.arg_names)
        self.signature = {names[k] if isinstance(k, int) else k: ty for k, ty in signature.items()}
        for name in self.signature:
            if not isinstance(name, str):
                raise TypeError(f"a signature's keys are names of parameters, not {name!r}")
            if name not in names:
                raise ValueError(f"{self.name} has no parameter {name!r}; there are {names}")
        self.constants: dict[tuple, Any] = {}
        for key, value in {**(constants or {}), **(constexprs or {})}.items():
            if isinstance(key, str):
                key = (names.index(key),)
            elif isinstance(key, int):
                key = (key,)
            self.constants[key] = value
        self.attrs = attrs if attrs is not None else {}

    def hash(self) -> str:
        """A digest of the function's source, the types and the constants."""

        def text(value):
            return value.cache_key if hasattr(value, "cache_key") else str(value)

        types = [ty for _, ty in sorted(self.signature.items())]
        constants = "-".join(text(value) for _, value in sorted(self.constants.items()))
        key = f"{self.fn.cache_key}-{self.attrs}-{types}-{constants}"
        return hashlib.sha256(key.encode()).hexdigest()

    def make_ir(self, target, options, codegen_fns=None, module_map=None, context=None):
        """The ``tt`` module, as an object to look at; ``str`` of it is its text.

        It is the one of the CPU executor, which is made for no target: calls are inlined, and descriptors are what they stand for
        (an address, extents and strides).
        """
        from .._C.ir import module

        return module(compile(self, target="cpu").asm["ttir"], f"{self.name}.ttir")

    def parse_options(self) -> dict:
        """Options that the source itself fixes: none."""
        return {}

    def _divisor(self, path: tuple) -> int:
        attrs = self.attrs
        if not isinstance(attrs, dict):
            # Triton before 3.3 had an object with lists of numbers.
            numbers = getattr(attrs, "divisible_by_16", None) or getattr(attrs, "divisibility_16", None) or ()
            return 16 if path[0] in numbers else 1
        facts = attrs.get(path, ())
        return max((value for name, value in facts if name == "tt.divisibility"), default=1)

    def arguments(self) -> list:
        """A stand-in for each argument, as a call takes them."""
        params, found = self.fn.params, []
        for param in params:
            path = (param.num,)
            ty = self.signature.get(param.name)
            if path not in self.constants and ty in (None, "constexpr"):
                if not param.has_default:
                    raise TypeError(
                        f"{self.name}: parameter {param.name!r} has neither a type in the signature nor a value in constexprs"
                    )
                found.append(_constant(param.default))
            else:
                found.append(self._argument(ty, path))
        return found

    def _argument(self, ty, path: tuple):
        if path in self.constants:
            return _constant(self.constants[path])
        if isinstance(ty, (tuple, list)):
            return tuple(self._argument(item, (*path, at)) for at, item in enumerate(ty))
        if ty.startswith("tensordesc"):
            return _descriptor(ty)
        return _tilewright.StandIn(ty, self._divisor(path))


def _constant(value):
    return value if isinstance(value, constexpr) else constexpr(value)


class _Memory:
    """An array of a type, nowhere."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape = dtype, shape

    @staticmethod
    def data_ptr() -> int:
        return 0


def _descriptor(ty: str):
    from ..language.core import dtype
    from ..tools.tensor_descriptor import TensorDescriptor

    match = re.fullmatch(r"tensordesc<(\w+)\[([\d, ]+)\].*>", ty)
    if not match:
        raise ValueError(f"a descriptor's type is written as in tensordesc<fp16[64, 32]>, not {ty!r}")
    block = [int(n) for n in match[2].split(",")]
    # Any tensor does that has blocks of this kind: its extents are not compiled in.
    strides = [1 << (14 + 4 * n) for n in reversed(range(1, len(block)))] + [1]
    element = {"i1": "int1", "u1": "int1"}.get(match[1]) or re.sub(r"^([iu])(\d+)$", _long_name, match[1])
    return TensorDescriptor(
        _Memory(dtype(element), [1 << 14] * len(block)), [1 << 14] * len(block), strides, block
    )


def _long_name(match) -> str:
    return f"{'' if match[1] == 'i' else 'u'}int{match[2]}"


class IRSource:
    """A file of IR or PTX: its text, its name and the types of its parameters."""

    def __init__(self, path, context=None, backend=None):
        self.path = str(path)
        self.ext = Path(path).suffix[1:]
        self.language = Language.TRITON
        self.src = Path(path).read_text()
        if self.ext == "ptx":
            match = re.search(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)", self.src)
            types = re.findall(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)", match[2]) if match else []
        else:
            match = re.search(
                r"tt\.func\s+(?:public\s+)?@([\w$.]+)\s*\((.*?)\)\s*(?:->|attributes|\{)", self.src, re.DOTALL
            )
            types = re.findall(r"%[\w$.]+:\s*([^\s,){]+)", match[2]) if match else []
        if not match:
            raise ValueError(f"{path} holds no kernel")
        self.name = match[1]
        self.signature = {at: _signature_type(ty) for at, ty in enumerate(types)}
        self.attrs: dict = {}

    @cached_property
    def fn(self):
        """A kernel with these parameters, which does nothing: what the file says stands for what it becomes."""
        from ..runtime.jit import empty_kernel

        return empty_kernel(self.name, [f"a{at}" for at in self.signature])

    @property
    def constants(self) -> dict:
        """Nothing is compiled in."""
        return {}

    def arguments(self) -> list:
        """A stand-in for each argument, as a call takes them."""
        signature = {f"a{at}": ty for at, ty in self.signature.items()}
        return ASTSource(self.fn, signature).arguments()

    def hash(self) -> str:
        """A digest of the text."""
        return hashlib.sha256(self.src.encode()).hexdigest()

    def parse_options(self) -> dict:
        """The options that a ``ttgir`` module says."""
        found = {}
        for name, attribute in (("num_warps", "ttg.num-warps"), ("num_ctas", "ttg.num-ctas")):
            if self.ext == "ttgir" and (match := re.search(rf'"{attribute}"\s*=\s*(\d+)', self.src)):
                found[name] = int(match[1])
        return found


def _signature_type(ty: str) -> str:
    match = re.fullmatch(r"!tt\.ptr<(.+?)(?:,\s*\d+)?>", ty)
    return f"*{_signature_type(match[1])}" if match else ty


class LazyDict:
    """A dict to which functions add when it is asked for."""

    def __init__(self, data: dict):
        self.data = data
        self.extras: list[tuple] = []

    def get(self) -> dict:
        """The dict with everything that was added."""
        extras, self.extras = self.extras, []
        for function, args in extras:
            self.data = self.data | function(*args)
        return self.data

    def add(self, function, args: tuple) -> None:
        """Has ``function(*args)``, a dict, added."""
        self.extras.append((function, args))


def compile(
    src, target: GPUTarget | None = None, options: dict | None = None, _env_vars=None
) -> CompiledKernel:
    """Compiles a kernel for the types of an :class:`ASTSource`.

    :param target: what to compile for; the current GPU when left out, and without one what ``TILEWRIGHT_TARGET`` says. A kernel
        for another target than the current one can be looked at but not launched.
    :param options: ``num_warps``, ``num_stages`` and the others that a launch takes; ``arch="sm90"`` (or ``knobs.runtime.override_arch``)
        comes before ``target``.
    """
    from .. import knobs
    from ..backends.nvidia.compiler import CUDABackend, target_of_arch
    from ..runtime.driver import driver

    if not hasattr(src, "fn"):
        src = src if isinstance(src, IRSource) else IRSource(src)
        options = {**src.parse_options(), **dict(options or {}), "ir_override": src.path}
    current = driver.active.get_current_target()
    options = (
        dict(vars(options)) if not isinstance(options, dict) and options is not None else dict(options or {})
    )
    arch = options.pop("arch", None) or knobs.runtime.override_arch
    if arch:
        target = target_of_arch(arch)
    elif target is None:
        target = current
    elif isinstance(target, str):
        target = GPUTarget.parse(target)
    elif not isinstance(target, GPUTarget):
        raise TypeError(f"target is a GPUTarget, not {target!r}")
    make_backend(target)
    ours, others = CUDABackend.kernel_options(options)
    _look_at_others(target, others)
    # What can be launched is compiled for where it would be.
    simulated = os.environ.get("TILEWRIGHT_BACKEND") == "ptxsim"
    if target.backend == "cpu":
        name = None if simulated else "interp"
    else:
        here = target == current and (simulated or _tilewright.device_count() > 0)
        name = None if here else target.name
    return compile_source(src, ours, name)


def compile_source(src: ASTSource, options: dict, target) -> CompiledKernel:
    """Compiles for a target's name, for a ``Place`` that hooks were given, or, without one, for where a launch would be, with the options of a
    launch."""
    arguments, names = src.arguments(), src.fn.arg_names
    if options.keys() & set(names):
        # A parameter with the name of an option: the constant that is given for it is the option's value, too.
        options, arguments = {**options, **dict(zip(names, arguments, strict=True))}, []
    kernel = src.fn._run(None, True, tuple(arguments), options, target)
    if kernel is not None:
        kernel._kept.setdefault("types", (src.signature, src.constants, src.attrs))
    return kernel


_warned: set[str] = set()


def _look_at_others(target: GPUTarget, others: dict) -> None:
    """Says once of each option that nothing reads here that it asks for something."""
    if not others:
        return
    usual = vars(make_backend(target).parse_options({}))
    for name, value in others.items():
        asked = value is not None and (name not in usual or usual[name] != value)
        if asked and name not in _warned:
            _warned.add(name)
            warnings.warn(f"triton.compile: nothing reads the option {name}={value!r} here", stacklevel=3)


def make_backend(target: GPUTarget) -> BaseBackend:
    """The backend that compiles for a target."""
    from ..backends import backends

    found = [backend.compiler for backend in backends.values() if backend.compiler.supports_target(target)]
    if len(found) != 1:
        raise RuntimeError(f"{len(found)} backends compile for {target}; one must")
    return found[0](target)


def max_shared_mem(device: int) -> int:
    """Bytes of shared memory that a block may have on a GPU."""
    return _tilewright.device_properties(device)["max_shared_mem"]
