"""``tilewright.compile``, and what a compiled kernel has under Triton's names."""

import concurrent.futures
import json
import pickle

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import knobs
from tilewright.backends.compiler import GPUTarget
from tilewright.compiler import ASTSource, IRSource, LazyDict, get_cache_key, make_backend
from tilewright.runtime import jit
from tilewright.runtime.jit import compute_cache_key

HOPPER = GPUTarget("cuda", 90, 32)


@triton.jit
def add(x, y, n, scale, BLOCK: tl.constexpr, MORE):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * scale + MORE, mask=i < n)


@triton.jit
def of_a_tuple(pair, out):
    tl.store(out, tl.load(pair[0]) + pair[1])


@triton.jit
def of_a_descriptor(source, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, source.load([0, 0]))


@pytest.fixture(autouse=True)
def in_the_simulator(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    monkeypatch.setenv("TILEWRIGHT_CUBIN", "0")


def source(**attrs):
    signature = {
        "x": "*fp16",
        "y": "*fp32",
        "n": "i64",
        "scale": "fp64",
        "BLOCK": "constexpr",
        "MORE": "constexpr",
    }
    return ASTSource(add, signature, {"BLOCK": 32, (5,): 3}, **attrs)


def test_types_are_those_of_the_signature():
    kernel = triton.compile(source(), target=HOPPER)
    head = kernel.asm["ttir"].split("attributes")[0]
    # Arguments are named as in the source.
    assert "%x: !tt.ptr<f16>, %y: !tt.ptr<f32>, %n: i64, %scale: f64" in head
    assert "dense<3.0" in kernel.asm["ttir"]
    known = triton.compile(
        source(attrs={(0,): [["tt.divisibility", 16]], (2,): [["tt.divisibility", 16]]}), target=HOPPER
    )
    head = known.asm["ttir"].split("attributes")[0]
    assert "%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}" in head
    assert "%n: i64 {tt.divisibility = 16 : i32}" in head and "%y: !tt.ptr<f32>," in head


@pytest.mark.parametrize(
    "ty", ["i1", "u1", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "fp16", "bf16", "fp32"]
)
def test_every_number(ty):
    @triton.jit
    def store(x, value):
        tl.store(x, value)

    kernel = triton.compile(ASTSource(store, {"x": f"*{ty}", "value": ty}), target=HOPPER)
    mlir = {"u1": "i1", "fp16": "f16", "bf16": "bf16", "fp32": "f32"}.get(ty, ty.replace("u", "i"))
    assert f"%value: {mlir}" in kernel.asm["ttir"]
    assert kernel.src.signature["value"] == ty


def test_it_is_launched():
    x, y = np.arange(40, dtype=np.float16), np.zeros(40, np.float32)
    kernel = triton.compile(source())
    kernel[(2, 1, 1)](x, y, 40, 0.5, 32, 3)
    np.testing.assert_array_equal(y, np.arange(40) * 0.5 + 3)
    y[:] = 0
    kernel.run(2, 1, 1, None, kernel.function, kernel.packed_metadata, None, None, None, x, y, 33, 1.0, 32, 3)
    np.testing.assert_array_equal(y, np.where(np.arange(40) < 33, np.arange(40) + 3, 0))
    with pytest.raises(TypeError, match="'n' of add is of another kind"):
        kernel[(2, 1, 1)](x, y, 40.5, 0.5, 32, 3)
    with pytest.raises(TypeError, match="keyword argument n"):
        kernel[(1,)](x, y, n=3)


def test_options_and_metadata():
    kernel = triton.compile(
        source(), target=GPUTarget("cuda", 80, 32), options={"num_warps": 8, "num_stages": 2}
    )
    data = kernel.metadata
    assert (data.num_warps, data.num_stages, data.name, data.shared) == (8, 2, "add", kernel.shared)
    assert (
        data.target == GPUTarget("cuda", 80, 32)
        and data.arch == "sm80"
        and ".target sm_80" in kernel.asm["ptx"]
    )
    assert data._asdict()["num_warps"] == 8 and set(data._fields) == set(data._asdict())
    assert pickle.loads(pickle.dumps(data)) == data
    assert (
        kernel.packed_metadata == (8, 1, kernel.shared)
        and kernel.num_ctas == 1
        and kernel.cluster_dims == (1, 1, 1)
    )
    assert (
        kernel.hash
        == triton.compile(source(), target=data.target, options={"num_warps": 8, "num_stages": 2}).hash
    )
    assert kernel.hash != triton.compile(source(), target=data.target).hash
    assert kernel.module is None and kernel.function is None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        kernel.nothing


def test_an_architecture_by_option_or_setting():
    assert triton.compile(source(), target=HOPPER, options={"arch": "sm80"}).metadata.arch == "sm80"
    arguments = (np.float16, np.float32, 5, 1.0)
    kernel = add.warmup(*arguments, BLOCK=32, MORE=1, grid=(1,), arch="sm89")
    assert kernel.metadata.target == GPUTarget("cuda", 89, 32) and ".target sm_89" in kernel.asm["ptx"]
    with knobs.runtime.scope(), pytest.warns(RuntimeWarning, match="a launch compiles for its GPU"):
        knobs.runtime.override_arch = "sm86"
        assert triton.compile(source()).metadata.arch == "sm86"
        assert add.warmup(*arguments, BLOCK=32, MORE=1, grid=(1,)).metadata.arch == "sm86"
    with pytest.raises(ValueError, match="an architecture is written as in sm90, not 'gfx942'"):
        add.warmup(*arguments, BLOCK=32, MORE=1, grid=(1,), arch="gfx942")


@triton.jit
def copied_to(x, target):
    tl.store(target, tl.load(x))


def test_a_parameter_of_the_name_of_the_target():
    kernel = copied_to.warmup(np.float32, target=np.float16, arch="sm80", grid=(1,))
    assert kernel.src.signature == {"x": "*fp32", "target": "*fp16"} and kernel.metadata.arch == "sm80"


def test_an_option_that_nothing_reads():
    with pytest.warns(UserWarning, match="nothing reads the option waves_per_eu"):
        triton.compile(
            source(), target=HOPPER, options={"waves_per_eu": 2, "arch": "sm90", "supported_fp8_dtypes": None}
        )
    with pytest.raises(ValueError, match="num_warps"):
        triton.compile(source(), target=HOPPER, options={"num_warps": 3})


def test_the_source_of_a_kernel():
    kernel = triton.compile(source(), target=HOPPER)
    assert kernel.src.fn is add and kernel.src.constants == {(4,): 32, (5,): 3}
    launched = add.warmup(np.float16, np.float32, 16, 0.5, 64, 3, grid=(1,))
    assert launched.src.signature == {
        "x": "*fp16", "y": "*fp32", "n": "i32", "scale": "fp32", "BLOCK": "constexpr", "MORE": "i32",
    }  # fmt: skip
    assert launched.src.constants == {(4,): 64} and launched.src.attrs[(2,)] == [["tt.divisibility", 16]]
    again = triton.compile(launched.src)
    assert again is launched


def test_tuples_and_descriptors():
    pair = ASTSource(of_a_tuple, {"pair": ("*fp32", "constexpr"), "out": "*fp32"}, {(0, 1): 2})
    assert "dense" not in triton.compile(pair, target=HOPPER).asm["ttir"]
    types = {"source": "tensordesc<fp16[32, 64]>", "out": "*fp16"}
    kernel = triton.compile(ASTSource(of_a_descriptor, types, {"M": 32, "N": 64}), target=HOPPER)
    assert "cp.async.bulk.tensor" in kernel.asm["ptx"]
    assert kernel.src.signature["source"] == "tensordesc<fp16[32, 64]>"


def test_what_a_source_must_say():
    with pytest.raises(ValueError, match="no parameter 'z'"):
        ASTSource(add, {"z": "i32"})
    with pytest.raises(TypeError, match="'y' has neither a type"):
        triton.compile(ASTSource(add, {"x": "*fp16"}), target=HOPPER)
    with pytest.raises(ValueError, match='"i33"'):
        triton.compile(ASTSource(of_a_tuple, {"pair": ("*fp32", "i33"), "out": "*fp32"}), target=HOPPER)
    with pytest.raises(TypeError, match="target is a GPUTarget"):
        triton.compile(source(), target=90)
    with pytest.raises(RuntimeError, match="0 backends"):
        triton.compile(source(), target=GPUTarget("hip", "gfx942", 64))


def test_a_file_of_ir(tmp_path):
    path = tmp_path / "add.ttir"
    path.write_text(triton.compile(source(), target=HOPPER).asm["ttir"])
    read = IRSource(path)
    assert (
        read.name == "add"
        and read.ext == "ttir"
        and read.signature == {0: "*f16", 1: "*f32", 2: "i64", 3: "f64"}
    )
    compiled = triton.compile(str(path), target=HOPPER)
    assert compiled.name == "add" and ".target sm_90a" in compiled.asm["ptx"]
    path = tmp_path / "add.ptx"
    path.write_text(triton.compile(source(), target=HOPPER).asm["ptx"])
    assert IRSource(path).name == "add" and len(IRSource(path).signature) == 4


def test_keys_and_backends():
    backend = make_backend(HOPPER)
    options = backend.parse_options({"num_warps": 8, "unknown": 1})
    assert options.num_warps == 8 and backend.get_target_name(options) == "cuda:90"
    assert get_cache_key(source(), backend, options, {}) != get_cache_key(
        source(), make_backend(GPUTarget("cuda", 80, 32)), options, {}
    )
    with pytest.raises(ValueError, match="clusters"):
        make_backend(GPUTarget("cuda", 80, 32)).parse_options({"num_ctas": 2})
    lazy = LazyDict({"a": 1})
    lazy.add(lambda b: {"b": b}, (2,))
    assert lazy.get() == {"a": 1, "b": 2} == lazy.get()


def test_the_files_of_a_kernel(tmp_path):
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        kernel = triton.compile(source(), target=HOPPER, options={"num_warps": 1})
        group = kernel.metadata_group
    assert set(group) == {"add.ttir", "add.ttgir", "add.llir", "add.ptx", "add.json"}
    with open(group["add.json"]) as file:
        assert json.load(file)["num_warps"] == 1
    with open(group["add.ptx"]) as file:
        assert file.read() == kernel.asm["ptx"]
    assert group["add.ptx"].startswith(str(tmp_path))


def test_compiling_in_the_background():
    @triton.jit
    def scaled(x, FACTOR: tl.constexpr):
        tl.store(x, tl.load(x) * FACTOR)

    @triton.jit
    def wrong(x):
        tl.store(x, nothing)  # noqa: F821

    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        with triton.AsyncCompileMode(executor) as mode:
            futures = [scaled.warmup(tl.float32, factor, grid=(1,)) for factor in (3, 3, 4)]
            assert futures[0] is futures[1] and len(mode.raw_futures) == 2
            with pytest.raises(RuntimeError, match="already"), triton.AsyncCompileMode(executor):
                pass
        assert all(isinstance(future, triton.FutureKernel) for future in futures)
        assert "4.0" in futures[2].result().asm["ttir"]
        with pytest.raises(triton.CompilationError), triton.AsyncCompileMode(executor):
            wrong.warmup(tl.float32, grid=(1,))
        with triton.AsyncCompileMode(executor, ignore_errors=True):
            future = wrong.warmup(tl.float32, grid=(1,))
        assert future.result(ignore_errors=True) is None
    assert scaled.warmup(tl.float32, 3, grid=(1,)) is futures[0].result()


def test_hooks_around_a_compilation():
    @triton.jit
    def scaled(x, n, FACTOR: tl.constexpr):
        tl.store(x, tl.load(x) * FACTOR + n)

    seen, refuse = [], []

    def before(**facts):
        seen.append(("before", facts))
        return bool(refuse)

    with knobs.runtime.scope(), knobs.compilation.scope():
        knobs.runtime.jit_cache_hook = before
        knobs.runtime.jit_post_compile_hook = lambda **facts: seen.append(("after", facts))
        knobs.compilation.listener = lambda **facts: seen.append(("listener", facts))
        kernel = scaled.warmup(tl.float32, 16, 3, grid=(1,))
        scaled.warmup(tl.float32, 16, 3, grid=(1,))
        refuse.append(True)
        assert scaled.warmup(tl.float32, 16, 4, grid=(1,)) is None
        assert scaled[(1,)](np.ones(1, np.float32), 16, 4) is None
    assert [name for name, _ in seen] == ["before", "listener", "after", "before", "before"]
    facts = seen[0][1]
    assert facts["fn"].name == scaled.__qualname__ and facts["fn"].jit_function is scaled
    assert facts["is_manual_warmup"] and not facts["already_compiled"]
    assert facts["compile"]["signature"] == {"x": "*fp32", "n": "i32", "FACTOR": "constexpr"}
    assert facts["compile"]["constants"] == {(2,): 3} and facts["compile"]["num_warps"] == 4
    assert "num_warps=4" in facts["repr"] and "x: *fp32" in facts["repr"]
    told = seen[1][1]
    assert told["metadata"]["name"] == kernel.name and set(told["metadata_group"]) >= {f"{kernel.name}.ptx"}
    assert told["times"].total >= told["times"].total_lowering >= 0
    # Without hooks nothing is called any more.
    scaled.warmup(tl.float32, 16, 5, grid=(1,))
    assert len(seen) == 5

    # What a hook was told is compiled again from text.
    data = facts["compile"]["specialization_data"]
    scaled.clear_cache()
    again = scaled.preload(data)
    assert again.asm["ttir"] == kernel.asm["ttir"]
    assert scaled.warmup(tl.float32, 16, 3, grid=(1,)) is again
    with pytest.raises(RuntimeError, match="not of"):
        add.preload(data)


def test_dumps(tmp_path, capfd):
    @triton.jit
    def scaled(x):
        tl.store(x, tl.load(x) * 7)

    with knobs.cache.scope(), knobs.compilation.scope(), knobs.nvidia.scope():
        knobs.cache.dump_dir = str(tmp_path / "dump")
        knobs.compilation.dump_ir = True
        knobs.nvidia.dump_nvptx = True
        kernel = scaled.warmup(tl.float32, grid=(1,))
    written = {path.name: path.read_text() for path in (tmp_path / "dump").rglob("*") if path.is_file()}
    assert written[f"{kernel.name}.ptx"] == kernel.asm["ptx"] and f"{kernel.name}.ttgir" in written
    assert kernel.asm["ptx"] in capfd.readouterr().out


def test_types_of_arguments():
    from tilewright.runtime.jit import mangle_type

    x = np.zeros(4, np.float16)
    assert [mangle_type(v) for v in (1, 2**40, 1.5, True, x, None, (1, x))] == [
        "i32", "i64", "fp32", "u1", "*fp16", "constexpr", ("i32", "*fp16"),
    ]  # fmt: skip
    assert mangle_type(1, specialize=True) == "constexpr"


def test_what_libraries_read_of_a_function():
    @triton.jit
    def scaled(x, FACTOR: tl.constexpr):
        tl.store(x, tl.load(x) * FACTOR)

    assert (
        isinstance(scaled, triton.KernelInterface) and triton.KernelInterface[int] is triton.KernelInterface
    )
    assert scaled.parse().body[0].name == "scaled" and scaled.hash is None and not scaled.is_gluon()
    assert scaled.get_capture_scope()["np"] is np
    assert len(scaled.device_caches) == 0 and not scaled.cache
    kernel = scaled.warmup(tl.float32, 3, grid=(1,))
    caches = scaled.device_caches[0]
    assert list(caches[0].values()) == [kernel] and caches[2] == HOPPER and len(scaled.cache[0]) == 1
    scaled.device_caches.clear()
    assert scaled.compiled_kernels == []
    positional = triton.JITFunction(scaled.fn, "version", ["x"], None, True)
    assert positional.version == "version" and positional.do_not_specialize == ["x"] and positional.debug


@triton.jit
def wrong_name(x):
    tl.store(x, lood)  # noqa: F821


def test_an_error_has_its_message_alone(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.CompilationError) as caught:
        wrong_name[(1,)](np.zeros(1, np.float32))
    assert "lood" in caught.value.error_message and "\n" not in caught.value.error_message
    assert caught.value.error_message in str(caught.value)
    assert caught.value.message == str(caught.value) and caught.value.__cause__ is None


@triton.jit
def of_nothing():
    return tl.arange(4, 4)


@triton.jit
def refused(x, HOW: tl.constexpr):
    if HOW == "called":
        of_nothing()
    elif HOW == "builtin":
        tl.arange(4, 4)
    else:
        tl.static_assert(False)


def test_what_led_to_an_error():
    def error(how):
        with pytest.raises(triton.CompilationError) as caught:
            refused.warmup(tl.float32, how, grid=(1,))
        return caught.value

    builtin = error("builtin")
    assert type(builtin.__cause__) is ValueError and str(builtin.__cause__) == builtin.error_message
    called = error("called")
    inner = called.__cause__
    assert type(inner) is triton.CompilationError and "called from here" not in str(inner)
    assert "called from here" in str(called) and type(inner.__cause__) is ValueError
    assert error("assertion").__cause__ is None


def test_a_launch_taken_apart():
    *_, bind = scaled_by.device_caches[0]
    x = TensorLike()
    args, specialization, options = bind(x, 32, FACTOR=3, num_warps=8)
    assert args == {"x": x, "n": 32, "m": 1, "FACTOR": 3} and options == {"num_warps": 8}
    assert specialization == [("*fp32", "D"), ("i32", "D"), ("i64", None), ("constexpr", 3)]
    keys = {}
    key = compute_cache_key(keys, specialization, options)
    assert (
        key == compute_cache_key(keys, specialization, options) != compute_cache_key(keys, specialization, {})
    )
    kernels = scaled_by.device_caches[0][0]
    kernels[key] = "kernel"
    assert scaled_by.device_caches[0][0].get(key) == "kernel"
    scaled_by.device_caches.clear()
    assert not scaled_by.device_caches[0][0]
    assert scaled_by.ASTSource is ASTSource and scaled_by.compile is triton.compile


class TensorLike:
    dtype = "float32"

    def data_ptr(self):
        return 4096


@triton.jit(do_not_specialize=["m"])
def scaled_by(x, n, m: tl.int64 = 1, FACTOR: tl.constexpr = 2):
    tl.store(x + n + m, FACTOR)


@triton.jit
def of_warps(x, num_warps: tl.constexpr, num_stages: tl.constexpr):
    tl.store(x, num_warps * 10 + num_stages)


def test_a_parameter_may_have_the_name_of_an_option():
    """As in Triton: the keyword is both; so is the constant that `triton.compile` is given."""
    x = np.zeros(1, np.int32)
    kernel = of_warps[(1,)](x, num_warps=2, num_stages=5)
    assert x[0] == 25 and kernel.metadata.num_warps == 2 and kernel.metadata.num_stages == 5
    kernel = of_warps[(1,)](x, 2, num_stages=5)
    assert x[0] == 25 and kernel.metadata.num_warps == 4
    constants = {"num_warps": 8, "num_stages": 3}
    source = triton.compiler.ASTSource(
        of_warps, {"x": "*i32"} | dict.fromkeys(constants, "constexpr"), constants
    )
    kernel = triton.compile(
        source, target=triton.backends.compiler.GPUTarget("cuda", 90, 32), options={"num_warps": 8}
    )
    assert kernel.metadata.num_warps == 8 and kernel.metadata.num_stages == 3


def test_hooks_and_caches_have_one_key():
    """What ``jit_cache_hook`` is told is the key under which the kernel is then found; options make other kernels."""

    @triton.jit
    def checked(out_ptr, n):
        tl.device_assert(n < 10)
        tl.store(out_ptr, n)

    keys = []
    before = knobs.runtime.jit_cache_hook
    knobs.runtime.jit_cache_hook = lambda **told: keys.append(told["key"])
    try:
        for debug in (False, True):
            checked.warmup(tl.int32, 5, grid=(1,), debug=debug)
    finally:
        knobs.runtime.jit_cache_hook = before
    kernels = checked.device_caches[0][0]
    assert set(kernels) == set(keys) and len(set(keys)) == 2
    first, second = kernels.values()
    assert first.asm["ttir"] != second.asm["ttir"]


@triton.jit
def nested_kernel(out_ptr, pair):
    tl.store(out_ptr, pair[0][0] + pair[1][0])


def test_constants_within_tuples_are_repeated():
    told = []
    before = knobs.runtime.jit_cache_hook
    knobs.runtime.jit_cache_hook = lambda **info: told.append(info["compile"]["specialization_data"])
    try:
        first = nested_kernel.warmup(tl.int32, ((1,), (tl.constexpr(2),)), grid=(1,))
    finally:
        knobs.runtime.jit_cache_hook = before
    assert nested_kernel.preload(told[0]).hash == first.hash


def test_programs_may_write_what_hooks_are_told_themselves(monkeypatch):
    told = []
    monkeypatch.setattr(jit, "serialize_specialization_data", lambda *args: args[0])
    monkeypatch.setattr(knobs.runtime, "jit_post_compile_hook", lambda **info: told.append(info["compile"]))
    scaled_by.warmup(tl.float32, 16, FACTOR=7, grid=(1,))
    assert told[0]["specialization_data"] == f"{__name__}.scaled_by"


@triton.jit
def chosen():
    return 0


@triton.jit
def caller(out_ptr, FUNCTION: tl.constexpr):
    tl.store(out_ptr, FUNCTION())


def test_a_constant_function_with_other_source_makes_another_kernel():
    out, source = np.full(1, -1, np.int32), chosen.src
    for text, result in ((source, 0), (source.replace("0", "1"), 1), (source, 0)):
        chosen._unsafe_update_src(text)
        caller[(1,)](out, chosen)
        assert out[0] == result


@triton.constexpr_function
def flag():
    return 3


def test_the_source_of_a_compile_time_function():
    key, source = flag.cache_key, flag.src
    flag._unsafe_update_src(source.replace("3", "4"))
    assert flag() == 4 and flag.cache_key != key
    flag._unsafe_update_src(source)
    assert flag() == 3 and flag.cache_key == key


def test_the_listener_knows_the_cache(tmp_path, monkeypatch):
    @triton.jit
    def doubled(x):
        tl.store(x, tl.load(x) * 2)

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    told = []
    knobs.compilation.listener = lambda **facts: told.append((facts["cache_hit"], facts["times"]))
    try:
        for _ in range(2):
            doubled.warmup(tl.float32, grid=(1,), target="cuda:90")
            doubled.clear_cache()
    finally:
        knobs.compilation.listener = None
    (missed, first), (hit, second) = told
    assert not missed and first.store_results > 0 and first.total_lowering > 0
    assert hit and second.store_results == 0
