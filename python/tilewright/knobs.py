"""Settings of the running process, in groups: ``knobs.cache.dir``, ``knobs.runtime.debug``, … under Triton's names.

A knob says what its environment variable says until it is assigned; assigned, it is written into the environment (for the
processes that are started, and for the compiler, which reads it there). ``del`` or assigning :data:`env` has it follow the
environment again. ``with knobs.cache.scope():`` undoes what the block changes. What acts on options of launches
(``TRITON_DEBUG``, ``TRITON_DEFAULT_FP_FUSION``, ``TRITON_F32_DEFAULT``, ``TRITON_DISABLE_LINE_INFO``,
``TRITON_ALLOW_NON_CONSTEXPR_GLOBALS``) and on every compilation (``TRITON_KERNEL_DUMP``, ``NVPTX_ENABLE_DUMP``) is read from the
environment when Tilewright is imported, and by :func:`refresh_knobs`.

``knobs.runtime.launch_enter_hook.add(f)`` has ``f(metadata)`` called before each launch, ``launch_exit_hook`` after it has
been queued; ``metadata.get()`` is a dict with the kernel's ``name``, the ``stream`` (``None`` on the CPU) and what the
kernel's ``@jit(launch_metadata=…)`` gives. Assigning a function or ``None`` replaces all hooks.

A knob that nothing reads here warns once when it asks for something.
"""

from __future__ import annotations

import os
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

from . import _tilewright

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "CompilationListener",
    "CompileTimes",
    "HookChain",
    "InitHandleHook",
    "JITHook",
    "JITHookCompileInfo",
    "LaunchHook",
    "LaunchMetadata",
    "NvidiaTool",
    "PipelineStagesHook",
    "amd",
    "autotuning",
    "base_knobs",
    "build",
    "cache",
    "compilation",
    "env",
    "env_base",
    "language",
    "nvidia",
    "propagate_env",
    "proton",
    "redis",
    "refresh_knobs",
    "runtime",
    "setenv",
]


class Env:
    """The class of :data:`env`."""


#: Assigned to a knob, has it follow the environment again.
env = Env()

#: Whether what is assigned to knobs goes into the environment, and so to processes that are started. What the compiler reads
#: there goes there in any case.
propagate_env: bool = True

_NOTHING = object()
_YES = ("1", "true", "on", "yes", "y")


def setenv(key: str, value: str | None) -> None:
    """Sets a variable of the environment, or removes it, if knobs are to be found there."""
    if propagate_env:
        _write(key, value)


