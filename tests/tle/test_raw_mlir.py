"""`tle.raw` with functions in MLIR: on every backend, the CPU executor included."""

from typing import Annotated

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tle.raw import InOut, Input, dialect
from tilewright.tle.raw.mlir import (
    arith,
    cf,
    gpu,
    ir,
    llvm,
    math,
    memref,
    nvvm,
    scf,
    tensor,
    vassert,
    vector,
    vprintf,
)


def numbers(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(dtype)


# The example of the architecture document, 3.4.1.1, complete: threads are numbered within the program.


@tle.raw.language(name="mlir")
@tle.hardware_constraint(threads_dim=1, sync_scope="block")
def vector_add_tile(
    x: Annotated[ir.RankedTensorType, "tensor<1024xf32>"],
    y: Annotated[ir.RankedTensorType, "tensor<1024xf32>"],
    output: Annotated[ir.RankedTensorType, "tensor<1024xf32>"],
):
    tidx = nvvm.ThreadIdXOp(ir.IntegerType.get_signless(32)).res
    idx = arith.index_cast(ir.IndexType.get(), tidx)
    xval = tensor.extract(x, [idx])
    yval = tensor.extract(y, [idx])
    result = arith.addf(xval, yval)
    tensor.insert(result, output, [idx])


@tle.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    output = tl.zeros_like(x)
    tle.call(
        vector_add_tile,
        args=[x, y, output],
        hardware={
            "threads": (BLOCK_SIZE,),
        },
        layout={
            x: {"space": "shared", "order": [0]},
            y: {"space": "shared", "order": [0]},
            output: {"space": "shared", "order": [0]},
        },
    )
    tl.store(output_ptr + offsets, output, mask=mask)


def test_the_documents_example(device):
    x, y = numbers(2500), numbers(2500, seed=1)
    out = device.array(np.zeros(2500, np.float32))
    add_kernel[(3,)](device.array(x), device.array(y), out, 2500, 1024)
    np.testing.assert_array_equal(device.numpy(out), x + y)


# Control flow: conditions and bounds that differ between threads.


def clamp(v, low, high):
    if v < low:
        v = low
    elif v > high:
        v = high
    return v


@dialect(name="mlir")
def collatz(steps: InOut["memref<?xi32, 3>"], x: Input["memref<?xi32, 3>"]):
    t = nvvm.read_ptx_sreg_tid_x(ir.IntegerType.get_signless(32))
    n = memref.load(x, [t])
    count = arith.constant(ir.IntegerType.get_signless(32), 0)
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        count = count + 1
    memref.store(count, steps, [t])


@triton.jit
def collatz_kernel(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    n = tl.load(x + at)
    tl.store(out + at, tle.raw.call(collatz, [tl.zeros_like(n), n], hardware={"threads": (N,)}))


def steps_of(n):
    count = 0
    while n > 1:
        n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
    return count


def test_a_loop_that_threads_leave_one_by_one(device):
    x = np.arange(1, 65, dtype=np.int32)
    out = device.array(np.zeros(64, np.int32))
    collatz_kernel[(1,)](device.array(x), out, 64)
    np.testing.assert_array_equal(device.numpy(out), [steps_of(int(n)) for n in x])


@dialect(name="mlir")
def strided(out: InOut["!llvm.ptr<1>"], x: Input["!llvm.ptr<1>"], n: Input["i32"], factor: Input["f32"]):
    i = gpu.thread_id(gpu.Dimension.x)
    for at in scf.for_(nvvm.read_ptx_sreg_tid_x(), n, nvvm.read_ptx_sreg_ntid_x()):
        v = llvm.load(llvm.getelementptr(x, at))
        v = arith.mulf(v, factor)
        if v < 0.0:
            v = arith.negf(math.sqrt(arith.negf(v)))
        llvm.store(v, llvm.getelementptr(out, at))
        scf.yield_([])


@triton.jit
def strided_kernel(x, out, n):
    tle.raw.call(strided, [out, x, n, 2])


@pytest.mark.parametrize("n", [1000, 50])
def test_a_loop_with_bounds_of_each_thread(device, n):
    x = numbers(n) * 2
    out = device.array(np.zeros(n, np.float32))
    strided_kernel[(1,)](device.array(x), out, n)
    v = x * 2
    np.testing.assert_allclose(device.numpy(out), np.where(v < 0, -np.sqrt(np.abs(v)), v), rtol=1e-6)


@dialect(name="mlir")
def block_sum(x: InOut["memref<128xf32, 3>"], limit):
    """A tree, with barriers between its levels; then what is clamped."""
    t = nvvm.read_ptx_sreg_tid_x()
    width = 64
    while width > 0:
        if t < width:
            a = memref.load(x, [t])
            b = memref.load(x, [t + width])
            memref.store(arith.addf(a, b), x, [t])
        nvvm.barrier0()
        width = width // 2
    first = memref.load(x, [arith.constant(ir.IndexType.get(), 0)])
    nvvm.barrier0()
    memref.store(clamp(first, -limit, limit), x, [t])
    vassert(t < memref.dim(x, 0), "a thread too many")
    cf.assert_(t >= 0, "a thread too few")


@triton.jit
def block_sum_kernel(x, out):
    buffer = tle.gpu.alloc([128], dtype=tl.float32)
    at = tl.arange(0, 128)
    buffer.store(tl.load(x + at))
    tle.raw.call_smem(block_sum, [buffer, 20.0])
    tl.store(out + at, buffer.load())


def test_threads_that_meet(device):
    x = numbers(128)
    out = device.array(np.zeros(128, np.float32))
    block_sum_kernel[(1,)](device.array(x), out)
    np.testing.assert_array_equal(device.numpy(out), np.full(128, np.clip(x.sum(), -20, 20)))


@dialect(name="mlir")
def integers(out: InOut["tensor<16x64xi32>"], a: Input["tensor<64xi32>"], b: Input["tensor<64xi32>"]):
    t = nvvm.read_ptx_sreg_tid_x()
    i32, i64, f32 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64), ir.F32Type.get()
    x = tensor.extract(a, [t])
    y = tensor.extract(b, [t])
    tensor.insert(arith.addi(x, y), out, [0, t])
    tensor.insert(arith.muli(x, y), out, [1, t])
    tensor.insert(arith.divsi(x, y), out, [2, t])
    tensor.insert(arith.divui(x, y), out, [3, t])
    tensor.insert(arith.remsi(x, y), out, [4, t])
    tensor.insert(arith.remui(x, y), out, [5, t])
    tensor.insert(arith.shrui(x, 3), out, [6, t])
    tensor.insert(arith.shrsi(x, 3), out, [7, t])
    tensor.insert(arith.maxui(x, y), out, [8, t])
    tensor.insert(arith.minsi(x, y), out, [9, t])
    tensor.insert(arith.extui(i32, arith.cmpi("ult", x, y)), out, [10, t])
    tensor.insert(arith.select(arith.cmpi("sge", x, y), x, y), out, [11, t])
    tensor.insert(arith.trunci(i32, arith.shrui(arith.extui(i64, x), 1)), out, [12, t])
    tensor.insert(arith.fptosi(i32, arith.sitofp(f32, x)), out, [13, t])
    tensor.insert(arith.bitcast(i32, arith.uitofp(f32, arith.andi(x, 255))), out, [14, t])
    return tensor.insert(arith.xori(x, arith.ori(y, 1)), out, [15, t])


@triton.jit
def integers_kernel(a, b, out):
    at = tl.arange(0, 64)
    rows = tl.zeros([16, 64], tl.int32)
    tle.raw.call(integers, [rows, tl.load(a + at), tl.load(b + at)], hardware={"threads": (64,)})
    tl.store(out + tl.arange(0, 16)[:, None] * 64 + at[None, :], rows)


def test_integers_have_no_sign(device):
    a, b = numbers(64, "int32") * 1000, numbers(64, "int32", 1)
    b[b == 0] = 3
    out = device.array(np.zeros((16, 64), np.int32))
    integers_kernel[(1,)](device.array(a), device.array(b), out)
    ua, ub = a.view(np.uint32), b.view(np.uint32)
    want = [
        a + b, a * b, np.trunc(a / b).astype(np.int32), ua // ub, a - b * np.trunc(a / b).astype(np.int32), ua % ub,
        ua >> 3, a >> 3, np.maximum(ua, ub), np.minimum(a, b), ua < ub, np.maximum(a, b), ua >> 1, a,
        (a & 255).astype(np.float32).view(np.int32), a ^ (b | 1),
    ]  # fmt: skip
    np.testing.assert_array_equal(device.numpy(out), np.stack([np.asarray(w).astype(np.int32) for w in want]))


# ---- errors ------------------------------------------------------------------------------------------------------


@dialect(name="mlir")
def too_few_indices(x: InOut["memref<?xf32, 3>"]):
    memref.store(1.0, x, [])


@dialect(name="mlir")
def unknown(x: InOut["memref<?xf32, 3>"]):
    arith.addq(x, x)


@dialect(name="mlir")
def returns_two_kinds(x: InOut["memref<?xf32, 3>"]):
    t = nvvm.read_ptx_sreg_tid_x()
    if t > 3:
        return t


@dialect(name="mlir")
def fails(x: InOut["memref<?xf32, 3>"]):
    t = nvvm.read_ptx_sreg_tid_x()
    if t > 3:
        vassert(memref.load(x, [t]) < 100.0, "too large")


@triton.jit
def wrong(x, CASE: tl.constexpr):
    at = tl.arange(0, 128)
    a = tl.load(x + at)
    if CASE == 1:
        tle.raw.call(too_few_indices, [a])
    elif CASE == 2:
        tle.raw.call(unknown, [a])
    elif CASE == 3:
        tle.raw.call(returns_two_kinds, [a])
    elif CASE == 4:
        arith.constant(tl.int32, nvvm.read_ptx_sreg_tid_x())
    else:
        tle.raw.call(fails, [a])


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (1, "0 indices for a tensor of 1 dimensions"),
        (2, "`addq`"),
        (3, "threads return values of different kinds"),
        (4, "operations of MLIR stand in functions marked by @tle.raw.dialect"),
    ],
)
def test_what_is_wrong(case, message, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.CompilationError) as caught:
        wrong[(1,)](np.zeros(128, np.float32), case)
    assert message in str(caught.value)


