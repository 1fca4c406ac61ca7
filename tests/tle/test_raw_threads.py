"""`tle.raw` with threads of two and three dimensions: in every language, on every backend that has it."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tle.raw import InOut, dialect
from tilewright.tle.raw.mlir import gpu, memref, nvvm

PTX = """
    .version 8.0
    .target sm_80
    .address_size 64
    .func in_ptx(.param .b64 x)
    {
        .reg .b32 %r<5>;
        .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [x];
        mov.u32 %r1, %tid.x;
        mov.u32 %r2, %tid.y;
        mov.u32 %r3, %ntid.x;
        mad.lo.u32 %r3, %r2, %r3, %r1;
        mad.wide.u32 %rd2, %r3, 4, %rd1;
        mov.u32 %r4, %ntid.y;
        mad.lo.u32 %r1, %r1, 100, %r2;
        mad.lo.u32 %r1, %r4, 10000, %r1;
        st.u32 [%rd2], %r1;
        ret;
    }
"""

LLVM = """
    declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
    declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
    declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
    declare i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
    define void @in_llvm(ptr addrspace(3) %x) {
      %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
      %j = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
      %n = call i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
      %m = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
      %a = mul i32 %i, 100
      %b = mul i32 %n, 10000
      %c = add i32 %a, %j
      %d = add i32 %c, %b
      %r = mul i32 %j, %m
      %s = add i32 %r, %i
      %p = getelementptr i32, ptr addrspace(3) %x, i32 %s
      store i32 %d, ptr addrspace(3) %p
      ret void
    }
"""

CUDA = """
    extern "C" __device__ void in_cuda(int* x) {
      x[threadIdx.y * blockDim.x + threadIdx.x] = blockDim.y * 10000 + threadIdx.x * 100 + threadIdx.y;
    }
"""


@dialect(name="ptx", source=PTX)
def in_ptx(x: InOut["memref<?x?xi32, 3>"]): ...


@dialect(name="llvm", source=LLVM)
def in_llvm(x: InOut["memref<?x?xi32, 3>"]): ...


@dialect(name="cuda", source=CUDA)
def in_cuda(x: InOut["memref<?x?xi32, 3>"]): ...


@dialect(name="mlir")
@tle.hardware_constraint(threads_dim=2)
def in_mlir(x: InOut["memref<?x?xi32, 3>"]):
    i = nvvm.read_ptx_sreg_tid_x()
    j = nvvm.read_ptx_sreg_tid_y()
    memref.store(nvvm.read_ptx_sreg_ntid_y() * 10000 + i * 100 + j, x, [j, i])


@triton.jit
def plane(x_ptr, function: tl.constexpr, X: tl.constexpr, Y: tl.constexpr):
    at = tl.arange(0, 8)[:, None] * X + tl.arange(0, X)[None, :]
    x = tl.load(x_ptr + at)
    tle.raw.call(function, [x], hardware={"threads": (X, Y)})
    tl.store(x_ptr + at, x)


def plane_of(shape, rows):
    """The rows that as many threads along y write."""
    want = np.zeros(shape, np.int32)
    j, i = np.indices((rows, shape[1]))
    want[:rows] = rows * 10000 + i * 100 + j
    return want


@pytest.mark.parametrize("rows", [8, 3])
@pytest.mark.parametrize("function", [in_ptx, in_llvm, in_cuda])
def test_two_dimensions(native, function, rows):
    x = native.array(np.zeros((8, 16), np.int32))
    plane[(1,)](x, function, 16, rows)
    np.testing.assert_array_equal(native.numpy(x), plane_of((8, 16), rows))


@pytest.mark.parametrize("rows", [8, 3])
def test_two_dimensions_in_mlir(device, rows):
    x = device.array(np.zeros((8, 16), np.int32))
    plane[(1,)](x, in_mlir, 16, rows)
    np.testing.assert_array_equal(device.numpy(x), plane_of((8, 16), rows))


@dialect(name="mlir")
def cube(x: InOut["memref<?xi32, 3>"]):
    i, j, k = gpu.thread_id(0), gpu.thread_id(gpu.Dimension.y), gpu.thread_id(2)
    at = (k * gpu.block_dim(1) + j) * gpu.block_dim(0) + i
    memref.store((i + 10 * j + 100 * k).to(tl.int32), x, [at])


@dialect(name="mlir", source="""
    func.func @cube_in_text(%x: memref<?xi32, 3>) {
      %i = nvvm.read.ptx.sreg.tid.x : i32
      %j = nvvm.read.ptx.sreg.tid.y : i32
      %k = gpu.thread_id z
      %l = arith.index_cast %k : index to i32
      %c4 = arith.constant 4 : i32
      %c2 = arith.constant 2 : i32
      %c10 = arith.constant 10 : i32
      %c100 = arith.constant 100 : i32
      %a = arith.muli %l, %c4 : i32
      %b = arith.addi %a, %j : i32
      %c = arith.muli %b, %c2 : i32
      %at = arith.addi %c, %i : i32
      %d = arith.muli %j, %c10 : i32
      %e = arith.muli %l, %c100 : i32
      %f = arith.addi %d, %e : i32
      %g = arith.addi %f, %i : i32
      memref.store %g, %x[%at] : memref<?xi32, 3>
      return
    }
""")  # fmt: skip
def cube_in_text(x: InOut["memref<?xi32, 3>"]): ...


@triton.jit
def cubic(x_ptr, function: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 64))
    tle.raw.call(function, [x], hardware={"threads": (2, 4, 8)})
    tl.store(x_ptr + tl.arange(0, 64), x)


@pytest.mark.parametrize("function", [cube, cube_in_text])
def test_three_dimensions(device, function):
    x = device.array(np.zeros(64, np.int32))
    cubic[(1,)](x, function)
    k, j, i = np.indices((8, 4, 2))
    np.testing.assert_array_equal(device.numpy(x), (i + 10 * j + 100 * k).ravel())


@dialect(
    name="cuda",
    source="""
    __noinline__ __device__ int who() { return threadIdx.x; }
    extern "C" __device__ void asks(int* x) { x[threadIdx.x] = who(); }
    """,
)
def asks(x: InOut["memref<?x?xi32, 3>"]): ...


def test_what_is_refused(native):
    x = native.array(np.zeros((8, 16), np.int32))
    with pytest.raises(
        triton.CompilationError, match="`_Z3whov`, which it calls, asks for the thread's number"
    ):
        plane[(1,)](x, asks, 16, 8)
    with pytest.raises(triton.CompilationError, match="wants 256 threads, but 128 run this"):
        plane[(1,)](x, in_cuda, 16, 16)
    with pytest.raises(triton.CompilationError, match="extents of 1 to 1024 threads along 1 to 3 dimensions"):
        plane[(1,)](x, in_cuda, 16, 0)
    with pytest.raises(
        triton.CompilationError, match="declared with threads_dim=2, but `threads` of `hardware` has 3"
    ):
        cubic[(1,)](x, in_mlir)