def _write(key: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(key, None)
    else:
        os.environ[key] = value


def _warn_unread(what: str, why: str, stacklevel: int = 4) -> None:
    if what not in _warned:
        import warnings

        _warned.add(what)
        warnings.warn(f"{what} has no effect: {why}", RuntimeWarning, stacklevel=stacklevel)


_warned: set[str] = set()
_complete = False


class env_base:
    """A knob with an environment variable.

    :param key: the variable.
    :param doc: what it means, in Markdown; with † where it is read once.
    :param ours: a variable of Tilewright's that goes before it.
    :param read: the compiler reads the variable, so what is assigned must go there.
    :param unread: why nothing reads it.
    """

    def __init__(
        self,
        key: str,
        default: Any = None,
        doc: str = "",
        *,
        ours: str | None = None,
        read: bool = False,
        unread: str | None = None,
    ):
        self.key = key
        self.default = default
        self.doc = doc
        self.ours = ours
        self.read = read
        self.unread = unread

    @property
    def keys(self) -> tuple[str, ...]:
        """The variables, the one that decides first."""
        return (self.ours, self.key) if self.ours else (self.key,)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.path = f"knobs.{owner.__name__.removesuffix('_knobs')}.{name}"

    def __get__(self, group: object, owner: type | None = None) -> Any:
        if group is None:
            return self
        value = vars(group).get(self.name, _NOTHING)
        return self.get() if value is _NOTHING else self.transform(value)

    def __set__(self, group: object, value: Any) -> None:
        if isinstance(value, Env):
            self.__delete__(group)
            return
        if self.unread and value and value != self.default:
            _warn_unread(self.path, self.unread)
        before, variables = dict(vars(group)), {key: os.environ.get(key) for key in self.keys}
        vars(group)[self.name] = value
        text = self.text(value)
        if text is not _NOTHING:
            for key in self.keys:
                if key == self.key or key in os.environ:
                    (_write if self.read else setenv)(key, text)
        try:
            _apply(strict=True)
        except ValueError:
            vars(group).clear()
            vars(group).update(before)
            for key, text in variables.items():
                _write(key, text)
            raise

    def __delete__(self, group: object) -> None:
        vars(group).pop(self.name, None)
        _apply()

    def get(self) -> Any:
        """The value that the environment says."""
        for key in self.keys:
            text = os.environ.get(key)
            if text is not None and (text or key == self.key):
                return self.parse(key, text)
        return self.default() if callable(self.default) else self.default

    def parse(self, key: str, text: str) -> Any:
        """The value of a variable's text."""
        return text

    def transform(self, value: Any) -> Any:
        """What reading gives of what was assigned."""
        return value

    @staticmethod
    def text(value: Any) -> Any:
        """What the environment gets: text, ``None`` to remove the variable, or nothing for what has no text."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "1" if value else "0"
        return str(value) if isinstance(value, (str, int, os.PathLike)) else _NOTHING


class env_str(env_base):
    """A knob with text."""


class env_opt_str(env_base):
    """A knob with text, or ``None``."""


class env_bool(env_base):
    """A knob that is on or off."""

    def __init__(self, key: str, default: bool = False, doc: str = "", **more):
        super().__init__(key, default, doc, **more)

    def parse(self, key: str, text: str) -> bool:
        return text.lower() in _YES


class env_opt_bool(env_base):
    """A knob that is on, off, or ``None``."""

    def parse(self, key: str, text: str) -> bool:
        return text.lower() in _YES


class env_int(env_base):
    """A knob with a number."""

    def __init__(self, key: str, default: int = 0, doc: str = "", **more):
        super().__init__(key, default, doc, **more)

    def parse(self, key: str, text: str) -> int:
        try:
            return int(text)
        except ValueError as error:
            raise RuntimeError(f"{key}={text}: not a number") from error


class env_class(env_base):
    """A knob with a class, in the environment as ``module:class``."""

    def __init__(self, key: str, type: str, doc: str):
        super().__init__(key, doc=doc)
        self.type = type

    def parse(self, key: str, text: str) -> type:
        import importlib

        module, colon, name = text.partition(":")
        if not colon:
            raise RuntimeError(f"{key}={text}: a class is written module:class")
        found = getattr(importlib.import_module(module), name)
        if not any(base.__name__ == self.type for base in found.mro()):
            raise RuntimeError(f"{key}={text}: no {self.type}")
        return found


class NvidiaTool(namedtuple("NvidiaTool", ("path", "version"))):
    """A program of NVIDIA's."""

    __slots__ = ()

    @staticmethod
    def from_path(path: str) -> NvidiaTool | None:
        """The program at a path with its version; ``None`` for what is no such program."""
        if path not in _tools:
            _tools[path] = _run_tool(path)
        return _tools[path]


_tools: dict[str, NvidiaTool | None] = {}


def _run_tool(path: str) -> NvidiaTool | None:
    import re
    import subprocess

    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r"release (\d+\.\d+)", said)
    return NvidiaTool(path, version[1]) if version else None


