"""Calls: how arguments are bound, what they become in the kernel, and what a wrong call says."""

import collections
import gc
import importlib.util
import os
import select
import signal
import threading
import warnings
import weakref

import ml_dtypes
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x, n, scale, BLOCK: tl.constexpr, flag: tl.constexpr = True):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * scale, mask=i < n)


@triton.jit
def nothing(a, b=None):
    pass


@triton.jit
def count(x):
    tl.atomic_add(x, 1)


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")


def signature(*args, of=nothing, **kwargs):
    """What the arguments are to the compiler."""
    return of.warmup(*args, grid=(1,), **kwargs).metadata.signature


def aligned(n, dtype, offset=0):
    """An array whose address is `offset` bytes past a multiple of 16."""
    size = np.dtype(dtype).itemsize
    raw = np.zeros(n * size + 64, np.uint8)
    start = -raw.__array_interface__["data"][0] % 16 + offset
    return raw[start : start + n * size].view(dtype)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "i32:16"),
        (1, "1/constexpr"),
        (2, "i32"),
        (16, "i32:16"),
        (-16, "i32:16"),
        (-1, "i32"),
        (2**31 - 1, "i32"),
        (-(2**31), "i32:16"),
        (2**31, "i64:16"),
        (2**31 + 1, "i64"),
        (-(2**31) - 1, "i64"),
        (2**63 - 1, "i64"),
        (2**63, "u64:16"),
        (2**64 - 1, "u64"),
        (True, "i1"),
        (False, "i1"),
        (1.0, "fp32"),
        (float("nan"), "fp32"),
        (None, "None/constexpr"),
        (np.int64(5), "i32"),
        (np.int32(32), "i32:16"),
        (np.float32(2), "fp32"),
        (tl.constexpr(7), "7/constexpr"),
        ((2, 16.0), "(i32, fp32)"),
        ((1, None, (3,)), "(1/constexpr, None/constexpr, (i32))"),
    ],
)
def test_numbers(value, expected):
    assert signature(value) == [expected, "None/constexpr"]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.bool_, "*i1"),
        (np.int8, "*i8"),
        (np.uint8, "*u8"),
        (np.int16, "*i16"),
        (np.uint16, "*u16"),
        (np.int32, "*i32"),
        (np.uint32, "*u32"),
        (np.int64, "*i64"),
        (np.uint64, "*u64"),
        (np.float16, "*fp16"),
        (np.float32, "*fp32"),
        (np.float64, "*fp64"),
        (ml_dtypes.bfloat16, "*bf16"),
        (ml_dtypes.float8_e4m3fn, "*fp8e4nv"),
        (ml_dtypes.float8_e5m2, "*fp8e5"),
    ],
)
def test_arrays(dtype, expected):
    assert signature(aligned(4, dtype))[0] == expected + ":16"
    itemsize = np.dtype(dtype).itemsize
    assert signature(aligned(4, dtype, offset=itemsize))[0] == expected


def test_a_dtype_stands_for_an_aligned_array_in_warmup():
    assert signature(np.float16)[0] == "*fp16:16"
    assert signature(np.dtype(np.int8))[0] == "*i8:16"
    assert signature(tl.bfloat16)[0] == "*bf16:16"
    with pytest.raises(TypeError, match="no memory"):
        nothing[(1,)](np.float16)


def test_dlpack():
    class Exporter:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **kwargs):
            return self.array.__dlpack__(**kwargs)

    data = aligned(8, np.float32)
    data[:] = 2
    assert signature(Exporter(data))[0] == "*fp32:16"
    kernel[(1,)](Exporter(data[2:]), 3, 4.0, BLOCK=4)
    assert data.tolist() == [2, 2, 8, 8, 8, 2, 2, 2]


def test_reinterpret():
    data = aligned(4, np.int16)
    assert signature(triton.reinterpret(data, tl.float16))[0] == "*fp16:16"
    assert signature(triton.reinterpret(data, ml_dtypes.bfloat16))[0] == "*bf16:16"


def test_annotations_fix_types():
    @triton.jit
    def annotated(a: tl.int64, b: "fp16", c: tl.const, d: "*kfp32", e: tl.uint8 = 1):  # noqa: F722, F821
        pass

    x = aligned(4, np.float32)
    assert signature(1, 2.5, x, x, of=annotated) == ["i64", "fp16", "*kfp32:16", "*kfp32:16", "u8"]
    assert signature(32, 2, x, x, 16, of=annotated)[0] == "i64:16"
    with pytest.raises(OverflowError, match="'e' is 256"):
        signature(1, 2.0, x, x, 256, of=annotated)


