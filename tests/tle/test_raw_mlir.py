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
def returns_early(x: InOut["memref<?xf32, 3>"]):
    t = nvvm.read_ptx_sreg_tid_x()
    if t < 5:
        return
    memref.store(1.0, x, [t])


@dialect(name="mlir")
def too_few_indices(x: InOut["memref<?xf32, 3>"]):
    memref.store(1.0, x, [])


@dialect(name="mlir")
def unknown(x: InOut["memref<?xf32, 3>"]):
    arith.addq(x, x)


@dialect(name="mlir")
def returns_a_number(x: InOut["memref<?xf32, 3>"]):
    return nvvm.read_ptx_sreg_tid_x()


@dialect(name="mlir")
def fails(x: InOut["memref<?xf32, 3>"]):
    t = nvvm.read_ptx_sreg_tid_x()
    if t > 3:
        vassert(memref.load(x, [t]) < 100.0, "too large")


@triton.jit
def wrong(x, CASE: tl.constexpr):
    at = tl.arange(0, 128)
    a = tl.load(x + at)
    if CASE == 0:
        tle.raw.call(returns_early, [a])
    elif CASE == 1:
        tle.raw.call(too_few_indices, [a])
    elif CASE == 2:
        tle.raw.call(unknown, [a])
    elif CASE == 3:
        tle.raw.call(returns_a_number, [a])
    elif CASE == 4:
        arith.constant(tl.int32, nvvm.read_ptx_sreg_tid_x())
    else:
        tle.raw.call(fails, [a])


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (0, "not supported yet: `return` under a condition that differs between threads"),
        (1, "0 indices for a tensor of 1 dimensions"),
        (2, "`addq`"),
        (3, "not supported yet: a value that `returns_a_number`, a function in MLIR, returns"),
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
      %v = vector.load %x[%t, %t] : memref<8x96xf32, 3>, vector<4xf32>
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


def test_text_that_is_not_read(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    args = np.zeros((8, 96), np.float32), np.zeros((8, 32), np.float32)
    with pytest.raises(triton.CompilationError, match=r"line 30: not supported yet: %v = vector\.load"):
        text_kernel[(1,)](*args, 1)
    with pytest.raises(triton.CompilationError, match=r"no function @nothing; there are: row_sums, wrong"):
        text_kernel[(1,)](*args, 2)