class env_nvidia_tool(env_base):
    """A knob with a program: assigned as a path, read as an :class:`NvidiaTool`."""

    def __init__(self, program: str, doc: str):
        super().__init__(f"TRITON_{program.upper().replace('-', '_')}_PATH", doc=doc, read=True)
        self.program = program

    def get(self) -> NvidiaTool:
        return self.transform(os.environ.get(self.key))

    def transform(self, value: str | None) -> NvidiaTool:
        for path in ([value] if value else []) + self._places():
            if tool := NvidiaTool.from_path(path):
                return tool
        raise RuntimeError(f"there is no {self.program}: pip install nvidia-cuda-nvcc, or set {self.key}")

    def _places(self) -> list[str]:
        import glob
        import shutil

        # There is one ptxas for all GPUs.
        program = self.program.removesuffix("-blackwell")
        beside = os.path.dirname(os.path.dirname(__file__))
        folders = [beside, *(p for p in sys.path if p.endswith(("site-packages", "dist-packages")))]
        found = [
            path for f in folders for path in sorted(glob.glob(f"{f}/nvidia/*/bin/{program}"), reverse=True)
        ]
        homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
        found += [os.path.join(home, "bin", program) for home in homes if home]
        return [*found, *filter(None, [shutil.which(program)]), f"/usr/local/cuda/bin/{program}"]


class CompileTimes(namedtuple("CompileTimes", ("ir_initialization", "lowering_stages", "store_results"))):
    """How long a compilation took, in microseconds.

    ``ir_initialization`` is the front end, ``lowering_stages`` the stages behind it by name, ``store_results`` writing into the cache.
    """

    __slots__ = ()

    @property
    def total_lowering(self) -> int:
        """All stages behind the front end."""
        return sum(time for _, time in self.lowering_stages)

    @property
    def total(self) -> int:
        """Everything."""
        return self.ir_initialization + self.total_lowering + self.store_results


# What programs annotate their hooks with.
CompilationListener = InitHandleHook = JITHook = LaunchHook = PipelineStagesHook = Callable
JITHookCompileInfo = dict


class base_knobs:
    """A group of knobs."""

    @property
    def knob_descriptors(self) -> dict[str, env_base]:
        """The knobs that have a variable, by name."""
        return {name: knob for name, knob in vars(type(self)).items() if isinstance(knob, env_base)}

    @property
    def knobs(self) -> dict[str, Any]:
        """The values of those."""
        return {name: getattr(self, name) for name in self.knob_descriptors}

    def copy(self):
        """Another group with the same values."""
        other = type(self).__new__(type(self))
        vars(other).update(vars(self))
        return other

    def reset(self):
        """Has every knob that has a variable follow the environment."""
        for name in self.knob_descriptors:
            vars(self).pop(name, None)
        _apply()
        return self

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Undoes at the end of the ``with`` block what was changed in it, the environment too."""
        before, hooks = (
            dict(vars(self)),
            {n: list(v.calls) for n, v in vars(self).items() if isinstance(v, HookChain)},
        )
        keys = [key for knob in self.knob_descriptors.values() for key in knob.keys]
        variables = {key: os.environ.get(key) for key in keys}
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(before)
            for name, calls in hooks.items():
                before[name].calls = calls
            for key, value in variables.items():
                _write(key, value)
            _apply()


class HookChain:
    """Functions that are called one after the other, each only once however often it is added."""

    def __init__(self, reversed: bool = False):
        self.calls: list[Callable] = []
        self.reversed = reversed

    def add(self, function: Callable) -> None:
        """Adds a function at the end."""
        if not callable(function):
            raise TypeError(f"a hook must be callable, and {function!r} is not")
        if function not in self.calls:
            self.calls.append(function)
        _apply()

    def remove(self, function: Callable) -> None:
        """Takes a function out, if it is there."""
        if function in self.calls:
            self.calls.remove(function)
        _apply()

    def __bool__(self) -> bool:
        return bool(self.calls)

    def __call__(self, *args, **kwargs) -> None:
        for function in self.calls[::-1] if self.reversed else list(self.calls):
            function(*args, **kwargs)


class LaunchMetadata:
    """What a launch hook gets. :meth:`get` puts it together, so that hooks which do not ask cost little."""

    def __init__(self, name, stream, more, grid, metadata, arguments):
        self.data = {"name": name, "stream": stream}
        self._more = more
        self._of_more = (grid, metadata, arguments)

    def get(self) -> dict:
        """Name, stream, and what the kernel's ``launch_metadata(grid, metadata, arguments)`` gives."""
        if self._more is not None:
            self.data.update(self._more(*self._of_more))
            self._more = None
        return self.data


