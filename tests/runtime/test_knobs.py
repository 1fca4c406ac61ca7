"""Settings under Triton's names: that each says what the environment says, and that those which are read act."""

import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import knobs

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "environment.md"


@triton.jit
def fused(x, y):
    tl.store(x, tl.load(x) * tl.load(y) + 1.0)


@triton.jit
def product(x, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(at, tl.dot(tl.load(at), tl.load(at)))


@triton.jit
def positive(x):
    tl.device_assert(tl.load(x) > 0, "not positive")


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """Knobs and environment as they were, and no test's kernels for the next."""
    environment, groups = (
        dict(os.environ),
        {n: v for n, v in vars(knobs).items() if isinstance(v, knobs.base_knobs)},
    )
    monkeypatch.setenv("TILEWRIGHT_CUBIN", "0")
    for name, group in groups.items():
        setattr(knobs, name, group.copy())
    yield
    for name, group in groups.items():
        setattr(knobs, name, group)
    os.environ.clear()
    os.environ.update(environment)
    knobs.propagate_env = True
    knobs.refresh_knobs()


def ptx(kernel, *args, **options):
    return kernel.warmup(*args, grid=(1,), target="cuda:90", **options).asm["ptx"]


def test_every_knob_of_triton_is_there():
    names = {
        "build": "cc cudacrt_path cudart_path impl backend_dirs",
        "redis": "key_format host port",
        "cache": "home_dir dump_dir override_dir dir manager_class remote_manager_class",
        "compilation": "override dump_ir dump_ir_extract_di_local_variables store_binary_only always_compile use_ir_loc "
        "enable_asan disable_line_info front_end_debugging allow_non_constexpr_globals instrumentation_mode listener",
        "autotuning": "cache print",
        "runtime": "interpret debug override_arch launch_enter_hook launch_exit_hook kernel_load_start_hook "
        "kernel_load_end_hook jit_cache_hook jit_post_compile_hook add_stages_inspection_hook",
        "language": "fp32_default default_fp_fusion",
        "nvidia": "dump_nvptx disable_ptxas_opt ptxas_options mock_ptx_version dump_ptxas_log libdevice_path libcuda_path",
        "amd": "use_buffer_ops use_buffer_atomics buffer_ops_analyze_small_tensor_range dump_amdgcn libhip_path "
        "use_block_pingpong use_in_thread_transpose use_async_copy scalarize_packed_fops",
        "proton": "disable cupti_lib_dir enable_nvtx",
    }
    for group, of_group in names.items():
        for name in of_group.split():
            getattr(getattr(knobs, group), name)
    assert {"cuobjdump", "nvdisasm", "ptxas", "ptxas_blackwell"} <= set(knobs.nvidia.knob_descriptors)


def test_a_knob_says_what_the_environment_says(monkeypatch):
    monkeypatch.delenv("TRITON_REDIS_PORT", raising=False)
    assert knobs.redis.port == 6379
    monkeypatch.setenv("TRITON_REDIS_PORT", "80")
    assert knobs.redis.port == 80
    monkeypatch.setenv("TRITON_REDIS_PORT", "x")
    with pytest.raises(RuntimeError, match="TRITON_REDIS_PORT=x: not a number"):
        knobs.redis.port
    knobs.redis.port = 7
    assert knobs.redis.port == 7 and os.environ["TRITON_REDIS_PORT"] == "7"
    monkeypatch.setenv("TRITON_REDIS_PORT", "8")
    assert knobs.redis.port == 7
    knobs.redis.port = knobs.env
    assert knobs.redis.port == 8
    for text, value in (("1", True), ("TRUE", True), ("on", True), ("0", False), ("no", False), ("", False)):
        monkeypatch.setenv("TRITON_CACHE_AUTOTUNING", text)
        assert knobs.autotuning.cache is value
    assert knobs.redis.knobs == {"key_format": "triton:{key}:{filename}", "host": "localhost", "port": 8}


def test_what_is_assigned_reaches_the_environment(monkeypatch):
    monkeypatch.delenv("TRITON_CACHE_AUTOTUNING", raising=False)
    knobs.autotuning.cache = True
    assert os.environ["TRITON_CACHE_AUTOTUNING"] == "1"
    knobs.build.cc = "clang"
    knobs.build.cc = None
    assert "CC" not in os.environ
    knobs.propagate_env = False
    knobs.autotuning.cache = False
    assert not knobs.autotuning.cache and os.environ["TRITON_CACHE_AUTOTUNING"] == "1"
    # What the compiler reads goes there in any case.
    knobs.compilation.always_compile = True
    assert os.environ["TRITON_ALWAYS_COMPILE"] == "1"


def test_scopes_copies_and_resets(monkeypatch):
    monkeypatch.delenv("TRITON_REDIS_HOST", raising=False)
    with knobs.redis.scope():
        knobs.redis.host = "a"
        other = knobs.redis.copy()
        assert other.host == "a" and other.reset().host == "a"  # the environment has it
    assert knobs.redis.host == "localhost" and "TRITON_REDIS_HOST" not in os.environ
    with knobs.runtime.scope():
        knobs.runtime.launch_enter_hook.add(print)
        knobs.runtime.jit_cache_hook = print
    assert not knobs.runtime.launch_enter_hook.calls and knobs.runtime.jit_cache_hook is None


def test_classes(monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "tilewright.runtime.cache:FileCacheManager")
    assert knobs.cache.manager_class is triton.runtime.cache.FileCacheManager
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "tilewright.runtime.cache")
    with pytest.raises(RuntimeError, match="written module:class"):
        knobs.cache.manager_class
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "collections:OrderedDict")
    with pytest.raises(RuntimeError, match="no CacheManager"):
        knobs.cache.manager_class


