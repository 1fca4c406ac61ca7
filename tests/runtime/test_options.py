"""Options of a launch: which there are, what they may be, and that each does what it says."""

import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import _tilewright

FACTOR = 3


@triton.jit
def dot(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = x + i[:, None] * BLOCK + i[None, :]
    tl.store(at, tl.dot(tl.load(at), tl.load(at)))


@triton.jit
def says_itself(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = x + i[:, None] * BLOCK + i[None, :]
    tl.store(at, tl.dot(tl.load(at), tl.load(at), input_precision="tf32x3"))


@triton.jit
def add_one(x):
    tl.store(x, tl.load(x) + 1)


@triton.jit
def reads_a_global(x):
    tl.store(x, FACTOR)


@triton.jit
def dot_of_fp8(x, DTYPE: tl.constexpr):
    i = tl.arange(0, 32)
    at = x + i[:, None] * 32 + i[None, :]
    operand = tl.load(at).to(DTYPE)
    tl.store(at, tl.dot(operand, operand))


@triton.jit
def reads_fp8(x):
    tl.store(x, tl.load(x))


def ttir(kernel, *args, **options):
    return kernel.warmup(*args, target="cuda:90", **options).asm["ttir"]


def test_the_precision_of_dots_that_do_not_say_one():
    text = {p: ttir(dot, tl.float32, 32, default_dot_input_precision=p) for p in ("tf32", "ieee", "bf16x3")}
    assert "inputPrecision = tf32 " in text["tf32"] and text["tf32"] == ttir(dot, tl.float32, 32)
    assert "inputPrecision" not in text["ieee"]  # which the text leaves out
    assert "inputPrecision = bf16x3" in text["bf16x3"]
    assert "inputPrecision = tf32x3" in ttir(says_itself, tl.float32, 32, default_dot_input_precision="IEEE")


def test_the_precision_of_dots_on_the_cpu(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    # 1 + 2**-20 is 1 in tf32.
    rounded, exact = (np.full((16, 16), 1 + 2**-20, np.float32) for _ in range(2))
    dot[(1,)](rounded, 16)
    dot[(1,)](exact, 16, default_dot_input_precision="ieee")
    assert (rounded == 16).all() and (exact > 16).all()


def test_the_precisions_that_dots_may_have():
    assert "inputPrecision" not in ttir(dot, tl.float32, 32, allowed_dot_input_precisions=("ieee",))
    allowed = ["tf32x3", "IEEE"]
    assert "inputPrecision = tf32x3" in ttir(
        says_itself, tl.float32, 32, allowed_dot_input_precisions=allowed
    )
    refused = [
        (says_itself, {"allowed_dot_input_precisions": ("tf32", "ieee")}, '"tf32x3"'),
        (dot, {"allowed_dot_input_precisions": ("tf32x3",)}, '"ieee"'),
        (
            dot,
            {"allowed_dot_input_precisions": ("ieee",), "default_dot_input_precision": "bf16x3"},
            '"bf16x3"',
        ),
    ]
    for kernel, options, word in refused:
        with pytest.raises(triton.CompilationError, match=f"`input_precision` of tl.dot is {word}"):
            kernel.warmup(tl.float32, 32, target="cuda:90", **options)


def test_the_dtypes_of_8_bits_that_kernels_may_have():
    kernel = dot_of_fp8.warmup(tl.float32, tl.float8e5, target="cuda:90", supported_fp8_dtypes=["fp8e5"])
    assert kernel.metadata.supported_fp8_dtypes == ["fp8e5"]
    for kernel, args in ((dot_of_fp8, (tl.float32, tl.float8e4nv)), (reads_fp8, (tl.float8e4nv,))):
        kernel.warmup(*args, target="cuda:80")
        with pytest.raises(triton.CompilationError, match="fp8e4nv not supported in this arch") as caught:
            kernel.warmup(*args, target="cuda:80", supported_fp8_dtypes=("fp8e5", "fp8e4b15"))
        assert "('fp8e5', 'fp8e4b15')" in str(caught.value.__cause__)


def test_the_dtypes_of_8_bits_that_dots_warn_of(monkeypatch):
    def warnings_of(dtype, target, **options):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dot_of_fp8.warmup(tl.float32, dtype, target=target, **options)
        return [str(w.message) for w in caught if "deprecated" in str(w.message)]

    assert "use of fp8e4b15 is deprecated" in warnings_of(tl.float8e4b15, "cuda:90")[0]
    assert not warnings_of(tl.float8e4b15, "cuda:80") and not warnings_of(tl.float8e5, "cuda:90")
    assert not warnings_of(tl.float8e4b15, "cuda:90", deprecated_fp8_dot_operand_dtypes=())
    assert warnings_of(tl.float8e5, "cuda:80", deprecated_fp8_dot_operand_dtypes=("fp8e5",))


def test_how_many_products_are_added_up_imprecisely():
    def attribute(dtype, **options):
        text = ttir(dot_of_fp8, tl.float32, dtype, **options)
        return re.findall(r"maxNumImpreciseAcc = (\d+)", text)

    assert attribute(tl.float8e5) == []
    for n in (0, 32, 2**30):
        assert attribute(tl.float8e5, max_num_imprecise_acc_default=n) == ([str(n)] if n else ["0"])
    assert attribute(tl.float16, max_num_imprecise_acc_default=32) == []


def test_overflow_is_checked_in_debugging_unless_it_is_not_wanted(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    largest = np.array([2**31 - 1], np.int32)
    with pytest.raises(triton.TilewrightError, match="overflow"):
        add_one[(1,)](largest, debug=True)
    add_one[(1,)](largest, debug=True, sanitize_overflow=False)
    assert largest[0] == -(2**31)


def test_globals_that_are_no_constants(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    x = np.zeros(1, np.int32)
    with pytest.raises(triton.CompilationError, match="FACTOR"):
        reads_a_global[(1,)](x)
    reads_a_global[(1,)](x, allow_non_constexpr_globals=True)
    assert x[0] == 3


def test_line_info():
    assert ".loc" in add_one.warmup(tl.int32, target="cuda:90").asm["ptx"]
    assert ".loc" not in add_one.warmup(tl.int32, target="cuda:90", line_info=False).asm["ptx"]


def test_none_is_the_default():
    options = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "debug", "launch_pdl")
    plain = add_one.warmup(tl.int32, target="cuda:90")
    assert add_one.warmup(tl.int32, target="cuda:90", **dict.fromkeys(options)) is plain
    assert (plain.metadata.num_warps, plain.metadata.num_stages, plain.metadata.maxnreg) == (4, 3, None)
    assert plain.metadata.default_dot_input_precision == "tf32"


def test_what_only_the_launch_reads_is_that_of_the_launch(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    plain = add_one.warmup(tl.int64, target="cuda:90")
    early = add_one.warmup(tl.int64, target="cuda:90", launch_pdl=True)
    assert "ptx" in plain.times and "ptx" not in early.times  # it came from the cache
    assert (plain.metadata.launch_pdl, early.metadata.launch_pdl) == (False, True)


@pytest.mark.parametrize("name", ["num_warps", "num_ctas"])
def test_more_than_hardware_has_is_out_of_resources(name):
    with pytest.raises(triton.OutOfResources, match=f"{name} is 128"):
        add_one.warmup(tl.int32, target="cuda:90", **{name: 128})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_warps": 12}, "it must be 1, 2, 4, 8, 16 or 32"),
        ({"num_stages": 65}, "it must be an integer from 0 to 64"),
        ({"num_ctas": 3}, "it must be 1, 2, 4 or 8"),
        ({"maxnreg": 0}, "it must be an integer from 1 to 65535"),
        ({"num_stages": 2**80}, f"num_stages is {2**80}"),
        ({"default_dot_input_precision": "fp8"}, "'tf32', 'tf32x3', 'ieee', 'bf16x3' or 'bf16x6'"),
        ({"default_dot_input_precision": 3}, "default_dot_input_precision is 3"),
        (
            {"supported_fp8_dtypes": ("fp16",)},
            "a tuple of 'fp8e5', 'fp8e5b16', 'fp8e4nv', 'fp8e4b8' or 'fp8e4b15'",
        ),
        ({"allowed_dot_input_precisions": 3}, "allowed_dot_input_precisions is 3"),
        ({"max_num_imprecise_acc_default": -1}, "it must be an integer from 0 to 1073741824"),
        ({"ptx_version": 9}, "it must be an integer from 60 to 99"),
        ({"ptx_options": 3}, "it must be arguments separated by spaces"),
        ({"extern_libs": {"libdevice": "/no"}}, "the library libdevice is no file: /no"),
        ({"extern_libs": {"mine": "/no"}}, "the library mine is no file: /no"),
        ({"extern_libs": 3}, "it must be names and paths"),
        ({"extern_libs": "mine"}, "extern_libs is 'mine'"),
        ({"warp_size": 64}, "not supported yet: warp_size=64"),
    ],
)
def test_a_wrong_option_is_an_error_at_the_call(options, words):
    with pytest.raises(ValueError) as caught:
        add_one.warmup(tl.int32, target="cuda:90", **options)
    assert words in str(caught.value)
    assert f"--> {__file__}:" in str(caught.value)


@triton.jit
def loop_of(x, n, STAGES: tl.constexpr, UNROLL: tl.constexpr, FLATTEN: tl.constexpr):
    for i in tl.range(n, num_stages=STAGES, loop_unroll_factor=UNROLL, flatten=FLATTEN):
        tl.store(x + i, 1)


@pytest.mark.parametrize(
    ("hints", "words"),
    [
        ((65, None, False), "num_stages must be 0 to 64, not 65"),
        ((-1, None, False), "num_stages must be 0 to 64, not -1"),
        ((10**30, None, False), "num_stages must be 0 to 64, not 10"),
        (("2", None, False), "`num_stages` of tl.range must be a constant integer, not '2'"),
        ((2.5, None, False), "`num_stages` of tl.range must be a constant integer"),
        ((None, 0, False), "loop_unroll_factor must be 1 to 1024, not 0"),
        ((None, None, "no"), "`flatten` of tl.range must be True or False, not 'no'"),
        ((None, None, 0.5), "`flatten` of tl.range must be True or False"),
        ((None, None, ()), "`flatten` of tl.range must be True or False"),
    ],
)
def test_a_wrong_hint_of_a_loop_is_an_error(hints, words):
    loop_of.warmup(tl.int32, 7, 64, 2, True, target="cuda:90")
    with pytest.raises(triton.CompilationError) as caught:
        loop_of.warmup(tl.int32, 7, *hints, target="cuda:90")
    assert words in str(caught.value) and "tl.range(n" in str(caught.value)


@triton.jit
def product_of(x, y, out, n, ALLOW: tl.constexpr, IMPRECISE: tl.constexpr, OUT: tl.constexpr):
    i = tl.arange(0, 32)
    at = i[:, None] * 32 + i[None, :]
    allow = (n > 3) if ALLOW == "later" else ALLOW
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, tl.dot(a, b, allow_tf32=allow, max_num_imprecise_acc=IMPRECISE, out_dtype=OUT))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("later", None, tl.float32), "`allow_tf32` of tl.dot must be known at compile time"),
        (("yes", None, tl.float32), "`allow_tf32` of tl.dot must be True or False, not 'yes'"),
        ((None, -1, tl.float32), "max_num_imprecise_acc (-1) must be >= 0"),
    ],
)
def test_wrong_arguments_of_a_product_are_errors(given, words):
    with pytest.raises(triton.CompilationError) as caught:
        product_of.warmup(tl.float32, tl.float32, tl.float32, 7, *given, target="cuda:90")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("operand", "out", "warned"),
    [
        (tl.bfloat16, tl.float16, "out_dtype of tl.dot is fp16, but a product of bf16 is fp32"),
        (tl.float32, tl.float16, "out_dtype of tl.dot is fp16, but a product of fp32 is fp32"),
        (tl.int8, tl.float16, "out_dtype of tl.dot is fp16, but a product of int8 is int32"),
        (tl.int8, tl.int32, None),
        (tl.float16, tl.float16, None),
        (tl.float64, tl.float32, None),
    ],
)
def test_a_dtype_that_a_product_cannot_have_is_warned_of(operand, out, warned):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        product_of.warmup(operand, operand, tl.float32, 7, None, None, out, target="cuda:80")
    said = [str(w.message) for w in caught if "out_dtype" in str(w.message)]
    assert len(said) == (warned is not None) and all(warned in message for message in said)