def test_do_not_specialize():
    @triton.jit(do_not_specialize=["a"], do_not_specialize_on_alignment=[1])
    def plain(a, b, c):
        pass

    x = aligned(4, np.float32)
    assert signature(1, 1, 1, of=plain) == ["i32", "1/constexpr", "1/constexpr"]
    assert signature(16, 16, 16, of=plain) == ["i32", "i32", "i32:16"]
    assert signature(x, x, x, of=plain) == ["*fp32", "*fp32", "*fp32:16"]

    @triton.jit(do_not_specialize=["z", "first"])
    def wrong(frist):
        pass

    with pytest.warns(UserWarning) as said:
        wrong[(1,)](1)
    assert "no parameter is named 'z'" in str(said[0].message) and "did you mean 'frist'" in str(
        said[1].message
    )


def test_a_place_warns_once():
    @triton.jit
    def chooses(x, N: tl.constexpr):
        i = tl.arange(0, N)
        for step in tl.static_range(3):
            tl.store(x + i, tl.where(i & 1, i, step))

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for dtype in (np.int32, np.int64):
            chooses[(1,)](np.zeros(32, dtype), 32)
    assert ["the condition of tl.where" in str(w.message) for w in said] == [True]
    assert said[0].filename == __file__
    # A program that wants each of them has them.
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        chooses[(1,)](np.zeros(32, np.float32), 32)
    assert len(said) == 3


def test_equal_calls_share_a_kernel_and_others_do_not():
    @triton.jit
    def f(a, C: tl.constexpr):
        pass

    def compiled(*args, **kwargs):
        return f[(1,)](*args, **kwargs)

    assert compiled(2, 3) is compiled(5, C=3)
    different = [
        (2, 3),
        (2, 4),
        (2, 3.0),
        (2, True),
        (2, "3"),
        (2, None),
        (2, (3,)),
        (2, (3, (4,))),
        (2, ((3, 4),)),
        (2, tl.float32),
        (2, 0.0),
        (2, -0.0),
        (2**40, 3),
        (16, 3),
        (1, 3),
        (2.0, 3),
    ]
    kernels = {id(compiled(*args)) for args in different}
    assert len(kernels) == len(different)
    assert compiled(2, 3, num_warps=8) is not compiled(2, 3)
    assert compiled(2, tl.constexpr(3)) is compiled(2, 3)
    assert len(f.compiled_kernels) == len(different) + 1


