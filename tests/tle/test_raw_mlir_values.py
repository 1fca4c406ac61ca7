"""What values of MLIR are: truths are numbers of one bit with a sign, constants may be bits, names are those of a region."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tle.raw import InOut, Input, dialect
from tilewright.tle.raw.mlir import arith, llvm, memref, nvvm

N = 128

TEXT = """
func.func @truths(%x: memref<?xi32, 3>, %o: memref<?xi32, 3>) {
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %v = memref.load %x[%t] : memref<?xi32, 3>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %c128 = arith.constant 128 : i32
  %low = arith.trunci %v : i32 to i1
  %less = arith.cmpi slt, %v, %c0 : i32
  %a = arith.extui %low : i1 to i32
  %b = arith.extsi %less : i1 to i32
  %fa = arith.sitofp %low : i1 to f32
  %c = arith.fptosi %fa : f32 to i32
  %before = arith.cmpi slt, %low, %less : i1
  %d = arith.extui %before : i1 to i32
  %both = arith.maxsi %low, %less : i1
  %e = arith.extui %both : i1 to i32
  %half = arith.constant 0.75 : f32
  %none = arith.fptoui %half : f32 to i1
  %f = arith.extui %none : i1 to i32
  %up = arith.ceildivui %v, %c3 : i32
  %down = arith.floordivsi %v, %c3 : i32
  %over = arith.ceildivsi %v, %c3 : i32
  memref.store %a, %o[%t] : memref<?xi32, 3>
  %t1 = arith.addi %t, %c128 : i32
  memref.store %b, %o[%t1] : memref<?xi32, 3>
  %t2 = arith.addi %t1, %c128 : i32
  memref.store %c, %o[%t2] : memref<?xi32, 3>
  %t3 = arith.addi %t2, %c128 : i32
  memref.store %d, %o[%t3] : memref<?xi32, 3>
  %t4 = arith.addi %t3, %c128 : i32
  memref.store %e, %o[%t4] : memref<?xi32, 3>
  %t5 = arith.addi %t4, %c128 : i32
  memref.store %f, %o[%t5] : memref<?xi32, 3>
  %t6 = arith.addi %t5, %c128 : i32
  memref.store %up, %o[%t6] : memref<?xi32, 3>
  %t7 = arith.addi %t6, %c128 : i32
  memref.store %down, %o[%t7] : memref<?xi32, 3>
  %t8 = arith.addi %t7, %c128 : i32
  memref.store %over, %o[%t8] : memref<?xi32, 3>
  return
}
func.func @bits(%x: memref<?xi32, 3>, %o: memref<?xf32, 3>) {
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %c4 = arith.constant 4 : i32
  %at = arith.muli %t, %c4 : i32
  %true = arith.constant true
  cf.assert %true, "see https://mlir.llvm.org // and \\"this\\"" // A comment.
  %v = arith.constant dense<[0xFF800000, 0x3FC00000, 0x7FC00000, -0.0]> : vector<4xf32>
  vector.store %v, %o[%at] : memref<?xf32, 3>, vector<4xf32>
  return
}
func.func @regions(%x: memref<?xi32, 3>, %o: memref<?xi32, 3>) {
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %v = memref.load %x[%t] : memref<?xi32, 3>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p = arith.cmpi slt, %v, %c0 : i32
  scf.if %p {
  } else {
    %w = arith.trunci %v : i32 to i8
    %s = arith.addi %w, %w : i8
    %r = arith.extsi %s : i8 to i32
    memref.store %r, %o[%t] : memref<?xi32, 3>
  }
  %q = arith.cmpi eq, %c0, %c0 : i32
  %n:2 = scf.if %q -> (i32, i32) {
    %w = arith.constant 3 : i32
    scf.yield %c1, %w : i32, i32
  } else {
    %w = arith.constant 3.0 : f32
    %i = arith.fptosi %w : f32 to i32
    scf.yield %c0, %i : i32, i32
  }
  scf.if %p {
    // Two loops, whose variables are of different types.
    %a = scf.for %i = %n#0 to %n#1 step %c1 iter_args(%sum = %n#0) -> (i32) : i32 {
      %w = arith.addi %sum, %i : i32
      scf.yield %w : i32
    }
    %j0 = arith.constant 0 : index
    %j1 = arith.constant 1 : index
    %j2 = arith.constant 2 : index
    %b:2 = scf.for %i = %j0 to %j2 step %j1 iter_args(%sum = %j1, %one = %j2) -> (index, index) {
      scf.yield %one, %sum : index, index
    }
    scf.for %i = %j0 to %j2 step %j1 {
    }
    %w = arith.index_cast %b#0 : index to i32
    %r = arith.addi %a, %w : i32
    memref.store %r, %o[%t] : memref<?xi32, 3>
  }
  return
}
func.func @pointers(%x: !llvm.ptr<1>, %o: !llvm.ptr<1>) {
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %p = llvm.getelementptr inbounds %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %v = llvm.load %p : !llvm.ptr<1> -> i32
  %q = llvm.getelementptr %o[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %v, %q : i32, !llvm.ptr<1>
  %b = llvm.getelementptr %x[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
  %w = llvm.load %b : !llvm.ptr<1> -> f32
  %e = llvm.getelementptr %o[512] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
  llvm.store %w, %e : f32, !llvm.ptr<1>
  return
}
func.func @nowhere(%x: memref<?xi32, 3>, %o: memref<?xi32, 3>) {
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %p = arith.cmpi eq, %t, %t : i32
  scf.if %p {
    %w = arith.constant 3 : i32
  }
  memref.store %w, %o[%t] : memref<?xi32, 3>
  return
}
"""


@dialect(name="mlir", source=TEXT)
def truths(x: Input["memref<?xi32, 3>"], o: InOut["memref<?xi32, 3>"]): ...


@dialect(name="mlir", source=TEXT)
def bits(x: Input["memref<?xi32, 3>"], o: InOut["memref<?xf32, 3>"]): ...


@dialect(name="mlir", source=TEXT)
def regions(x: Input["memref<?xi32, 3>"], o: InOut["memref<?xi32, 3>"]): ...


@dialect(name="mlir", source=TEXT)
def pointers(x: Input["!llvm.ptr<1>"], o: InOut["!llvm.ptr<1>"]): ...


@dialect(name="mlir", source=TEXT)
def nowhere(x: Input["memref<?xi32, 3>"], o: InOut["memref<?xi32, 3>"]): ...


@triton.jit
def kernel(x_ptr, o_ptr, F: tl.constexpr, N: tl.constexpr, M: tl.constexpr):
    x, o = tl.load(x_ptr + tl.arange(0, N)), tl.load(o_ptr + tl.arange(0, M))
    tle.raw.call(F, [x, o])
    tl.store(o_ptr + tl.arange(0, M), o)


@triton.jit
def pointer_kernel(x_ptr, o_ptr, F: tl.constexpr):
    tle.raw.call(F, [x_ptr, o_ptr])


def test_truths_have_a_sign_and_quotients_no_overflow(device):
    x, out = np.arange(N, dtype=np.int32) - 64, device.zeros(9 * N, np.int32)
    kernel[(1,)](device.array(x), out, truths, N, 9 * N)
    low, less = x % 2, (x < 0).astype(int)
    up = -(-x.view(np.uint32).astype(np.int64) // 3)
    want = [low, -less, -low, low & (1 - less), low & less, 0 * x, up, x // 3, -(-x // 3)]
    got = device.numpy(out).reshape(9, N)
    np.testing.assert_array_equal(got, np.array(want).astype(np.uint32).view(np.int32))


def test_constants_are_bits(device):
    out = device.zeros(4 * N, np.float32)
    kernel[(1,)](device.array(np.zeros(N, np.int32)), out, bits, N, 4 * N)
    words = np.array([0xFF800000, 0x3FC00000, 0x7FC00000, 0x80000000], np.uint32)
    np.testing.assert_array_equal(device.numpy(out).view(np.uint32), np.tile(words, N))


def test_names_are_those_of_a_region(device):
    x, out = np.arange(N, dtype=np.int32) * 3 - 150, device.zeros(N, np.int32)
    kernel[(1,)](device.array(x), out, regions, N, N)
    twice = (x.astype(np.int8) * np.int8(2)).astype(np.int32)
    np.testing.assert_array_equal(device.numpy(out), np.where(x < 0, 1 + 1 + 2 + 1, twice))


def test_operations_say_what_pointers_lead_to(device):
    x, out = np.arange(N, dtype=np.float32) * 1.5, device.zeros(N + 1, np.int32)
    pointer_kernel[(1,)](device.array(x), out, pointers)
    want = np.append(x, x[1]).view(np.int32)
    np.testing.assert_array_equal(device.numpy(out), want)


def test_a_name_of_another_region(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    zeros = np.zeros(N, np.int32)
    with pytest.raises(triton.CompilationError, match=r"there is no %w here: memref.store %w"):
        kernel[(1,)](zeros, zeros, nowhere, N, N)


@dialect(name="mlir")
def by_all(x: InOut["!llvm.ptr<1>"], o: InOut["memref<?xi32, 3>"]):
    t = nvvm.read_ptx_sreg_tid_x()
    memref.store(arith.addi(llvm.load(x), t), o, [t])


@triton.jit
def by_all_kernel(x_ptr, o_ptr, N: tl.constexpr):
    o = tl.load(o_ptr + tl.arange(0, N))
    tle.raw.call(by_all, [x_ptr, o])
    tl.store(o_ptr + tl.arange(0, N), o)


def test_all_threads_read_one_number(device):
    out = device.zeros(N, np.int32)
    by_all_kernel[(1,)](device.array(np.array([7], np.int32)), out, N)
    np.testing.assert_array_equal(device.numpy(out), 7 + np.arange(N))


@dialect(name="mlir")
def least_square_above(x: Input["memref<?xi32, 3>"], o: InOut["memref<?xi32, 3>"]):
    t = nvvm.read_ptx_sreg_tid_x()
    v = memref.load(x, [t])
    found = -1
    j = 0
    while found == -1 and j < 9:
        if j * j > v:
            found = j
        j = j + 1
    memref.store(found, o, [t])


def test_a_condition_that_differs_from_the_second_iteration_on(device):
    x, out = np.arange(N, dtype=np.int32), device.zeros(N, np.int32)
    kernel[(1,)](device.array(x), out, least_square_above, N, N)
    want = [next((j for j in range(9) if j * j > v), -1) for v in x]
    np.testing.assert_array_equal(device.numpy(out), want)


@dialect(name="mlir")
def negate_rows(x: InOut["memref<8x16xi32, 3>"]):
    t = nvvm.read_ptx_sreg_tid_x()
    for column in range(16):
        memref.store(-memref.load(x, [t, column]), x, [t, column])


HOW = tl.constexpr({"layout": {0: {"space": "shared", "order": (0, 1)}}, "hardware": {"threads": (8,)}})


@triton.jit
def by_constants_kernel(x_ptr, HARDWARE: tl.constexpr):
    at = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    x = tl.load(x_ptr + at)
    tle.raw.call(negate_rows, [x], hardware=HARDWARE, layout=HOW["layout"])
    tl.store(x_ptr + at, x)


def test_dictionaries_are_constants(device):
    x = np.arange(N, dtype=np.int32).reshape(8, 16)
    given = device.array(x.copy())
    by_constants_kernel[(1,)](given, HOW.value["hardware"])
    np.testing.assert_array_equal(device.numpy(given), -x)