@triton.jit
def sum_of_products(a, b, total, K, WARPS: tl.constexpr, FLATTEN: tl.constexpr):
    i = tl.arange(0, 64)
    for k in tl.range(0, K, 64, warp_specialize=WARPS, flatten=FLATTEN):
        x = tl.load(a + i[:, None] * K + k + i[None, :])
        total = tl.dot(x, tl.load(b + (k + i[:, None]) * 64 + i[None, :]), total)
    return total


@triton.jit
def hinted_loop(a, b, out, K, WARPS: tl.constexpr, FLATTEN: tl.constexpr, AGAIN: tl.constexpr):
    i = tl.arange(0, 64)
    total = tl.zeros((64, 64), tl.float32)
    if AGAIN:
        turns = K
        while turns > 0:
            turns -= 64
            total = sum_of_products(a, b, total, K, WARPS, FLATTEN)
    else:
        total = sum_of_products(a, b, total, K, WARPS, FLATTEN)
    tl.store(out + i[:, None] * 64 + i[None, :], total)


@pytest.mark.parametrize(
    ("target", "hints", "why"),
    [
        ("cuda:80", (True, False, False), "warp_specialize=True) changes nothing: cuda:80 has no TMA"),
        (
            "cuda:90",
            (True, False, True),
            "warp_specialize=True) changes nothing: it stands in a `while` loop",
        ),
        ("cuda:90", (False, True, False), "flatten=True) changes nothing: there is no loop inside of it"),
        ("cuda:90", (True, False, False), None),
        ("cuda:90", (False, False, False), None),
    ],
)
def test_a_hint_of_a_loop_that_changes_nothing_leaves_a_remark(target, hints, why):
    kernel = hinted_loop.warmup(tl.float16, tl.float16, tl.float32, 1024, *hints, target=target)
    remarks = [remark for remark in kernel.metadata.remarks if "changes nothing" in remark]
    assert len(remarks) == (why is not None)
    assert all(why in remark and remark.startswith(f"{__file__}:") for remark in remarks)