class _hooks:
    """A chain of hooks as an attribute: a function or ``None`` may be assigned."""

    def __init__(self, reversed: bool = False):
        self._reversed = reversed

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, group, owner=None):
        return self if group is None else vars(group).setdefault(self._name, HookChain(self._reversed))

    def __set__(self, group, hook):
        chain = hook
        if not isinstance(hook, HookChain):
            chain = HookChain(self._reversed)
            if hook is not None:
                chain.add(hook)
        vars(group)[self._name] = chain
        _apply()


class _setting:
    """A knob without a variable, or with one that is read once."""

    def __init__(
        self, default: Any = None, doc: str = "", *, key: str | None = None, unread: str | None = None
    ):
        self._default = default
        self.doc = doc
        self.key = key
        self._unread = unread

    def __set_name__(self, owner, name):
        self._name = name
        self.path = f"knobs.{owner.__name__.removesuffix('_knobs')}.{name}"

    def __get__(self, group, owner=None):
        return self if group is None else vars(group).get(self._name, self._default)

    def __set__(self, group, value):
        if self._unread and value:
            _warn_unread(self.path, self._unread)
        vars(group)[self._name] = value
        _apply()

    def __delete__(self, group):
        vars(group).pop(self._name, None)
        _apply()


class build_knobs(base_knobs):
    """How programs' own native code is built. Launching builds none."""

    cc = env_opt_str("CC", doc="the C compiler.")
    cudacrt_path = env_opt_str("TRITON_CUDACRT_PATH", doc="a folder of CUDA's headers.")
    cudart_path = env_opt_str("TRITON_CUDART_PATH", doc="another.")
    impl = _setting(unread="no native code is built")

    @property
    def backend_dirs(self) -> set[str]:
        """The folders that are named."""
        return {path for path in (self.cudacrt_path, self.cudart_path) if path is not None}


class redis_knobs(base_knobs):
    """Where ``RedisRemoteCacheBackend`` keeps files."""

    key_format = env_str("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}", "what a file is called there.")
    host = env_str("TRITON_REDIS_HOST", "localhost", "the server.")
    port = env_int("TRITON_REDIS_PORT", 6379, "its port.")


class cache_knobs(base_knobs):
    """Folders, and classes of ``runtime.cache``."""

    home_dir = env_str(
        "TRITON_HOME",
        lambda: os.path.expanduser("~/"),
        "the folder in which `.tilewright` is, in place of `~`.",
        read=True,
    )
    dump_dir = env_str(
        "TRITON_DUMP_DIR",
        lambda: cache.get_triton_dir("dump"),
        "where dumps go; `.tilewright/dump` by default.",
    )
    override_dir = env_str(
        "TRITON_OVERRIDE_DIR",
        lambda: cache.get_triton_dir("override"),
        "where stages that take the place of others are; `.tilewright/override` by default.",
    )
    dir = env_str(
        "TRITON_CACHE_DIR",
        lambda: cache.get_triton_dir("cache"),
        "folder of compiled kernels; `.tilewright/cache` by default. Anything in it may be deleted at any time. It must be the user's own "
        "(or root's), and others must not be able to write into it; it is made with mode 0700.",
        ours="TILEWRIGHT_CACHE_DIR",
        read=True,
    )
    size = env_int(
        "TILEWRIGHT_CACHE_SIZE",
        16 << 30,
        "how many bytes the compiled kernels there may have, about; 0 is any number. Who writes one removes those that were not read for longest, "
        "but none that the same process has compiled or another one reads at the time, nothing that is damaged, and no files of programs.",
        read=True,
    )
    manager_class = env_class(
        "TRITON_CACHE_MANAGER", "CacheManager", "`module:class` that keeps the files of programs."
    )
    remote_manager_class = env_class(
        "TRITON_REMOTE_CACHE_BACKEND", "RemoteCacheBackend", "`module:class` that keeps them elsewhere."
    )

    def get_triton_dir(self, dirname: str) -> str:
        """A folder in the user's folder of Tilewright's."""
        return os.path.join(self.home_dir, ".tilewright", dirname)


