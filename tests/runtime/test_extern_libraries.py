"""Libraries that a program names itself: their files, what is wrong with them, and what a target has to have."""

from pathlib import Path

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.language import core
from tilewright.language.extra import cuda, libdevice


def test_another_file_makes_another_kernel(monkeypatch, library, kernel_of, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    results = []
    whole = Path(library).read_text()
    for text in (whole, whole.replace("shl i32 %x, 1", "shl i32 %x, 2")):
        Path(library).write_text(text)
        out = np.zeros(32)
        kernel_of(library)[(1,)](np.zeros(32), np.zeros(1, np.int32), out)
        results.append(out)
    np.testing.assert_array_equal(results[1], 2 * results[0])


@pytest.mark.parametrize(
    "change, message",
    [
        (("i32 %n", "i64 %n"), "is called as"),
        (("@axpy", "@other"), "none has a function `axpy`"),
        (("define", "defin"), "library.ll"),
        (None, "cannot be read"),
    ],
)
def test_a_wrong_library_is_an_error_at_the_call(monkeypatch, library, kernel_of, change, message):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    text = Path(library).read_text()
    Path(library).write_text(text.replace(*change) if change else "")
    path = library if change else library + ".none"
    kernel = kernel_of(path)
    with pytest.raises(Exception, match=message) as error:
        kernel[(1,)](np.zeros(32), np.zeros(1, np.int32), np.zeros(32))
    where = Path(kernel.fn.__code__.co_filename).name
    assert f"{where}:" in str(error.value)


def test_a_library_may_come_with_the_launch(monkeypatch, library, kernel_of, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    kernel, results = kernel_of(""), []
    other = tmp_path / "other.ll"
    other.write_text(Path(library).read_text().replace("shl i32 %x, 1", "shl i32 %x, 2"))
    for libraries in ({"mine": library}, (("unused", library), ("mine", other))):
        out = np.zeros(32)
        kernel[(1,)](np.zeros(32), np.zeros(1, np.int32), out, extern_libs=libraries)
        results.append(out)
    np.testing.assert_array_equal(results[0], 2 * np.arange(32))
    np.testing.assert_array_equal(results[1], 2 * results[0])
    with pytest.raises(Exception, match=r"(?s)extern_libs names no library `mine`.*it names theirs"):
        kernel[(1,)](np.zeros(32), np.zeros(1, np.int32), out, extern_libs={"theirs": library})


@triton.jit
def arcsine(x, out):
    at = tl.arange(0, 32)
    tl.store(out + at, libdevice.asin(tl.load(x + at)))


def test_another_libdevice_may_come_with_the_launch(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    x = np.linspace(-1, 1, 32, dtype=np.float32)
    for added in (1.0, 2.0):
        path = tmp_path / f"{added}.ll"
        path.write_text(
            f"define float @__nv_asinf(float %x) {{\n%y = fadd float %x, {added}\nret float %y\n}}\n"
        )
        out = np.zeros_like(x)
        arcsine[(1,)](x, out, extern_libs={"libdevice": path})
        np.testing.assert_array_equal(out, x + np.float32(added))
    empty = tmp_path / "empty.ll"
    empty.write_text("define float @other(float %x) {\nret float %x\n}\n")
    with pytest.raises(Exception, match="none has a function `__nv_asinf`"):
        arcsine[(1,)](x, out, extern_libs={"libdevice": empty})


@core.extern
def thread(_semantic=None):
    return core.extern_elementwise(
        "", "", [], {(): ("llvm.nvvm.read.ptx.sreg.nctaid.x", core.int32)}, is_pure=True
    )


@triton.jit
def intrinsic(out):
    tl.store(out + tl.program_id(0), thread())


def test_an_intrinsic_of_llvm(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    out = np.zeros(3, np.int32)
    intrinsic[(3,)](out)
    np.testing.assert_array_equal(out, 3)


@triton.jit
def queries(x, out, times):
    cuda.gdc_wait()
    program = tl.program_id(0)
    value = tl.load(x + program)
    cuda.gdc_launch_dependents()
    tl.store(out + program, value + 1)
    before = cuda.globaltimer()
    tl.store(times + 2 * program, tl.where(cuda.smid() >= 0, 1, 0))
    tl.store(times + 2 * program + 1, tl.where(cuda.globaltimer() >= before, 1, 0))


@triton.jit
def multiprocessor(out):
    tl.store(out + tl.program_id(1) * 100 + tl.program_id(0), cuda.smid())


@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
def test_programs_are_dealt_out_in_turn(monkeypatch, backend):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    out = np.zeros(200, np.int32)
    multiprocessor[(100, 2)](out)
    np.testing.assert_array_equal(out, np.arange(200) % 132)


def test_dependent_launch_needs_hopper():
    with pytest.raises(Exception, match=r"`gdc_wait` needs compute capability 9\.0"):
        queries.warmup(
            np.zeros(5, np.int32), np.zeros(5, np.int32), np.zeros(10, np.int32), grid=(1,), target="cuda:80"
        )
    compiled = queries.warmup(
        np.zeros(5, np.int32), np.zeros(5, np.int32), np.zeros(10, np.int32), grid=(1,), target="cuda:90"
    )
    lines = [line.strip() for line in compiled.asm["ptx"].splitlines()]
    at = [i for i, line in enumerate(lines) if "griddepcontrol" in line or line.startswith("ld.global")]
    assert [lines[i].split(".")[1].split(" ")[0].rstrip(";") for i in at] == [
        "wait",
        "global",
        "launch_dependents",
    ]