@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
def test_an_assertion_of_some_threads(backend, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    x = np.zeros(128, np.float32)
    x[2] = 1000
    wrong[(1,)](x, 5)
    x[70] = 1000
    with pytest.raises(Exception, match="too large"):
        wrong[(1,)](x, 5)


@dialect(name="mlir")
def prints(x: Input["memref<?xf32, 3>"]):
    t = nvvm.read_ptx_sreg_tid_x()
    vprintf("value: %f\n", memref.load(x, [t]))


@triton.jit
def print_kernel(x):
    a = tl.load(x + tl.arange(0, 4))
    tle.raw.call(prints, [a], hardware={"threads": (4,)})


@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
def test_printing(backend, monkeypatch, capfd):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    print_kernel[(1,)](np.array([1.5, 2.5, 3.5, 4.5], np.float32))
    text = capfd.readouterr().out
    assert "value: " in text and "4.5" in text


# ---- text --------------------------------------------------------------------------------------------------------

TEXT = """
    // Each thread takes every 32nd element of a row, in a loop; what is negative counts twice.
    func.func @row_sums(%x: memref<8x96xf32, 3>, %out: memref<8x32xf32, 3>, %n: i32) {
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %ntid = nvvm.read.ptx.sreg.ntid.x : i32
      %zero = arith.constant 0.0 : f32
      %two = arith.constant 2.0 : f32
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      scf.for %row = %c0 to %n step %c1 : i32 {
        %c96 = arith.constant 96 : i32
        %sum = scf.for %i = %tid to %c96 step %ntid iter_args(%acc = %zero) -> (f32) : i32 {
          %v = memref.load %x[%row, %i] : memref<8x96xf32, 3>
          %negative = arith.cmpf olt, %v, %zero : f32
          %w = scf.if %negative -> (f32) {
            %d = arith.mulf %v, %two : f32
            scf.yield %d : f32
          } else {
            scf.yield %v : f32
          }
          %next = arith.addf %acc, %w : f32
          scf.yield %next : f32
        }
        %at = arith.index_cast %tid : i32 to index
        memref.store %sum, %out[%row, %at] : memref<8x32xf32, 3>
      }
      return
    }
    func.func @wrong(%x: memref<8x96xf32, 3>) {
      %t = gpu.thread_id x
      %v = vector.shuffle %t, %t [0, 1] : vector<1xi32>, vector<1xi32>
    }
"""


@dialect(name="mlir", source=TEXT)
def row_sums(x, out: InOut["memref<8x32xf32, 3>"], n): ...


@dialect(name="mlir", source=TEXT, extern_func_name="wrong")
def unread(x): ...


@dialect(name="mlir", source=TEXT, extern_func_name="nothing")
def not_there(x): ...


@triton.jit
def text_kernel(x, out, CASE: tl.constexpr):
    rows = tl.arange(0, 8)[:, None]
    a = tl.load(x + rows * 96 + tl.arange(0, 96)[None, :])
    sums = tl.zeros([8, 32], tl.float32)
    if CASE == 0:
        tle.raw.call(row_sums, [a, sums, 8], hardware={"threads": (32,)})
    elif CASE == 1:
        tle.raw.call(unread, [a])
    else:
        tle.raw.call(not_there, [a])
    tl.store(out + rows * 32 + tl.arange(0, 32)[None, :], sums)


def test_text(device):
    x = numbers((8, 96))
    out = device.array(np.zeros((8, 32), np.float32))
    text_kernel[(1,)](device.array(x), out, 0)
    want = np.where(x < 0, 2 * x, x).reshape(8, 3, 32).sum(1)
    np.testing.assert_array_equal(device.numpy(out), want)


@dialect(
    name="mlir",
    source="""
    func.func @extremes(%x: memref<?xf32, 3>) {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %a.1 = memref.load %x[%t] : memref<?xf32, 3>
      %a_1 = arith.negf %a.1 : f32
      %r:2 = scf.for %i = %c0 to %t step %c1 iter_args(%low = %a.1, %high = %a_1) -> (f32, f32) : i32 {
        %p = arith.minimumf %low, %high : f32
        %q = arith.maximumf %low, %high : f32
        scf.yield %p, %q : f32, f32
      }
      %d = arith.subf %r#1, %r#0 : f32
      memref.store %d, %x[%t] : memref<?xf32, 3>
      return
    }
""",
)
def extremes(x: InOut["memref<?xf32, 3>"]): ...


@triton.jit
def extremes_kernel(x_ptr):
    at = tl.arange(0, 128)
    x = tl.load(x_ptr + at)
    tle.raw.call(extremes, [x])
    tl.store(x_ptr + at, x)


def test_several_results_under_one_name(device):
    """The first thread's loop has no iteration: it keeps what goes in."""
    x = numbers(128)
    out = device.array(x.copy())
    extremes_kernel[(1,)](out)
    want = 2 * np.abs(x)
    want[0] = -2 * x[0]
    np.testing.assert_array_equal(device.numpy(out), want)


# How often 3n + 1, or n / 2, until it is 1, each thread for its own number; and a loop that all threads leave at once.
WHILE = """
    func.func @steps(%x: memref<?xi32, 3>, %n: i32) {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %c3 = arith.constant 3 : i32
      %start = memref.load %x[%t] : memref<?xi32, 3>
      %r:2 = scf.while (%a = %start, %steps = %c0) : (i32, i32) -> (i32, i32) {
        %more = arith.cmpi sgt, %a, %c1 : i32
        scf.condition(%more) %a, %steps : i32, i32
      } do {
      ^bb0(%b: i32, %s: i32):
        %odd = arith.andi %b, %c1 : i32
        %is_odd = arith.cmpi ne, %odd, %c0 : i32
        %next = scf.if %is_odd -> (i32) {
          %m = arith.muli %b, %c3 : i32
          %u = arith.addi %m, %c1 : i32
          scf.yield %u : i32
        } else {
          %h = arith.divsi %b, %c2 : i32
          scf.yield %h : i32
        }
        %s1 = arith.addi %s, %c1 : i32
        scf.yield %next, %s1 : i32, i32
      }
      scf.while (%k = %c0) : (i32) -> () {
        %l = arith.cmpi slt, %k, %n : i32
        scf.condition(%l)
      } do {
        %k1 = arith.addi %k, %c1 : i32
        scf.yield %k1 : i32
      }
      %sum = arith.addi %r#0, %r#1 : i32
      memref.store %sum, %x[%t] : memref<?xi32, 3>
      return
    }
    func.func @nested(%x: memref<?xi32, 3>) {
      %c = arith.constant true
      scf.while : () -> () {
        scf.if %c {
        }
        scf.condition(%c)
      } do {
        scf.yield
      }
      return
    }
    func.func @endless(%x: memref<?xi32, 3>) {
      scf.while : () -> () {
      } do {
        scf.yield
      }
      return
    }
"""


@dialect(name="mlir", source=WHILE)
def steps(x: InOut["memref<?xi32, 3>"], n: Input["i32"]): ...


@dialect(name="mlir", source=WHILE, extern_func_name="nested")
def nested_while(x, n): ...


@dialect(name="mlir", source=WHILE, extern_func_name="endless")
def endless_while(x, n): ...


@triton.jit
def while_kernel(x_ptr, n, CASE: tl.constexpr):
    at = tl.arange(0, 128)
    x = tl.load(x_ptr + at)
    if CASE == 0:
        tle.raw.call(steps, [x, n])
    elif CASE == 1:
        tle.raw.call(nested_while, [x, n])
    else:
        tle.raw.call(endless_while, [x, n])
    tl.store(x_ptr + at, x)


def test_while_in_text(device):
    x = np.arange(1, 129, dtype=np.int32)
    out = device.array(x.copy())
    while_kernel[(1,)](out, 5, 0)
    np.testing.assert_array_equal(device.numpy(out), [1 + steps_of(int(n)) for n in x])


def test_whiles_that_are_not_read():
    x = np.zeros(128, np.int32)
    for case, message in [
        (1, "not supported yet: a region in front of the condition of scf.while"),
        (2, "the first region of scf.while ends in scf.condition"),
    ]:
        with pytest.raises(triton.CompilationError, match=message):
            while_kernel[(1,)](x, 5, case)


def test_text_that_is_not_read(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    args = np.zeros((8, 96), np.float32), np.zeros((8, 32), np.float32)
    with pytest.raises(triton.CompilationError, match=r"line 30: not supported yet: %v = vector\.shuffle"):
        text_kernel[(1,)](*args, 1)
    with pytest.raises(triton.CompilationError, match=r"no function @nothing; there are: row_sums, wrong"):
        text_kernel[(1,)](*args, 2)


# ---- vectors -----------------------------------------------------------------------------------------------------

VECTORS = """
    func.func @rows(%x: memref<32x12xf32, 3>, %i: memref<32x8xi32, 3>, %n: i32) {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %c0 = arith.constant 0 : i32
      %c4 = arith.constant 4 : i32
      %c8 = arith.constant 8 : i32
      %two = arith.constant dense<2.0> : vector<4xf32>
      %zero = arith.constant 0.0 : f32
      %a = vector.load %x[%t, %c0] : memref<32x12xf32, 3>, vector<4xf32>
      %b = vector.load %x[%t, %c4] : memref<32x12xf32, 3>, vector<4xf32>
      %c = vector.fma %a, %two, %b : vector<4xf32>
      %negative = arith.cmpf olt, %c, %b : vector<4xf32>
      %d = arith.select %negative, %b, %c : vector<4xi1>, vector<4xf32>
      %s = vector.reduction <add>, %a : vector<4xf32> into f32
      %m = vector.reduction <maximumf>, %b, %s : vector<4xf32> into f32
      %e = vector.insert %m, %d[1] : f32 into vector<4xf32>
      %f = vector.extract %a[2] : f32 from vector<4xf32>
      %first = arith.cmpf olt, %f, %zero : f32
      scf.if %first {
        vector.store %e, %x[%t, %c8] : memref<32x12xf32, 3>, vector<4xf32>
      } else {
        %g = vector.broadcast %f : f32 to vector<4xf32>
        vector.store %g, %x[%t, %c8] : memref<32x12xf32, 3>, vector<4xf32>
      }
      %p = vector.load %i[%t, %c0] : memref<32x8xi32, 3>, vector<8xi32>
      %k = vector.extractelement %p[%n : i32] : vector<8xi32>
      %q = vector.insertelement %t, %p[%n : i32] : vector<8xi32>
      %r = arith.addi %q, %q : vector<8xi32>
      vector.store %r, %i[%t, %c0] : memref<32x8xi32, 3>, vector<8xi32>
      memref.store %k, %i[%t, %c0] : memref<32x8xi32, 3>
      return
    }
"""


@dialect(name="mlir", source=VECTORS)
def rows(x: InOut["memref<32x12xf32, 3>"], i: InOut["memref<32x8xi32, 3>"], n: Input["i32"]): ...


@dialect(name="mlir")
def scaled(x: InOut["memref<32x12xf32, 3>"], factor: Input["f32"]):
    t = nvvm.read_ptx_sreg_tid_x()
    six = ir.VectorType.get([6], ir.F32Type.get())
    v = vector.load(six, x, [t, arith.constant(ir.IntegerType.get_signless(32), 3)])
    for _ in range(t):
        v = arith.addf(v, vector.splat(six, factor))
    vector.store(v, x, [t, arith.constant(ir.IntegerType.get_signless(32), 3)])


@dialect(name="mlir")
def mixed(x: InOut["memref<32x12xf32, 3>"], factor: Input["f32"]):
    t = nvvm.read_ptx_sreg_tid_x()
    zero = arith.constant(ir.IntegerType.get_signless(32), 0)
    v = vector.load(ir.VectorType.get([4], ir.F32Type.get()), x, [t, zero])
    vector.store(arith.addf(v, memref.load(x, [t, zero])), x, [t, zero])


@triton.jit
def vector_kernel(x_ptr, i_ptr, n, CASE: tl.constexpr):
    row = tl.arange(0, 32)[:, None]
    at, places = row * 12 + tl.arange(0, 12)[None, :], row * 8 + tl.arange(0, 8)[None, :]
    x, i = tl.load(x_ptr + at), tl.load(i_ptr + places)
    if CASE == 0:
        tle.raw.call(rows, [x, i, n], hardware={"threads": (32,)})
    elif CASE == 1:
        tle.raw.call(scaled, [x, 0.5], hardware={"threads": (32,)})
    else:
        tle.raw.call(mixed, [x, 0.5], hardware={"threads": (32,)})
    tl.store(x_ptr + at, x)
    tl.store(i_ptr + places, i)


def test_vectors_in_text(device):
    x, i = numbers((32, 12)), numbers((32, 8), "int32", 1)
    outs = device.array(x.copy()), device.array(i.copy())
    vector_kernel[(1,)](*outs, 5, 0)
    a, b = x[:, :4], x[:, 4:8]
    c = 2 * a + b
    e = np.where(c < b, b, c)
    e[:, 1] = np.maximum(b.max(1), a.sum(1))
    want = x.copy()
    want[:, 8:] = np.where(a[:, 2:3] < 0, e, a[:, 2:3])
    np.testing.assert_array_equal(device.numpy(outs[0]), want)
    ints = i.copy()
    ints[:, 5] = np.arange(32)
    ints *= 2
    ints[:, 0] = i[:, 5]
    np.testing.assert_array_equal(device.numpy(outs[1]), ints)


def test_vectors_in_python(device):
    """A vector of 6 elements, in a loop that each thread leaves at its own time."""
    x, i = numbers((32, 12)), numbers((32, 8), "int32", 1)
    outs = device.array(x.copy()), device.array(i.copy())
    vector_kernel[(1,)](*outs, 5, 1)
    want = x.copy()
    want[:, 3:9] += 0.5 * np.arange(32)[:, None]
    np.testing.assert_array_equal(device.numpy(outs[0]), want)


def test_a_number_beside_a_vector():
    with pytest.raises(triton.CompilationError, match="a number of each thread stands with a vector"):
        vector_kernel[(1,)](numbers((32, 12)), numbers((32, 8), "int32"), 5, 2)


# ---- returns -----------------------------------------------------------------------------------------------------


@dialect(name="mlir")
def leaves_early(x: InOut["memref<?xf32, 3>"], n: Input["i32"]):
    t = nvvm.read_ptx_sreg_tid_x()
    v = memref.load(x, [t])
    if n < 0:
        return
    if v < 0.0:
        return
    i = 0
    while i < n:
        if v > 50.0:
            memref.store(v + 1000.0, x, [t])
            return
        v = v * 2.0
        i += 1
    memref.store(v, x, [t])


@dialect(name="mlir")
def first_above(x: Input["memref<?xf32, 3>"], limit: Input["f32"]):
    v = memref.load(x, [nvvm.read_ptx_sreg_tid_x()])
    for i in range(0, 20):
        for _k in range(0, 2):
            if v > limit:
                return i, v
            v = v + 1.0
    return -1, 0.0


@dialect(name="mlir")
def until_found(x: Input["memref<?xf32, 3>"]):
    v = memref.load(x, [nvvm.read_ptx_sreg_tid_x()])
    n = 0
    while True:
        if v > 100.0:
            return n
        v = v + v + 1.0
        n += 1


@triton.jit
def returning(x_ptr, n_ptr, v_ptr, m_ptr, n):
    at = tl.arange(0, 128)
    x = tl.load(x_ptr + at)
    number, value = tle.raw.call(first_above, [x, 5.0])
    tl.store(n_ptr + at, number)
    tl.store(v_ptr + at, value)
    tle.raw.call(leaves_early, [x, n])
    tl.store(x_ptr + at, x)
    tl.store(m_ptr + at, tle.raw.call(until_found, [tl.abs(x)]))


def return_early(v, n):
    if n < 0 or v < 0:
        return v
    for _ in range(n):
        if v > 50:
            return v + 1000
        v = v * 2
    return v


def find_first(v):
    for i in range(20):
        for _ in range(2):
            if v > 5:
                return i, v
            v = v + 1
    return -1, 0


def doublings(v):
    n = 0
    while not v > 100:
        v, n = v + v + 1, n + 1
    return n


@pytest.mark.parametrize("n", [10, 0, -1])
def test_some_threads_return(device, n):
    x = np.arange(-64, 64).astype(np.float32) / 2
    out = device.array(x.copy())
    numbers = device.array(np.zeros(128, np.int32))
    values, counts = device.array(np.zeros(128, np.float32)), device.array(np.zeros(128, np.int32))
    returning[(1,)](out, numbers, values, counts, n)
    want = np.array([return_early(v, n) for v in x], np.float32)
    first = [find_first(v) for v in x]
    np.testing.assert_array_equal(device.numpy(numbers), [i for i, _ in first])
    np.testing.assert_array_equal(device.numpy(values), [v for _, v in first])
    np.testing.assert_array_equal(device.numpy(out), want)
    np.testing.assert_array_equal(device.numpy(counts), [doublings(abs(v)) for v in want])


# ---- vectors of several dimensions -------------------------------------------------------------------------------


@dialect(
    name="mlir",
    pipeline=["canonicalize", "convert-vector-to-llvm"],
    source="""
    func.func @planes(%x: memref<32x3x4xf32, 3>) -> (f32, i32, memref<32x3x4xf32, 3>) {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %c0 = arith.constant 0 : i32
      %c = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : vector<2x4xf32>
      %v = vector.load %x[%t, %c0, %c0] : memref<32x3x4xf32, 3>, vector<3x4xf32>
      %r = vector.extract %v[1] : vector<4xf32> from vector<3x4xf32>
      %e = vector.extract %v[2, %c0] : f32 from vector<3x4xf32>
      %b = vector.broadcast %r : vector<4xf32> to vector<2x4xf32>
      %p = arith.mulf %b, %c : vector<2x4xf32>
      %acc = arith.constant dense<[10.0, 20.0]> : vector<2xf32>
      %m = vector.multi_reduction <add>, %p, %acc [1] : vector<2x4xf32> to vector<2xf32>
      %s = vector.reduction <add>, %m : vector<2xf32> into f32
      %q = arith.addf %s, %e : f32
      %tr = vector.transpose %p, [1, 0] : vector<2x4xf32> to vector<4x2xf32>
      %flat = vector.shape_cast %tr : vector<4x2xf32> to vector<2x4xf32>
      %w = vector.insert %r, %v[0] : vector<4xf32> into vector<3x4xf32>
      %z = vector.insert %e, %w[2, 3] : f32 into vector<3x4xf32>
      vector.store %z, %x[%t, %c0, %c0] : memref<32x3x4xf32, 3>, vector<3x4xf32>
      %c1 = arith.constant 1 : i32
      vector.store %flat, %x[%t, %c1, %c0] : memref<32x3x4xf32, 3>, vector<2x4xf32>
      return %q, %t, %x : f32, i32, memref<32x3x4xf32, 3>
    }
""",
)
def planes(x: InOut["memref<32x3x4xf32, 3>"]): ...


@triton.jit
def planes_kernel(x_ptr, a_ptr, b_ptr):
    one = tl.arange(0, 32)
    at = one[:, None, None] * 12 + tl.arange(0, 3)[None, :, None] * 4 + tl.arange(0, 4)[None, None, :]
    x = tl.load(x_ptr + at)
    a, b, x = tle.raw.call(planes, [x], hardware={"threads": (32,)})
    tle.raw.call(negate, [x], hardware={"threads": (32,)})
    tl.store(a_ptr + one, a)
    tl.store(b_ptr + one, b)
    tl.store(x_ptr + at, x)


@dialect(name="mlir")
def negate(x: InOut["memref<32x3x4xf32, 3>"]):
    t = nvvm.read_ptx_sreg_tid_x()
    some = ir.VectorType.get([3, 2], ir.F32Type.get())
    v = vector.load(some, x, [t, 0, 1])
    vector.store(arith.mulf(v, vector.splat(some, arith.constant(ir.F32Type.get(), -1.0))), x, [t, 0, 1])


def test_vectors_of_several_dimensions(device):
    x = numbers((32, 3, 4))
    c = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    p = x[:, 1, None] * c
    a, b, out = (device.array(v) for v in (np.zeros(32, np.float32), np.zeros(32, np.int32), x.copy()))
    planes_kernel[(1,)](out, a, b)
    np.testing.assert_array_equal(device.numpy(a), p.sum((1, 2)) + 30 + x[:, 2, 0])
    np.testing.assert_array_equal(device.numpy(b), np.arange(32))
    want = np.concatenate([x[:, 1, None], p.transpose(0, 2, 1).reshape(32, 2, 4)], 1)
    want[:, :, 1:3] *= -1
    np.testing.assert_array_equal(device.numpy(out), want)


def test_a_pipeline_of_passes():
    with pytest.raises(ValueError, match="`pipeline` has the pass 'affine-loop-fusion'"):
        dialect(name="mlir", pipeline=["canonicalize", "affine-loop-fusion"])
    with pytest.raises(TypeError, match="`pipeline` of a function in MLIR is a list of names of passes"):
        dialect(name="mlir", pipeline="canonicalize")


@dialect(name="mlir")
def rows_and_threads(x: Input["memref<4x8xi32, 3>"], sums: InOut["memref<4xi32, 3>"]):
    t = nvvm.read_ptx_sreg_tid_x()
    # Each part is for the threads that take it: of the others there is no row.
    first = memref.load(x, [t, 0]) if t < 4 else -1
    if t < 4:
        total = first
        for j in range(1, 8):
            v = memref.load(x, [t, j])
            total = total + (v if v > 0 else -2 * v)
        memref.store(total, sums, [t])
    return t * 2, first


@triton.jit
def rows_and_threads_kernel(x, out, given):
    i, j, t = tl.arange(0, 4), tl.arange(0, 8), tl.arange(0, 128)
    block, sums = tl.load(x + i[:, None] * 8 + j[None, :]), tl.zeros((4,), tl.int32)
    double, first = tle.raw.call(rows_and_threads, [block, sums])
    tl.store(out + i, sums)
    tl.store(given + t, double)
    tl.store(given + 128 + t, first)


def test_what_a_function_writes_beside_what_it_returns(device):
    x = numbers((4, 8), "int32")
    out, given = device.empty(4, np.int32), device.empty(256, np.int32)
    rows_and_threads_kernel[(1,)](device.array(x), out, given)
    rest = x[:, 1:]
    np.testing.assert_array_equal(device.numpy(out), x[:, 0] + np.where(rest > 0, rest, -2 * rest).sum(1))
    want = np.concatenate([np.arange(128) * 2, x[:, 0], np.full(124, -1)])
    np.testing.assert_array_equal(device.numpy(given), want)