class compilation_knobs(base_knobs):
    """Compilations."""

    override = env_bool(
        "TRITON_KERNEL_OVERRIDE",
        doc="a file in the folder of overrides, under the key and the name that a dump of the kernel has, takes the place of that stage, of "
        "several the last: dump, copy the key's folder, change a file, run again. †",
    )
    dump_ir = env_bool(
        "TRITON_KERNEL_DUMP",
        doc="writes the stages of each kernel that is compiled into the dump folder. †",
    )
    dump_ir_extract_di_local_variables = env_bool(
        "LLVM_EXTRACT_DI_LOCAL_VARIABLES", unread="code carries lines, but no variables, for debuggers"
    )
    store_binary_only = env_bool("TRITON_STORE_BINARY_ONLY", unread="the cache keeps every stage")
    always_compile = env_bool(
        "TRITON_ALWAYS_COMPILE",
        doc="reads nothing from the cache.",
        ours="TILEWRIGHT_ALWAYS_COMPILE",
        read=True,
    )
    use_ir_loc = env_opt_str("USE_IR_LOC", unread="lines are those of the kernel's source")
    enable_asan = env_bool("TRITON_ENABLE_ASAN", unread="the executor and the simulator check every access")
    disable_line_info = env_bool(
        "TRITON_DISABLE_LINE_INFO", doc="the option `line_info` is off in launches that do not name it. †"
    )
    front_end_debugging = env_bool(
        "TRITON_FRONT_END_DEBUGGING",
        doc="leaves frames of the compiler in tracebacks: there are none to leave.",
    )
    allow_non_constexpr_globals = env_bool(
        "TRITON_ALLOW_NON_CONSTEXPR_GLOBALS",
        doc="the option `allow_non_constexpr_globals` is on in launches that do not name it. †",
    )
    instrumentation_mode = _setting("", key="TRITON_INSTRUMENTATION_MODE", unread="code is not instrumented")
    listener = _setting(doc="called with what was compiled, and how long that took (`CompileTimes`).")


class autotuning_knobs(base_knobs):
    """Autotuning."""

    cache = env_bool(
        "TRITON_CACHE_AUTOTUNING",
        doc="every `autotune` keeps its results on disk, as `cache_results=True` has one do.",
    )
    print = env_bool(
        "TRITON_PRINT_AUTOTUNING",
        doc="says which configuration `autotune` chose, and how long that took.",
        ours="TILEWRIGHT_PRINT_AUTOTUNING",
        read=True,
    )
    threads = env_int(
        "TILEWRIGHT_AUTOTUNE_THREADS",
        doc="how many configurations of an `autotune` compile at once: 0 for as many as the process has cores; with 1 each compiles when "
        "its turn to be measured comes.",
    )
    progress = env_bool(
        "TILEWRIGHT_AUTOTUNE_PROGRESS",
        True,
        "a bar in the terminal while measuring takes longer than a second.",
    )