def test_the_folder_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR", raising=False)
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)

    def compiled(number):
        @triton.jit
        def store(x, N: tl.constexpr):
            tl.store(x, N)

        store.warmup(tl.int32, number, grid=(1,), target="cuda:90")

    knobs.cache.dir = str(tmp_path / "a")
    compiled(1)
    assert knobs.cache.dir == str(tmp_path / "a") and any((tmp_path / "a").iterdir())
    # Tilewright's own variable goes first.
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "b"))
    del knobs.cache.dir
    assert knobs.cache.dir == str(tmp_path / "b")
    knobs.cache.dir = str(tmp_path / "c")
    compiled(2)
    assert any((tmp_path / "c").iterdir()) and not (tmp_path / "b").exists()
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR")
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    del knobs.cache.dir
    knobs.cache.home_dir = str(tmp_path / "home")
    assert knobs.cache.dir == str(tmp_path / "home/.tilewright/cache")
    compiled(3)
    assert any((tmp_path / "home/.tilewright/cache").iterdir())
    assert knobs.cache.dump_dir == str(tmp_path / "home/.tilewright/dump")


def test_defaults_of_options(monkeypatch):
    assert "fma" in ptx(fused, tl.float32, tl.float32)
    with knobs.language.scope():
        knobs.language.default_fp_fusion = False
        assert "fma" not in ptx(fused, tl.float32, tl.float32)
        # What a launch names goes first.
        assert "fma" in ptx(fused, tl.float32, tl.float32, enable_fp_fusion=True)
    assert "fma" in ptx(fused, tl.float32, tl.float32)
    knobs.language.fp32_default = "ieee"
    assert (
        "inputPrecision = tf32" not in product.warmup(tl.float32, 16, grid=(1,), target="cuda:90").asm["ttir"]
    )
    assert (
        "tf32"
        in product.warmup(
            tl.float32, 16, grid=(1,), target="cuda:90", default_dot_input_precision="tf32"
        ).asm["ttir"]
    )
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "0")
    knobs.refresh_knobs()
    assert "fma" not in ptx(fused, tl.float32, tl.float32)
    assert ".loc" in ptx(fused, tl.float32, tl.float32)
    knobs.compilation.disable_line_info = True
    assert ".loc" not in ptx(fused, tl.float32, tl.float32)
    knobs.language.fp32_default = None
    with pytest.raises(ValueError, match="default_dot_input_precision"):
        knobs.language.fp32_default = "fp8"
    assert knobs.language.fp32_default is None and "TRITON_F32_DEFAULT" not in os.environ
    del knobs.language.fp32_default
    monkeypatch.setattr(knobs, "_warned", set())
    monkeypatch.setenv("TRITON_F32_DEFAULT", "fp8")
    with pytest.warns(RuntimeWarning, match="default_dot_input_precision"):
        knobs.refresh_knobs()