def test_a_grid_may_be_a_number_a_sequence_or_a_function():
    seen = []

    @triton.jit
    def count_with(x, N: tl.constexpr):
        tl.atomic_add(x, 1)

    def programs(grid):
        x = np.zeros(1, np.int32)
        count_with[grid](x, N=5)
        return int(x[0])

    def function(meta):
        seen.append(dict(meta))
        return (meta["N"],)

    assert programs((3,)) == 3
    assert programs(3) == 3
    assert programs([2, 3]) == 6
    assert programs((2, 3, 4)) == 24
    assert programs((np.int64(2),)) == 2
    assert programs(function) == 5
    assert set(seen[0]) == {"x", "N"}
    assert programs((0,)) == 0
    assert programs((3, 0)) == 0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: kernel[(1,)](x, 1), TypeError, "needs a value for 'scale', 'BLOCK' (a tl.constexpr)"),
        (lambda x: kernel[(1,)](x, 1, 2, 3, 4, 5), TypeError, "takes 5 arguments but was given 6"),
        (lambda x: kernel[(1,)](x, 1, 2, 4, BLOCK=4), TypeError, "two values for argument 'BLOCK'"),
        (lambda x: kernel[(1,)](x, 1, 2, BLOK=4), TypeError, "did you mean 'BLOCK'?"),
        (lambda x: kernel[(1,)](x, 1, 2, 4, num_warp=4), TypeError, "did you mean 'num_warps'?"),
        (lambda x: kernel[(1,)](x, 1, 2, 4, num_warps=3), ValueError, "it must be 1, 2, 4, 8, 16 or 32"),
        (lambda x: kernel[(1,)](x, 1, 2, 4, num_warps="4"), ValueError, "num_warps is '4'"),
        (lambda x: kernel[(1,)](x, 1, 2, 4, num_stages=-1), ValueError, "num_stages"),
        (lambda x: kernel[(-1,)](x, 1, 2, 4), ValueError, "negative: dimension 0 is -1"),
        (lambda x: kernel[(1, 2**31)](x, 1, 2, 4), ValueError, "too large: dimension 1"),
        (lambda x: kernel[(2**80,)](x, 1, 2, 4), ValueError, "too large: dimension 0"),
        (
            lambda x: kernel.warmup(x, 1, 2, 4, grid=(1,), target=5),
            TypeError,
            "a target is a name or a GPUTarget",
        ),
        (lambda x: kernel[()](x, 1, 2, 4), TypeError, "must be one to three integers"),
        (lambda x: kernel[(1, 1, 1, 2)](x, 1, 2, 4), TypeError, "must be one to three integers"),
        (lambda x: kernel[(1.5,)](x, 1, 2, 4), TypeError, "must be one to three integers"),
        (lambda x: kernel[None](x, 1, 2, 4), TypeError, "must be one to three integers"),
        (lambda x: kernel[lambda meta: "no"](x, 1, 2, 4), TypeError, "must be one to three integers"),
        (lambda x: kernel(x, 1, 2, 4), RuntimeError, "the grid is missing"),
        (lambda x: kernel[(1,)]({}, 1, 2, 4), TypeError, "argument 'x' has type dict"),
        (lambda x: kernel[(1,)](x, 2**64, 2, 4), OverflowError, "argument 'n'"),
        (
            lambda x: kernel[(1,)](x, 1, 2, 4, 10**50),
            OverflowError,
            "argument 'flag': a constant of a kernel is an integer of 167 bits",
        ),
        (lambda x: kernel[(1,)](x.astype(complex), 1, 2, 4), TypeError, "complex128"),
        (lambda x: kernel[(1,)](x.astype(">f4"), 1, 2, 4), TypeError, "byte order"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(call, error, words):
    with pytest.raises(error) as caught:
        call(np.zeros(4, np.float32))
    lines = str(caught.value).splitlines()
    # The line of the call is shown too, and holds the words: they must stand in the message or the help.
    assert any(words in line for line in lines if line.startswith("error: ") or " = help: " in line), (
        caught.value
    )
    assert f"--> {__file__}:" in lines[1]
    assert any(set(line) <= set(" |^") and "^" in line for line in lines)


def test_an_exception_of_the_grid_function_comes_through():
    def grid(meta):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        kernel[grid](np.zeros(4, np.float32), 1, 2, 4)


def test_an_unknown_backend_is_named(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "abacus")
    with pytest.raises(ValueError, match="abacus"):
        nothing[(1,)](2)


def test_only_functions_are_kernels():
    with pytest.raises(TypeError, match="decorates a function"):
        triton.jit(3)

    @triton.jit
    def variadic(*args):
        pass

    with pytest.raises(TypeError, match="fixed list of parameters"):
        variadic[(1,)](1)


def test_a_kernel_is_collected_with_its_closure():
    def make():
        factor = tl.constexpr(3)

        @triton.jit
        def scaled(x):
            tl.store(x, tl.load(x) * factor)

        x = np.ones(1, np.int32)
        scaled[(1,)](x)
        assert x[0] == 3
        return weakref.ref(scaled)

    ref = make()
    gc.collect()
    assert ref() is None


def test_named_tuples_of_equal_types_are_not_confused():
    Forward = collections.namedtuple("Forward", ["first", "second"])
    Backward = collections.namedtuple("Backward", ["second", "first"])

    @triton.jit
    def difference(x, pair):
        tl.store(x, pair.first - pair.second)

    x = np.zeros(1, np.int32)
    for pair, expected in ((Forward(5, 3), 2), (Backward(5, 3), -2), (Forward(7, 3), 4)):
        difference[(1,)](x, pair)
        assert x[0] == expected


def test_a_module_that_is_dropped_is_collected_with_its_kernels(tmp_path):
    source = tmp_path / "some_kernels.py"
    source.write_text(
        "import tilewright as triton\nimport tilewright.language as tl\nN = tl.constexpr(3)\n"
        "@triton.jit\ndef kernel(x):\n    tl.store(x, N)\n"
    )
    spec = importlib.util.spec_from_file_location("some_kernels", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = np.zeros(1, np.int32)
    module.kernel[(1,)](x)
    assert x[0] == 3
    ref = weakref.ref(module.kernel)
    del module, spec
    gc.collect()
    assert ref() is None


def test_a_compiled_kernel_launches_by_itself():
    x = np.ones(4, np.float32)
    compiled = kernel.warmup(x, 4, 2.0, BLOCK=4, grid=(1,))
    assert x.tolist() == [1, 1, 1, 1]
    compiled[(1,)](x, 3, 2.0, 4, True)
    assert x.tolist() == [2, 2, 2, 1]
    compiled[(1,)](x, 3, 2.0)
    assert x.tolist() == [4, 4, 4, 1]
    with pytest.raises(TypeError, match="5 arguments, 3 of which"):
        compiled[(1,)](x)
    assert "tt.func" in compiled.asm["ttir"]
    assert compiled.metadata.num_warps == 4
    assert compiled.name


def test_introspection():
    assert kernel.arg_names == ["x", "n", "scale", "BLOCK", "flag"]
    assert kernel.constexprs == [3, 4]
    assert kernel.__name__ == "kernel"
    assert kernel.src.startswith("def kernel(")
    assert [p.is_constexpr for p in kernel.params] == [False, False, False, True, True]


def test_host_functions():
    assert triton.cdiv(7, 2) == 4
    assert [triton.next_power_of_2(n) for n in (0, 1, 2, 3, 1000)] == [0, 1, 2, 4, 1024]
    # As products of shapes are.
    assert triton.next_power_of_2(np.prod((5, 7))) == 64


def test_a_forked_process_runs_kernels_too():
    x = np.ones(1000, np.float32)
    kernel[(1,)](x, 1000, 2.0, BLOCK=1024)  # the executor's threads are there now
    count[(64,)](np.zeros(1, np.int32))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        total = np.zeros(1, np.int32)
        count[(64,)](total)
        os.write(writing, bytes([int(total[0])]))
        os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], 60)
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert ready, "the child waits for threads that it has not got"
    assert os.read(reading, 1) == b"\x40"


