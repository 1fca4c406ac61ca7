"""Stages that are given instead of made: ``ir_override``, and ``compile`` of a file."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
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