def test_a_hint_that_intel_s_gpus_have_no_use_for_leaves_a_remark(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "xesim")
    a, b, out = np.ones((64, 64), np.float16), np.ones((64, 64), np.float16), np.zeros((64, 64), np.float32)
    kernel = hinted_loop[(1,)](a, b, out, 64, True, False, False, num_warps=4)
    assert any("has no warps that load for others" in remark for remark in kernel.metadata.remarks)
    assert (out == 64).all()


@triton.jit
def copied_with_hints(x, out, CACHE: tl.constexpr, POLICY: tl.constexpr):
    i = tl.arange(0, 64)
    tl.store(out + i, tl.load(x + i, cache_modifier=CACHE, eviction_policy=POLICY), eviction_policy=POLICY)


@pytest.mark.parametrize(
    ("hints", "remarks"),
    [
        (("", ""), 0),
        ((".cg", ""), 1),
        (("", "evict_last"), 2),
        ((".cg", "evict_first"), 3),
        ((".cv", ""), 0),
    ],
)
def test_hints_to_caches_leave_remarks_on_intel_s_gpus(monkeypatch, hints, remarks):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "xesim")
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernel = copied_with_hints[(1,)](x, out, *hints)
    assert (out == x).all()
    assert len([r for r in kernel.metadata.remarks if "changes nothing on xe:" in r]) == remarks