def test_ctrl_c_ends_a_kernel():
    @triton.jit
    def forever(x):
        while tl.load(x) == 0:
            tl.atomic_add(x + 1, 1)

    # A process that a shell started in the background ignores the signal, and then Python sets no handler by itself.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            forever[(1,)](np.zeros(2, np.int32))
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)


@triton.jit
def times(value, FACTOR: tl.constexpr):
    return value * FACTOR


@triton.jit
def replaced(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, EXPRESSION(tl.load(x + at), 2))  # noqa: F821


def test_replaced_source():
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    for expression, want in (("times", 2 * x), ("FACTOR * 0 +", None), ("tl.minimum", np.minimum(x, 2))):
        kernel = triton.JITFunction(replaced.fn)
        kernel._unsafe_update_src(kernel.src.replace("EXPRESSION", expression))
        if want is None:
            with pytest.raises(triton.CompilationError, match="FACTOR"):
                kernel[(1,)](x, y, BLOCK=8)
        else:
            kernel[(1,)](x, y, BLOCK=8)
            np.testing.assert_array_equal(y, want)
    # A kernel that ran, too, and the function that it was made from is what it was.
    kernel._unsafe_update_src(kernel.src.replace("2)", "3)"))
    kernel[(1,)](x, y, BLOCK=8)
    np.testing.assert_array_equal(y, np.minimum(x, 3))
    assert "EXPRESSION" in replaced.src
    # Errors name the line of the file.
    kernel._unsafe_update_src(replaced.src)
    with pytest.raises(triton.CompilationError, match=f":{replaced.fn.__code__.co_firstlineno + 3}"):
        kernel[(1,)](x, y, BLOCK=8)


def test_cache_key():
    keys = set()
    for factor in ("FACTOR", "FACTOR + 1"):
        inner = triton.JITFunction(times.fn)
        inner._unsafe_update_src(times.src.replace("* FACTOR", f"* ({factor})"))
        outer = triton.JITFunction(calls_times.fn)
        outer.fn.__globals__["inner_times"] = inner
        assert outer.cache_key == outer.cache_key and outer.cache_key != inner.cache_key
        keys.add(outer.cache_key)
    assert len(keys) == 2


@triton.jit
def calls_times(x):
    tl.store(x, inner_times(tl.load(x), 2))  # noqa: F821