def test_the_precision_of_products_is_read_at_each_launch(monkeypatch):
    def tf32():
        kernel = product.warmup(tl.float32, 16, grid=(1,), target="cuda:90")
        return "inputPrecision = tf32" in kernel.asm["ttir"]

    assert tf32()
    monkeypatch.setenv("TRITON_F32_DEFAULT", "ieee")
    assert not tf32()
    monkeypatch.setenv("TRITON_F32_DEFAULT", "tf32")
    assert tf32()
    monkeypatch.setenv("TRITON_F32_DEFAULT", "fp8")
    with pytest.raises(ValueError, match="default_dot_input_precision"):
        tf32()
    monkeypatch.delenv("TRITON_F32_DEFAULT")
    assert tf32()


def test_debug(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    positive[(1,)](np.zeros(1, np.int32))
    knobs.runtime.debug = True
    for said in ({}, {"debug": False}):
        with pytest.raises(triton.KernelError, match="not positive"):
            positive[(1,)](np.zeros(1, np.int32), **said)
    knobs.runtime.debug = False
    positive[(1,)](np.zeros(1, np.int32))
    monkeypatch.setenv("TRITON_DEBUG", "1")
    knobs.refresh_knobs()
    assert knobs.runtime.debug


def test_interpret(monkeypatch):
    monkeypatch.delenv("TILEWRIGHT_BACKEND", raising=False)
    knobs.runtime.interpret = True
    assert os.environ["TILEWRIGHT_BACKEND"] == "interp"
    knobs.runtime.interpret = False
    assert "TILEWRIGHT_BACKEND" not in os.environ
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    knobs.runtime.interpret = True
    assert os.environ["TILEWRIGHT_BACKEND"] == "ptxsim"


def test_what_nothing_reads_says_so_once(monkeypatch):
    monkeypatch.setattr(knobs, "_warned", set())
    with pytest.warns(
        RuntimeWarning, match=r"knobs\.compilation\.store_binary_only has no effect: the cache"
    ):
        knobs.compilation.store_binary_only = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        knobs.compilation.store_binary_only = True
        knobs.compilation.enable_asan = False
        knobs.runtime.add_stages_inspection_hook = None
    with pytest.warns(RuntimeWarning, match="add_stages_inspection_hook has no effect"):
        knobs.runtime.add_stages_inspection_hook = print
    monkeypatch.setenv("USE_IR_LOC", "ttir")
    with pytest.warns(RuntimeWarning, match="USE_IR_LOC has no effect"):
        knobs.refresh_knobs()


def test_tools(tmp_path, monkeypatch):
    script = tmp_path / "ptxas"
    script.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 12.34, V12.34.5'\n")
    script.chmod(0o755)
    knobs.nvidia.ptxas = str(script)
    assert knobs.nvidia.ptxas == knobs.NvidiaTool(str(script), "12.34")
    assert os.environ["TRITON_PTXAS_PATH"] == str(script)
    # One that cannot be run gives way to the usual one.
    knobs.nvidia.ptxas = str(tmp_path / "none")
    monkeypatch.setattr(knobs.env_nvidia_tool, "_places", lambda self: [str(script)])
    assert knobs.nvidia.ptxas.version == "12.34"
    monkeypatch.setattr(knobs.env_nvidia_tool, "_places", lambda self: [])
    with pytest.raises(RuntimeError, match="there is no ptxas"):
        knobs.nvidia.ptxas
    assert knobs.NvidiaTool.from_path(str(tmp_path)) is None


def test_arguments_of_ptxas(tmp_path, monkeypatch):
    monkeypatch.delenv("TILEWRIGHT_CUBIN")
    said = tmp_path / "said"
    script = tmp_path / "ptxas"
    script.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exec echo V13.0.1\necho "$@" >> "{said}"\nexit 1\n'
    )
    script.chmod(0o755)
    knobs.nvidia.ptxas = str(script)
    knobs.nvidia.disable_ptxas_opt = True
    knobs.nvidia.ptxas_options = "--verbose  -warn-spills"
    with pytest.raises(triton.CompilationError):
        fused.warmup(tl.float32, tl.float32, grid=(1,), target="cuda:90", num_warps=2)
    assert said.read_text().strip().endswith("--opt-level 0 --verbose -warn-spills")


