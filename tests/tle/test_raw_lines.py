"""Lines of the author's own code in the line table of a kernel that calls it: in its PTX, and in what `tilewright inspect` shows."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tle.raw import InOut, dialect

CUDA = """__device__ float square(float x) { return x * x; }
extern "C" __device__ void by_cuda(float* x) {
  __builtin_assume(__isShared(x));
  float own = x[threadIdx.x];
  own = own / 3.0f;

  x[threadIdx.x] = square(own);
}
"""


@dialect(name="cuda", source=CUDA)
def by_cuda(x: InOut["memref<?xf32, 3>"]): ...


@dialect(
    name="ptx",
    source="""
    mul.f32 %[x], %[x], %[x];
    { .reg .f32 y;
      add.f32 y, %[x],
        0f3F800000;

      mov.f32 %[x], y;
    }
    """,
)
def by_ptx(x: InOut["tensor<?xf32>"]): ...


@dialect(
    name="llvm",
    source="""
    define float @by_llvm(float %x) {
    entry:
      %y = fmul float %x, %x ; squared
      %c = fcmp ogt float %y, 1.000000e+02
      br i1 %c, label %large, label %small

    large:
      %z = fdiv float %y, 7.000000e+00
      br label %small

    small:
      %r = phi float [ %y, %entry ], [ %z, %large ]
      ret float %r
    }
    """,
)
def by_llvm(x: InOut["tensor<?xf32>"]): ...


@dialect(
    name="mlir",
    source="""
    func.func @by_mlir(%x: memref<?xf32, 3>) {
      %t = nvvm.read.ptx.sreg.tid.x : i32

      %v = memref.load %x[%t] : memref<?xf32, 3>
      %w = arith.mulf %v, %v : f32
      memref.store %w, %x[%t] : memref<?xf32, 3>
      return
    }
    """,
)
def by_mlir(x: InOut["memref<?xf32, 3>"]): ...


@triton.jit
def kernel(x_ptr, function: tl.constexpr):
    at = tl.arange(0, 128)
    x = tl.load(x_ptr + at)
    tle.raw.call(function, [x])
    x = x + 1.0
    tl.store(x_ptr + at, x)


@triton.jit
def in_registers(x_ptr, function: tl.constexpr):
    at = tl.arange(0, 128)
    x = tl.load(x_ptr + at)
    tle.raw.call(function, [x], layout={x: {"space": "registers"}})
    x = x + 1.0
    tl.store(x_ptr + at, x)


def positions(kernel, function):
    """The lines that instructions of a kernel's PTX come from, by file."""
    compiled = kernel.warmup(triton.MockTensor(tl.float32), function, grid=(1,), target="cuda:80")
    ptx = compiled.asm["ptx"]
    files = {
        int(n): Path(name).name for n, name in re.findall(r'^\s*\.file\s+(\d+) "(.*?)"', ptx, re.MULTILINE)
    }
    found = {}
    for number, line in re.findall(r"^\s*\.loc\s+(\d+) (\d+)", ptx, re.MULTILINE):
        found.setdefault(files[int(number)], set()).add(int(line))
    return found


def test_cuda():
    lines = positions(kernel, by_cuda)
    assert {1, 4, 5, 7} <= lines["by_cuda.cu"]
    # The lines of the kernel go on behind the call.
    own = kernel.starting_line_number
    assert {own + 5, own + 6} <= lines["test_raw_lines.py"] | {own + 5}


def test_ptx():
    assert positions(in_registers, by_ptx)["by_ptx.ptx"] == {1, 3, 6}


def test_llvm():
    assert {3, 4} <= positions(in_registers, by_llvm)["by_llvm.ll"]


def test_mlir():
    assert {4, 5, 6} & positions(kernel, by_mlir)["by_mlir.mlir"]


def test_the_same_results(native):
    x = np.linspace(-20, 20, 128).astype(np.float32)
    for run, function, of in [
        (kernel, by_cuda, lambda x: (x / np.float32(3)) ** 2),
        (in_registers, by_ptx, lambda x: x * x + 1),
        (in_registers, by_llvm, lambda x: np.where(x * x > 100, x * x / np.float32(7), x * x)),
    ]:
        out = native.array(x.copy())
        run[(1,)](out, function)
        np.testing.assert_allclose(native.numpy(out), of(x) + 1, rtol=1e-6)


@pytest.mark.parametrize(
    ("run", "function", "file", "opcode"),
    [
        (kernel, by_cuda, "by_cuda.cu", "FMUL"),
        (in_registers, by_ptx, "by_ptx.ptx", "FADD"),
        (in_registers, by_llvm, "by_llvm.ll", "FMUL"),
        (kernel, by_mlir, "by_mlir.mlir", "FMUL"),
    ],
)
def test_inspect(run, function, file, opcode):
    compiled = run.warmup(triton.MockTensor(tl.float32), function, grid=(1,), target="cuda:80")
    text = compiled.inspect()
    assert "registers" in text and "bytes spilled" in text and f"  {file}:" in text
    report = json.loads(compiled.inspect(json=True))
    assert report["registers"] == compiled.n_regs
    there = [
        line["instructions"]
        for line in report["by_line"]
        if line["place"] and line["place"]["file"].endswith(file)
    ]
    assert any(opcode in mix or "FFMA" in mix for mix in there)
    assert sum(sum(line["instructions"].values()) for line in report["by_line"]) <= sum(
        report["instructions"].values()
    )


def test_nothing_to_inspect():
    compiled = kernel.warmup(triton.MockTensor(tl.float32), by_mlir, grid=(1,), target="interp")
    with pytest.raises(RuntimeError, match=r"not supported yet: inspect\(\) of a kernel for interp"):
        compiled.inspect()