@pytest.mark.parametrize(("name", "value"), [("ptx_options", "--opt-level 1"), ("ptx_version", 84)])
def test_options_of_ptx_are_refused_where_there_is_none(monkeypatch, name, value):
    x = np.zeros(1, np.int32)
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "xesim")
    with pytest.raises(triton.TilewrightError, match=f"not supported yet: {name}=.* for xe:"):
        add_one[(1,)](x, **{name: value})
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    add_one[(1,)](x, **{name: value})
    assert x[0] == 1


@triton.jit
def padded_block(x, out, n, CHECKED: tl.constexpr):
    block = tl.make_block_ptr(x, (n, n), (n, 1), (0, 0), (16, 16), (1, 0))
    i = tl.arange(0, 16)
    loaded = tl.load(block, boundary_check=CHECKED, padding_option="nan")
    tl.store(out + i[:, None] * 16 + i[None, :], loaded)


@pytest.mark.parametrize("checked", [(0, 1), (), None])
def test_padding_of_what_is_not_checked_is_warned_of(checked):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        padded_block.warmup(tl.float32, tl.float32, 7, checked, target="cuda:80")
    assert any("boundary_check names no dimension" in str(w.message) for w in caught) == (not checked)


@triton.jit
def assumes(x, n, WHAT: tl.constexpr):
    if WHAT == "float":
        tl.assume(n * 1.5)
    else:
        tl.assume(WHAT)
    tl.store(x, n)


