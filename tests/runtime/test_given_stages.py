"""Stages that are given instead of made: ``ir_override``, and ``compile`` of a file."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import knobs
from tilewright.compiler import IRSource


@triton.jit
def add_number(y, x, n, NUMBER: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) + NUMBER, mask=at < n)


# How a stage writes the number that is added.
ONE, TWO = "1.000000e+00", "2.000000e+00"
STAGES = {
    "ttir": (ONE, TWO),
    "ttgir": (ONE, TWO),
    "llir": (ONE, TWO),
    "ptx": ("0f3F800000", "0f40000000"),
}


def arrays():
    return np.zeros(100, np.float32), np.arange(100, dtype=np.float32)


def given(tmp_path, stage: str):
    """The file of a stage of the kernel in which 2 stands for 1."""
    y, x = arrays()
    text = add_number[(4,)](y, x, 100, NUMBER=1.0, BLOCK=32).asm[stage]
    assert (y == x + 1).all()
    before, now = STAGES[stage]
    assert before in text
    path = tmp_path / f"kernel.{stage}"
    path.write_text(text.replace(before, now))
    return path


@pytest.mark.parametrize(("backend", "stage"), [("interp", "ttir"), *(("ptxsim", stage) for stage in STAGES)])
def test_a_given_stage_takes_the_place_of_the_one_that_would_be_made(tmp_path, monkeypatch, backend, stage):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    path = given(tmp_path, stage)
    y, x = arrays()
    for _ in range(2):  # compiled, and found again
        y[:] = 0
        add_number[(4,)](y, x, 100, NUMBER=1.0, BLOCK=32, ir_override=path)
        assert (y == x + 2).all()
    add_number[(4,)](y, x, 100, NUMBER=1.0, BLOCK=32, ir_override=None)
    assert (y == x + 1).all()


@pytest.mark.parametrize("stages", [["ttir"], ["ttgir"], ["ttir", "ptx"]])
def test_what_was_dumped_and_changed_takes_the_place_of_a_stage(tmp_path, monkeypatch, capsys, stages):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    y, x = arrays()
    with knobs.cache.scope(), knobs.compilation.scope():
        knobs.cache.dump_dir, knobs.cache.override_dir = str(tmp_path / "dump"), str(tmp_path / "override")
        knobs.compilation.dump_ir = True
        # Each a function of its own: what is compiled stays with its function.
        triton.jit(add_number.fn)[(2,)](y, x, 100, NUMBER=1.0, BLOCK=64)
        (folder,) = (tmp_path / "dump").iterdir()
        there = tmp_path / "override" / folder.name
        there.mkdir(parents=True)
        for stage in stages:
            before, now = STAGES[stage]
            # The last one counts.
            now = now if stage == stages[-1] else before
            text = (folder / f"add_number.{stage}").read_text()
            (there / f"add_number.{stage}").write_text(text.replace(before, now))
        knobs.compilation.dump_ir, knobs.compilation.override = False, True
        again = triton.jit(add_number.fn)
        again[(2,)](y, x, 100, NUMBER=1.0, BLOCK=64)
        assert (y == x + 2).all() and f"add_number.{stages[-1]} takes the place" in capsys.readouterr().out
        (there / "add_number.ttir").write_text("nonsense")
        if stages == ["ttir"]:
            with pytest.raises(triton.CompilationError, match=r"add_number\.ttir:1"):
                triton.jit(add_number.fn)[(2,)](y, x, 100, NUMBER=1.0, BLOCK=64)
    triton.jit(add_number.fn)[(2,)](y, x, 100, NUMBER=1.0, BLOCK=64)
    assert (y == x + 1).all()


def test_a_configuration_may_give_a_stage(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    path = str(given(tmp_path, "ttgir"))
    config = triton.Config({"BLOCK": 32, "NUMBER": 1.0}, ir_override=path)
    y, x = arrays()
    triton.autotune([config], key=[])(add_number)[(4,)](y, x, 100)
    assert (y == x + 2).all()


@pytest.mark.parametrize("stage", ["ttir", "ttgir"])
def test_a_file_is_a_kernel(tmp_path, monkeypatch, stage):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    path = given(tmp_path, stage)
    source = IRSource(path)
    assert (source.name, source.signature) == ("add_number", {0: "*f32", 1: "*f32", 2: "i32"})
    y, x = arrays()
    triton.compile(str(path))[(4, 1, 1)](y, x, 100)
    assert (y == x + 2).all()


def test_a_number_for_a_pointer_is_the_address(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    kernel = triton.compile(str(given(tmp_path, "ttgir")))
    y, x = arrays()
    both = np.concatenate([y, x])
    kernel[(4, 1, 1)](both, both.ctypes.data + y.nbytes, 100)
    assert (both[: y.size] == x + 2).all()
    # Memory that no argument has is none of the launch's without a GPU.
    with pytest.raises(triton.KernelError, match="bounds"):
        kernel[(4, 1, 1)](y, x.ctypes.data, 100)


def test_what_a_module_says_of_warps_is_an_option(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    y, x = arrays()
    kernel = add_number[(4,)](y, x, 100, NUMBER=1.0, BLOCK=32, num_warps=2)
    path = tmp_path / "kernel.ttgir"
    path.write_text(kernel.asm["ttgir"])
    assert triton.compile(str(path)).metadata.num_warps == 2


def test_what_is_no_stage_is_an_error_that_names_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    y, x = arrays()

    def words(name: str, text: str | None) -> str:
        path = tmp_path / name
        if text is not None:
            path.write_text(text)
        with pytest.raises(triton.CompilationError) as caught:
            add_number[(4,)](y, x, 100, NUMBER=1.0, BLOCK=32, ir_override=str(path))
        assert name in str(caught.value) or name == "kernel.llir"
        return str(caught.value)

    assert "cannot be read" in words("none.ttir", None)
    assert "named for it" in words("kernel", "")
    assert "there are ttir, ttgir, llir, ptx, cubin" in words("kernel.mlir", "")
    assert "kernel.ttir:1:" in words("kernel.ttir", "tt.func @f(")
    assert "cannot be read" in words("kernel.llir", "define void")
    with pytest.raises(TypeError, match="ir_override is no path"):
        add_number[(4,)](y, x, 100, NUMBER=1.0, BLOCK=32, ir_override=3)


BARE = """
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @row_sums(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %rows = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %columns = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %width = arith.constant dense<64> : tensor<32x1xi32, #blocked>
    %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<32x1xi32, #blocked>
    %start = arith.muli %row, %width : tensor<32x1xi32, #blocked>
    %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
    %starts = tt.broadcast %start : tensor<32x1xi32, #blocked> -> tensor<32x64xi32, #blocked>
    %columns64 = tt.broadcast %column : tensor<1x64xi32, #blocked> -> tensor<32x64xi32, #blocked>
    %offsets = arith.addi %starts, %columns64 : tensor<32x64xi32, #blocked>
    %base = tt.splat %x : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #blocked>
    %at = tt.addptr %base, %offsets : tensor<32x64x!tt.ptr<f32>, #blocked>, tensor<32x64xi32, #blocked>
    %loaded = tt.load %at : tensor<32x64x!tt.ptr<f32>, #blocked>
    %sums = "tt.reduce"(%loaded) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %sum = arith.addf %a, %b : f32
      tt.reduce.return %sum : f32
    }) : (tensor<32x64xf32, #blocked>) -> tensor<64xf32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %to = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #blocked}>>
    %out = tt.addptr %to, %columns : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #blocked}>>, tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    tt.store %out, %sums : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #blocked}>>
    tt.return
  }
}
"""


def test_a_module_without_places_barriers_and_widths_gets_them(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    path = tmp_path / "row_sums.ttgir"
    path.write_text(BARE)
    kernel = triton.compile(str(path))
    x, y = np.arange(32 * 64, dtype=np.float32).reshape(32, 64), np.zeros(64, np.float32)
    kernel[(1, 1, 1)](x, y)
    assert (y == x.sum(axis=0)).all()
    assert (
        "ld.global.v4" in kernel.asm["ptx"].replace(".L1::no_allocate", "")
        and "bar.sync" in kernel.asm["ptx"]
    )
    path.write_text(BARE.replace(", #blocked", "").replace(", #ttg.slice<{dim = 0, parent = #blocked}>", ""))
    with pytest.raises(triton.CompilationError, match=r"row_sums\.ttgir"):
        triton.compile(str(path))


DIVIDE = """
module {
  tt.func public @divide(%out: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %a: !tt.ptr<i32>, %b: !tt.ptr<i32>) {
    %at = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %as = tt.splat %a : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
    %bs = tt.splat %b : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
    %outs = tt.splat %out : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
    %ap = tt.addptr %as, %at : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
    %bp = tt.addptr %bs, %at : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
    %op = tt.addptr %outs, %at : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
    %x = tt.load %ap : tensor<16x!tt.ptr<i32>>
    %y = tt.load %bp : tensor<16x!tt.ptr<i32>>
    %q = arith.ceildivui %x, %y : tensor<16xi32>
    tt.store %op, %q : tensor<16x!tt.ptr<i32>>
    tt.return
  }
}
"""


@triton.jit
def divide(out, a, b):
    pass


@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
def test_an_operation_that_only_modules_have(tmp_path, monkeypatch, backend):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    path = tmp_path / "divide.ttir"
    path.write_text(DIVIDE)
    random = np.random.default_rng(7)
    a = random.integers(0, 2**32, 16, dtype=np.uint32)
    b = random.integers(1, 2**31, 16, dtype=np.uint32) >> random.integers(0, 31, 16, dtype=np.uint32)
    a[:2], b = (2**32 - 1, 0), np.maximum(b, 1)
    out = np.zeros(16, np.uint32)
    divide[(1,)](out, a, b, ir_override=path)
    assert (out == -(-a.astype(np.int64) // b)).all()


@triton.jit
def runs_kernel(out_ptr, x_ptr, divisor):
    """Runs of 16 elements of a vector that begins at a quotient read one element of x, if that is not negative."""
    i = tl.program_id(0) // divisor * 16 + tl.arange(0, 64)
    tl.store(out_ptr + tl.program_id(0) * 64 + tl.arange(0, 64), tl.load(x_ptr + 16 + i // 16))


def test_text_says_what_its_code_relies_on(tmp_path, monkeypatch):
    """Of code whose text was given nothing is compiled anew: a divisor that may not be negative is refused."""
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    out, x = np.empty((3, 64), np.float32), np.arange(64, dtype=np.float32)

    def runs(divisor):
        # Rounded to zero.
        firsts = np.trunc(np.arange(3)[:, None] / divisor) * 16
        np.testing.assert_array_equal(out, x[16 + np.trunc((firsts + np.arange(64)) / 16).astype(int)])

    text = runs_kernel[(3,)](out, x, 2, num_warps=1).asm["ttgir"]
    assert 'ttg.not_negative = [["argument", 2 : i64, 32 : i64]]' in text
    path = tmp_path / "runs_kernel.ttgir"
    path.write_text(text)
    runs_kernel[(3,)](out, x, -1, num_warps=1)
    runs(-1)
    runs_kernel[(3,)](out, x, 2, num_warps=1, ir_override=path)
    runs(2)
    for more in {}, {"positive_divisors": False}:
        with pytest.raises(ValueError, match="divides by a number that is negative here"):
            runs_kernel[(3,)](out, x, -1, num_warps=1, ir_override=path, **more)
    compiled = triton.compile(str(path))
    compiled[(3, 1, 1)](out, x, 3)
    runs(3)
    with pytest.raises(ValueError, match="divides by a number that is negative here"):
        compiled[(3, 1, 1)](out, x, -1)