def test_names_that_programs_use():
    assert "int32" in tl.dtype.SINT_TYPES and "int1" in tl.dtype.UINT_TYPES
    for name in tl.dtype.SINT_TYPES + tl.dtype.UINT_TYPES:
        assert tl.dtype(name).is_int()
    assert all(tl.dtype(name).is_floating() for name in tl.dtype.FP_TYPES)
    assert issubclass(triton.runtime.errors.InterpreterError, triton.TritonError)
    values = (tl.tensor, tl.tensor_descriptor, tl.constexpr, tl.core.tuple)
    assert all(issubclass(value, tl.core.base_value) for value in values)
    types = (tl.dtype, tl.block_type, tl.constexpr_type, tl.core.tuple_type, tl.tensor_descriptor_type)
    assert all(issubclass(ty, tl.core.base_type) for ty in types)
    block = tl.block_type(tl.float16, [4, 8])
    assert tl.tensor_descriptor_type(block, 1, 2) == tl.tensor_descriptor_type(block, 1, 2)
    assert tl.tensor_descriptor_type(block, 1, 2) != tl.tensor_descriptor_type(block, 2, 2)


def test_names_of_types_in_signatures():
    from tilewright import _utils

    assert [_utils.canonicalize_dtype(n) for n in ("torch.float8_e4m3fn", "bool", "half", "uint16")] == [
        "fp8e4nv",
        "u1",
        "fp16",
        "u16",
    ]
    assert _utils.canonicalize_dtype(tl.bfloat16) == "bf16"
    assert _utils.canonicalize_ptr_dtype("int64", is_const=True) == "*ki64"
    bits = {
        "bool": 1,
        "int": 32,
        "fp8e5": 8,
        "float8_e5m2": 8,
        "bfloat16": 16,
        "double": 64,
        "void": 0,
        "u16": 16,
    }
    assert {name: _utils.get_primitive_bitwidth(name) for name in bits} == bits
    assert _utils.validate_block_shape([4, 6]) == 24
    with pytest.raises(ValueError, match="1048576"):
        _utils.validate_block_shape([2048, 1024])
    with pytest.raises(TypeError, match="extent 1"):
        _utils.validate_block_shape([2, 1.5])


@triton.jit
def classes_of_values(x, n: tl.constexpr):
    tl.static_assert(isinstance(tl.load(x), tl.core.base_value))
    tl.static_assert(isinstance((x, n), tl.core.base_value))
    tl.static_assert(not isinstance(n, tl.core.base_value))
    tl.static_assert(isinstance(x.dtype, tl.core.base_type))
    tl.static_assert(not isinstance(x, tl.core.tensor_descriptor_base))


def test_classes_of_values():
    classes_of_values[(1,)](np.zeros(1, np.float32), 3)


@triton.jit(launch_metadata=lambda grid, metadata, args: {"programs": grid[0], "bytes": args["x"].nbytes})
def hooked(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) + 1, mask=at < n)


@pytest.fixture
def launch_hooks():
    runtime = triton.knobs.runtime
    yield runtime
    runtime.launch_enter_hook = runtime.launch_exit_hook = None


def test_launch_hooks(launch_hooks):
    x, seen = np.zeros(64, np.float32), []

    def enter(metadata):
        seen.append(("enter", x[0], metadata.get()))

    def leave(metadata):
        seen.append(("exit", x[0], metadata.get()["name"]))

    def second(metadata):
        seen.append("second")

    hooked[(4,)](x, 64, BLOCK=16)
    launch_hooks.launch_enter_hook.add(enter)
    launch_hooks.launch_enter_hook.add(enter)
    launch_hooks.launch_exit_hook.add(leave)
    launch_hooks.launch_exit_hook.add(second)
    compiled = hooked[(4,)](x, 64, BLOCK=16)
    wanted = {"name": "hooked", "stream": None, "programs": 4, "bytes": 256}
    assert seen == [("enter", 1, wanted), "second", ("exit", 2, "hooked")]
    launch_hooks.launch_exit_hook = None
    seen.clear()
    compiled[(4,)](x, 64, 16)
    assert seen == [("enter", 2, {"name": "hooked", "stream": None})]
    launch_hooks.launch_enter_hook.remove(enter)
    hooked[(4,)](x, 64, BLOCK=16)
    assert len(seen) == 1 and x[0] == 4
    # Only launches are seen, and an error in a hook is the caller's.
    launch_hooks.launch_enter_hook = lambda metadata: 1 // 0
    hooked.warmup(x, 64, BLOCK=16)
    with pytest.raises(ZeroDivisionError):
        hooked[(4,)](x, 64, BLOCK=16)
    assert x[0] == 4