@pytest.mark.parametrize("what", ["float", "text", 2.5, (1, 2)])
def test_what_is_assumed_is_a_condition(what):
    with pytest.raises(triton.CompilationError, match=r"`cond` of tl\.assume must be a condition"):
        assumes.warmup(tl.int32, 7, what, target="cuda:90")


def test_options_of_another_backend_are_unknown():
    with pytest.raises(TypeError, match="unknown keyword argument 'waves_per_eu'"):
        add_one.warmup(tl.int32, target="cuda:90", waves_per_eu=2)


def test_options_that_ask_for_nothing_are_accepted():
    plain = add_one.warmup(tl.int32, target="cuda:90")
    assert (
        add_one.warmup(tl.int32, target="cuda:90", warp_size=32, ptx_version=None, extern_libs=None) is plain
    )


def test_a_launch_takes_the_architecture_that_is_not_given():
    x = np.zeros(1, np.int32)
    assert add_one[(1,)](x, arch=None) is add_one[(1,)](x)
    with pytest.raises(ValueError, match="not supported yet: arch='sm90'"):
        add_one[(1,)](x, arch="sm90")


def test_the_libdevice_that_is_linked_anyway_may_be_named(tmp_path):
    ours = [fact for name, fact in _tilewright.made_with("cuda:90") if name == "libdevice"]
    path = next(Path(sys.prefix).rglob("libdevice.10.bc"), None)
    if path is None or "none" in ours:
        pytest.skip("there is no libdevice")
    copy = tmp_path / "libdevice.10.bc"
    copy.write_bytes(path.read_bytes())
    plain = add_one.warmup(tl.int32, target="cuda:90")
    for libraries in ({}, {"libdevice": str(path)}, {"libdevice": copy}):
        assert add_one.warmup(tl.int32, target="cuda:90", extern_libs=libraries) is plain


def test_the_version_of_ptx_is_the_one_asked_for_or_an_error():
    def version(capability, **options):
        ptx = add_one.warmup(tl.int32, target=f"cuda:{capability}", **options).asm["ptx"]
        return next(line for line in ptx.splitlines() if line.startswith(".version"))

    assert version(90, ptx_version=84) == ".version 8.4" != version(90)
    assert version(120, ptx_version=88) == ".version 8.8" != version(120)
    with pytest.raises(
        triton.CompilationError,
        match=r"(?s)ptx_version is 70, but `add_one` has instructions of PTX 8\.\d.*ask for 8",
    ):
        version(90, ptx_version=70)