class runtime_knobs(base_knobs):
    """Launches."""

    interpret = env_bool(
        "TRITON_INTERPRET",
        doc="the same as `TILEWRIGHT_BACKEND=interp`, where that says nothing. †",
    )
    debug = _setting(
        False, "the option `debug` is on in every launch, whatever it says itself. †", key="TRITON_DEBUG"
    )
    override_arch = env_opt_str(
        "TRITON_OVERRIDE_ARCH",
        doc="what `warmup` and `compile` compile for, such as `sm90`. It has no effect on launches, and says so once.",
        unread="a launch compiles for its GPU; warmup and triton.compile go by it",
    )
    launch_enter_hook = _hooks()
    launch_exit_hook = _hooks(reversed=True)
    kernel_load_start_hook = _hooks()
    kernel_load_end_hook = _hooks(reversed=True)
    jit_cache_hook = _setting(doc="called before a kernel is compiled; one that gives true stops it.")
    jit_post_compile_hook = _setting(doc="called when a kernel has been compiled.")
    add_stages_inspection_hook = _setting(unread="the stages of the compiler are not functions of Python")


class language_knobs(base_knobs):
    """What kernels that don't say it mean."""

    fp32_default = env_opt_str(
        "TRITON_F32_DEFAULT",
        doc="the option `default_dot_input_precision` of launches that do not name it. Read at each launch.",
    )
    default_fp_fusion = env_bool(
        "TRITON_DEFAULT_FP_FUSION",
        True,
        "the option `enable_fp_fusion` of launches that do not name it. †",
    )


class nvidia_knobs(base_knobs):
    """NVIDIA's tools and libraries: a tool as a path or as a name that is on the ``PATH``; one that isn't there is an error."""

    cuobjdump = env_nvidia_tool("cuobjdump", "disassembles where there is no `nvdisasm`.")
    nvdisasm = env_nvidia_tool("nvdisasm", "disassembles.")
    ptxas = env_nvidia_tool("ptxas", "assembles PTX.")
    ptxas_blackwell = env_nvidia_tool("ptxas-blackwell", "Triton's second assembler; here there is one.")
    dump_nvptx = env_bool("NVPTX_ENABLE_DUMP", doc="prints the PTX of each kernel that is compiled. †")
    disable_ptxas_opt = env_bool(
        "DISABLE_PTXAS_OPT",
        doc="gives `ptxas` the argument `--opt-level 0`. The cache's key includes it. (Kernels of more than 32,768 instructions get `--opt-level 1`, "
        "unless the option `ptx_options` or `PTXAS_OPTIONS` says another.)",
        read=True,
    )
    ptxas_options = env_opt_str(
        "PTXAS_OPTIONS",
        doc="further arguments of `ptxas`, separated by blanks. The cache's key includes them.",
        read=True,
    )
    mock_ptx_version = env_opt_str("TRITON_MOCK_PTX_VERSION", unread="the target decides the version of PTX")
    dump_ptxas_log = env_bool("TRITON_DUMP_PTXAS_LOG", unread="`tilewright inspect` says what ptxas says")
    libdevice_path = env_opt_str("TRITON_LIBDEVICE_PATH", doc="the file of libdevice.", read=True)
    libcuda_path = env_opt_str(
        "TRITON_LIBCUDA_PATH",
        doc="the folder of the CUDA driver library, where `TILEWRIGHT_LIBCUDA` names no file. Read once.",
        read=True,
    )


class amd_knobs(base_knobs):
    """AMD's GPUs: read by nothing, as on any machine without one."""

    use_buffer_ops = env_bool("AMDGCN_USE_BUFFER_OPS", True)
    use_buffer_atomics = env_bool("AMDGCN_USE_BUFFER_ATOMICS", True)
    buffer_ops_analyze_small_tensor_range = env_bool("AMDGCN_ANALYZE_SMALL_TENSOR_RANGE")
    dump_amdgcn = env_bool("AMDGCN_ENABLE_DUMP")
    libhip_path = env_opt_str("TRITON_LIBHIP_PATH")
    use_block_pingpong = env_opt_bool("TRITON_HIP_USE_BLOCK_PINGPONG")
    use_in_thread_transpose = env_opt_bool("TRITON_HIP_USE_IN_THREAD_TRANSPOSE")
    use_async_copy = env_bool("TRITON_HIP_USE_ASYNC_COPY")
    scalarize_packed_fops = env_bool("AMDGCN_SCALARIZE_PACKED_FOPS")