def described() -> str:
    """The knobs as ``docs/environment.md`` has them."""
    unset = {None: "", "": "", True: "on", False: "off"}
    lines = [
        "Each is a variable and an attribute in `tilewright.knobs`: it says what the variable says until it is assigned, and what is assigned is",
        "written into the variable. A switch is on with `1`, `true`, `on`, `yes` or `y`. † Read when Tilewright is imported; later changes count after",
        "`tilewright.knobs.refresh_knobs()`, or made through `tilewright.knobs`. What has no effect says so once when it asks for something.",
        "",
        "Written from the declarations in `python/tilewright/knobs.py` by `TILEWRIGHT_BLESS=1 pytest tests/runtime/test_knobs.py`.",
    ]
    groups = {name: type(value) for name, value in vars(knobs).items() if isinstance(value, knobs.base_knobs)}
    for group, declared in groups.items():
        lines += ["", f"### `knobs.{group}`", "", declared.__doc__.replace("``", "`")]
        lines += ["", "| variable, attribute | unset | meaning |", "| --- | --- | --- |"]
        for name, knob in vars(declared).items():
            if not isinstance(knob, (knobs.env_base, knobs._setting)):
                continue
            if isinstance(knob, knobs.env_base):
                keys, default, unread = knob.keys, knob.default, knob.unread
            else:
                keys, default, unread = filter(None, [knob.key]), knob._default, knob._unread
            known = default is None or default == "" or isinstance(default, bool)
            shown = unset[default] if known else "" if callable(default) else f"`{default}`"
            meaning = knob.doc or (f"no effect: {unread}." if unread else "no effect.")
            names = "<br>".join(f"`{n}`" for n in [*keys, f"{group}.{name}"])
            lines.append(f"| {names} | {shown} | {meaning} |")
    return "\n".join(lines) + "\n"


def test_the_page_says_what_is_declared():
    """Every knob with its variable; ``TILEWRIGHT_BLESS=1`` writes the page."""
    head, mark, rest = PAGE.read_text().partition("## Knobs\n\n")
    if os.environ.get("TILEWRIGHT_BLESS") == "1":
        PAGE.write_text(head + mark + described())
    else:
        assert rest == described()


def test_every_variable_that_is_read_is_on_the_page():
    """What sources name; a constant of Triton's, what the build sets and what our own processes tell each other is no switch."""
    none = {"TRITON_MAX_TENSOR_NUMEL", "TRITON_VERSION", "TILEWRIGHT_BUILD_ID", "TILEWRIGHT_IN_SANITIZER"}
    named = set()
    for folder, kind in (("crates", "src/**/*.rs"), ("python", "**/*.py")):
        for path in (ROOT / folder).glob(f"*/{kind}"):
            if path.name != "tests.rs":
                named |= set(re.findall(r'"((?:TILEWRIGHT|TRITON)_[A-Z0-9_]+)"', path.read_text()))
    assert "TILEWRIGHT_BACKEND" in named and "TRITON_HOME" in named
    page = PAGE.read_text()
    assert {name for name in named - none if f"`{name}" not in page} == set()