def test_arguments_of_ptxas():
    with pytest.raises(Exception, match="no-such-thing"):
        add_one.warmup(tl.int32, target="cuda:90", ptx_options="--no-such-thing")
    plain = dot.warmup(tl.float32, 32, target="cuda:90")
    other = dot.warmup(tl.float32, 32, target="cuda:90", ptx_options="--opt-level 0")
    assert other.asm["ptx"] == plain.asm["ptx"] and other.asm["cubin"] != plain.asm["cubin"]
    assert dot.warmup(tl.float32, 32, target="cuda:90", ptx_options="--opt-level 0") is other


@triton.jit
def two_products(a, b, c, d, out, K, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr):
    total = tl.zeros([M, N], tl.float32)
    for k in range(0, K, STEP):
        total = tl.dot(a.load([0, k]), b.load([k, 0]), total)
        total = tl.dot(c.load([0, k]), d.load([k, 0]), total)
    out.store([0, 0], total)


@pytest.mark.parametrize("stages", [2, 4])
def test_a_loop_that_needs_too_much_shared_memory_has_fewer_stages(stages):
    """Two slots of 96 KiB and what turns `b` and `d` round, 32 KiB each, do not fit into 227."""

    def compiled(step, num_stages):
        types = [f"tensordesc<fp32[64, {step}]>", f"tensordesc<fp32[{step}, 128]>"] * 2
        signature = dict(zip("abcd", types)) | {"out": "tensordesc<fp32[64, 128]>", "K": "i32"}
        signature |= dict.fromkeys(["M", "N", "STEP"], "constexpr")
        source = triton.compiler.ASTSource(two_products, signature, {"M": 64, "N": 128, "STEP": step})
        return triton.compile(source, target="cuda:90", options={"num_stages": num_stages})

    kernel = compiled(64, stages)
    assert 0 < kernel.metadata.shared <= 227 << 10
    assert kernel.metadata.num_stages == stages
    with pytest.raises(
        triton.OutOfResources, match=r"(?s)too much shared memory.*bytes: buffer of 512x128xf32"
    ):
        compiled(512, stages)


@triton.jit
def product_of_large_tiles(
    a, b, out, K, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr, OWN: tl.constexpr, SPECIALIZE: tl.constexpr
):  # fmt: skip
    total = tl.zeros([M, N], tl.float32)
    for k in tl.range(0, K, STEP, num_stages=OWN, warp_specialize=SPECIALIZE):
        total = tl.dot(a.load([0, k]), b.load([k, 0]), total)
    out.store([0, 0], total)


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.parametrize(("own", "specialize"), [(5, False), (2, True), (5, True), (None, True)])
@pytest.mark.parametrize("step", [128, 160])
def test_stages_that_a_loop_asks_for_give_way_too(dtype, own, specialize, step):
    """Those of a loop's own, and the slots of warps that load, which in the end aren't there at all."""
    signature = {"a": f"tensordesc<{dtype}[128, {step}]>", "b": f"tensordesc<{dtype}[{step}, 96]>"}
    signature |= {"out": "tensordesc<fp32[128, 96]>", "K": "i32"}
    constants = {"M": 128, "N": 96, "STEP": step, "OWN": own, "SPECIALIZE": specialize}
    signature |= dict.fromkeys(constants, "constexpr")
    source = triton.compiler.ASTSource(product_of_large_tiles, signature, constants)
    kernel = triton.compile(source, target="cuda:90", options={"num_warps": 8, "num_stages": 1})
    assert 0 < kernel.metadata.shared <= 227 << 10
    assert ("ttg.warp_specialize" in kernel.asm["ttgir"]) == (specialize and (dtype, step) != ("fp32", 160))