class proton_knobs(base_knobs):
    """The profiler."""

    disable = env_bool("TRITON_PROTON_DISABLE", doc="a profile that is started measures nothing.")
    cupti_lib_dir = env_str("TRITON_CUPTI_LIB_PATH", "", "the folder with CUPTI for [profiles](profiler.md).")
    enable_nvtx = env_bool(
        "TRITON_ENABLE_NVTX",
        True,
        "NVTX ranges are scopes in Triton; they are none here yet, whatever it says.",
    )


build = build_knobs()
redis = redis_knobs()
cache = cache_knobs()
compilation = compilation_knobs()
autotuning = autotuning_knobs()
runtime = runtime_knobs()
language = language_knobs()
nvidia = nvidia_knobs()
amd = amd_knobs()
proton = proton_knobs()


def compiles_are_hooked() -> bool:
    """Whether something is to be called around compilations."""
    hooks = (runtime.jit_cache_hook, runtime.jit_post_compile_hook, compilation.listener)
    asked = (compilation.dump_ir, compilation.override, nvidia.dump_nvptx)
    return any(hook is not None for hook in hooks) or any(asked)


_applied: dict[str, Any] = {}


def _apply(strict: bool = False) -> None:
    """Has the extension do what the knobs say. What the environment says wrongly is no error of who imports Tilewright."""
    if not _complete:
        return
    # Launches and compilations look for hooks only when there are some.
    _tilewright.hook_launches(bool(runtime.launch_enter_hook.calls or runtime.launch_exit_hook.calls))
    _tilewright.hook_loads(bool(runtime.kernel_load_start_hook.calls or runtime.kernel_load_end_hook.calls))
    _tilewright.hook_compiles(compiles_are_hooked())
    _tilewright.force_debug(bool(runtime.debug))
    options = {
        "enable_fp_fusion": None if language.default_fp_fusion else False,
        "default_dot_input_precision": language.fp32_default or None,
        "line_info": False if compilation.disable_line_info else None,
        "allow_non_constexpr_globals": True if compilation.allow_non_constexpr_globals else None,
    }
    chosen = {name: value for name, value in options.items() if value is not None}
    if chosen != _applied.get("options", {}):
        try:
            _tilewright.set_option_defaults(chosen)
        except ValueError as error:
            if strict:
                raise
            _warn_unread(f"what the environment says ({error.args[0]})", "it cannot be")
        _applied["options"] = chosen
    _interpret(runtime.interpret)


def _interpret(wanted: bool) -> None:
    """``TRITON_INTERPRET=1`` is the CPU executor, unless ``TILEWRIGHT_BACKEND`` says something itself."""
    if wanted and not os.environ.get("TILEWRIGHT_BACKEND"):
        os.environ["TILEWRIGHT_BACKEND"] = "interp"
        _applied["interpret"] = True
    elif not wanted and _applied.pop("interpret", False) and os.environ.get("TILEWRIGHT_BACKEND") == "interp":
        del os.environ["TILEWRIGHT_BACKEND"]


def refresh_knobs() -> None:
    """Reads anew from the environment what is read once."""
    debug = os.environ.get(type(runtime).debug.key)
    if debug is not None or vars(runtime).get("debug"):
        vars(runtime)["debug"] = (debug or "").lower() in _YES
    if mode := os.environ.get(type(compilation).instrumentation_mode.key):
        compilation.instrumentation_mode = mode
    for group in (compilation, runtime, nvidia):
        for knob in group.knob_descriptors.values():
            if knob.unread and knob.key in os.environ and knob.get():
                _warn_unread(knob.key, knob.unread)
    _apply()


class _Knobs(ModuleType):
    """This module: a group may be replaced by another."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, base_knobs):
            _apply()


_complete = True
sys.modules[__name__].__class__ = _Knobs
refresh_knobs()