@triton.jit
def scaled_product(a, b, out, K, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr):
    total = tl.zeros([M, N], tl.float32)
    for k in tl.range(0, K, STEP, num_stages=2):
        left, right = a.load([0, k]), b.load([0, k // 2])
        total = tl.dot_scaled(left, None, "e5m2", right.T, None, "e2m1", total)
    out.store([0, 0], total)


def test_a_loop_whose_slots_do_not_fit_has_none():
    """The operands in bf16 take 192 KiB; two slots of what they are made from, 128 more, do not fit beside them."""
    types = {
        "a": "tensordesc<fp8e5[128, 256]>",
        "b": "tensordesc<u8[256, 128]>",
        "out": "tensordesc<fp32[128, 256]>",
    }
    signature = types | {"K": "i32"} | dict.fromkeys(["M", "N", "STEP"], "constexpr")
    source = triton.compiler.ASTSource(scaled_product, signature, {"M": 128, "N": 256, "STEP": 256})
    kernel = triton.compile(source, target="cuda:90", options={"num_warps": 8})
    assert 192 << 10 <= kernel.metadata.shared <= 227 << 10


def test_flags_of_the_command(tmp_path):
    source = tmp_path / "k.py"
    source.write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
        "def k(x):\n    i = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)\n"
        "    tl.store(x + i, tl.dot(tl.load(x + i), tl.load(x + i)))\n"
    )

    def compiled(*flags):
        command = [sys.executable, "-m", "tilewright", "compile", f"{source}::k", "--signature", "*fp32:16"]
        out = tmp_path / "out"
        done = subprocess.run([*command, "-o", str(out), *flags], capture_output=True, text=True)
        return done, (out / "k.ttir").read_text() if not done.returncode else ""

    assert "inputPrecision = tf32 " in compiled()[1]
    flags = ("--default-dot-input-precision", "bf16x6", "--debug", "--line-info=false", "--num-ctas", "1")
    assert "inputPrecision = bf16x6" in compiled(*flags)[1]
    assert ".loc" not in (tmp_path / "out" / "k.ptx").read_text()
    for flags, words in [
        (("--num-warps", "3"), "num_warps is 3: it must be 1, 2, 4, 8, 16 or 32"),
        (("--num-stages=x",), "num_stages is x: it must be an integer from 0 to 64"),
        (("--enable-fp-fusion=maybe",), "enable_fp_fusion is maybe: it must be True or False"),
    ]:
        done, _ = compiled(*flags)
        assert done.returncode != 0 and words in done.stderr


@triton.jit
def power_of_two(x):
    tl.store(x, tl.exp2(tl.load(x)))


@pytest.mark.parametrize("flush,result", [(True, 0.0), (False, 2.0**-127)])
def test_subnormal_numbers(monkeypatch, flush, result):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    x = np.full(1, -127, np.float32)
    power_of_two[(1,)](x, enable_reflect_ftz=flush)
    assert x[0] == np.float32(result)


@triton.jit
def number(x):
    tl.store(x + tl.program_id(0), tl.program_id(0))


@triton.jit
def number_along_y(x):
    tl.store(x + tl.program_id(1), tl.program_id(1))


def test_persistent_counts_in_32_bits(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    with pytest.raises(ValueError, match="2147483646 programs along x is too large with persistent=True"):
        number[(2**31 - 2,)](np.zeros(4, np.int32), persistent=True)
    with pytest.raises(ValueError, match="1073741824x2x1 programs is too large with persistent=True"):
        number_along_y[(2**30, 2)](np.zeros(4, np.int32), persistent=True)


@pytest.mark.parametrize("wrong", [3, -1, 1.0, "yes", [True]])
def test_a_flag_is_true_or_false(wrong):
    with pytest.raises(ValueError, match=r"(?s)persistent is .*it must be True or False"):
        number.warmup(tl.int32, persistent=wrong, grid=(1,))


@pytest.mark.parametrize("flag", [True, False, 1, 0, np.True_, tl.constexpr(True), None])
def test_what_is_true_or_false(flag):
    number.warmup(tl.int32, persistent=flag, target="cuda:90", grid=(1,))


@pytest.mark.parametrize(("backend", "target"), [("xesim", "xe:pvc"), ("npusim", "ascend")])
def test_persistent_is_of_gpus_of_nvidia(monkeypatch, backend, target):
    """Launches of the others do not know it."""
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    with pytest.raises(Exception, match=f"not supported yet: persistent=True for {target}"):
        number[(1,)](np.zeros(4, np.int32), persistent=True)
