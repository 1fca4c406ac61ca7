"""`tle.raw` with buffers that lie swizzled, as TMA brings tiles and tensor cores read them."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tle.raw import InOut, Input, dialect
from tilewright.tle.raw.mlir import memref, nvvm

#: How `wgmma` deals out 64 x 128 sums.
SUMS = tl.constexpr(tle.gpu.MmaEncoding(3, [4, 1], [16, 128, 16]))

# Row r of 64 halves has its 8 groups of 16 bytes in the places of their numbers, exclusive or r % 8 (PTX ISA, "Swizzling modes").
ROWS = """
    extern "C" __device__ void rows(float* out, const unsigned short* x) {
      for (int row = threadIdx.x; row < 64; row += blockDim.x) {
        float sum = 0.0f;
        for (int column = 0; column < 64; column++) {
          unsigned short half = x[row * 64 + ((column / 8) ^ (row % 8)) * 8 + column % 8];
          float value;
          asm("{ .reg .b16 h; mov.b16 h, %1; cvt.f32.f16 %0, h; }" : "=f"(value) : "h"(half));
          sum += value * (column + 1);
        }
        out[row] = sum;
      }
    }
"""

# Products of a [64, 64] and b [128, 64], both swizzled by 128 bytes: 8 rows are 1024 bytes, 16 further along K 32 bytes.
MULTIPLY = r"""
    struct Sums { float v[64]; };
    #define FOUR(i) "+f"(d.v[i]), "+f"(d.v[i + 1]), "+f"(d.v[i + 2]), "+f"(d.v[i + 3])
    #define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
    #define PRODUCT                                                                                    \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"                                          \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                         \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "               \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "               \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "              \
      "%64, %65, 1, 1, 1, 0, 0;"
    #define NEXT "add.s64 %64, %64, 2; add.s64 %65, %65, 2;"
    __device__ unsigned long long swizzled(const void* at) {
      unsigned address = __cvta_generic_to_shared(at);
      return (unsigned long long)(address >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
    }
    __device__ Sums multiply(Sums given, const unsigned short* a, const unsigned short* b) {
      __builtin_assume(__isShared(a));
      __builtin_assume(__isShared(b));
      Sums d = given;
      unsigned long long left = swizzled(a), right = swizzled(b);
      asm volatile(
          "wgmma.fence.sync.aligned;" PRODUCT NEXT PRODUCT NEXT PRODUCT NEXT PRODUCT
          "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
          : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), "+l"(left), "+l"(right)::"memory");
      return d;
    }
"""


@dialect(name="cuda", source=ROWS)
def rows(out: InOut["memref<64xf32, 3>"], x: Input["memref<64x64xf16, 3>"]): ...


@dialect(name="cuda", source=MULTIPLY)
def multiply(
    d: InOut["tensor<64x128xf32>"], a: Input["memref<64x64xf16, 3>"], b: Input["memref<128x64xf16, 3>"]
): ...


@dialect(name="mlir")
def diagonal(out: InOut["memref<64xf32, 3>"], x: Input["memref<64x64xf16, 3>"]):
    t = nvvm.read_ptx_sreg_tid_x()
    memref.store(memref.load(x, [t, t]).to(tl.float32), out, [t])


@triton.jit
def of_a_tensor(x_ptr, out_ptr, KIND: tl.constexpr):
    at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    x = tl.load(x_ptr + at)
    out = tl.zeros([64], tl.float32)
    if KIND == 0:
        tle.raw.call(rows, [out, x], layout={x: {"space": "shared", "swizzle": 128}})
    elif KIND == 1:
        tle.raw.call(
            rows, [out, x], layout={"x": tle.gpu.nv_mma_shared_layout.make_default([64, 64], tl.float16)}
        )
    else:
        tle.raw.call(
            diagonal,
            [out, x],
            layout={x: {"space": "shared", "swizzle": 64}},
            hardware={"threads": (64,)},
        )
    tl.store(out_ptr + tl.arange(0, 64), out)


@triton.jit
def of_a_buffer(x_ptr, out_ptr, GIVEN: tl.constexpr, ASKED: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, [64, 64], [64, 1], [64, 64])
    if GIVEN == 0:
        x = tle.gpu.alloc([64, 64], dtype=tl.float16)
    else:
        x = tle.gpu.alloc(
            [64, 64], dtype=tl.float16, layout=tle.gpu.nv_mma_shared_layout.make_default([64, 64], tl.float16)
        )
    tle.gpu.copy(desc, x, [64, 64], [0, 0])
    out = tl.zeros([64], tl.float32)
    if ASKED == 0:
        tle.raw.call(rows, [out, x])
    else:
        tle.raw.call(rows, [out, x], layout={"x": {"space": "shared", "swizzle": ASKED}})
    tl.store(out_ptr + tl.arange(0, 64), out)


@triton.jit
def product(a_ptr, b_ptr, c_ptr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [64, 64], [64, 1], [64, 64])
    b_desc = tl.make_tensor_descriptor(b_ptr, [128, 64], [64, 1], [128, 64])
    a = tle.gpu.alloc([64, 64], dtype=tl.float16)
    b = tle.gpu.alloc([128, 64], dtype=tl.float16)
    full = tle.gpu.alloc_barriers(1, expect_bytes=24576)
    tle.gpu.copy(a_desc, a, [64, 64], [0, 0], barrier=full[0])
    tle.gpu.copy(b_desc, b, [128, 64], [0, 0], barrier=full[0])
    tle.gpu.barrier_wait(full[0], phaseIdx=0)
    d = tl.zeros([64, 128], tl.float32)
    tle.raw.call(
        multiply,
        [d, a, b],
        layout={
            d: SUMS,
            "a": {"space": "shared", "swizzle": 128},
            "b": {"space": "shared", "swizzle": 128},
        },
    )
    at = tl.arange(0, 64)[:, None] * 128 + tl.arange(0, 128)[None, :]
    tl.store(c_ptr + at, d)


def halves(*shape, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float16)


def weighted(x):
    return (x.astype(np.float32) * np.arange(1, x.shape[1] + 1)).sum(1)


@pytest.mark.parametrize("kind", [0, 1])
def test_a_tensor(native, kind):
    x = halves(64, 64)
    out = native.array(np.zeros(64, np.float32))
    of_a_tensor[(1,)](native.array(x), out, kind)
    np.testing.assert_array_equal(native.numpy(out), weighted(x))


def test_elements_of_a_swizzled_tensor(device):
    x = halves(64, 64)
    out = device.array(np.zeros(64, np.float32))
    of_a_tensor[(1,)](device.array(x), out, 2)
    np.testing.assert_array_equal(device.numpy(out), np.diag(x).astype(np.float32))


@pytest.mark.parametrize("given", [0, 1])
def test_a_buffer_that_tma_fills(native, given):
    x = halves(64, 64)
    out = native.array(np.zeros(64, np.float32))
    of_a_buffer[(1,)](native.array(x), out, given, 128)
    np.testing.assert_array_equal(native.numpy(out), weighted(x))


def test_tensor_cores(native):
    a, b = halves(64, 64), halves(128, 64, seed=1)
    c = native.array(np.zeros((64, 128), np.float32))
    product[(1,)](native.array(a), native.array(b), c)
    np.testing.assert_array_equal(native.numpy(c), a.astype(np.float32) @ b.astype(np.float32).T)


def test_what_is_refused(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    x, out = halves(64, 64), np.zeros(64, np.float32)
    for given, asked, message in [
        (1, 0, "a buffer that is swizzled, and whose `layout` doesn't say so"),
        (1, 64, "`layout` says that the buffer `x` lies in another way than tle.gpu.alloc says"),
        (0, 48, "the key 'swizzle' with constexpr 48 means nothing"),
    ]:
        with pytest.raises(triton.CompilationError, match=message):
            of_a_buffer[(1,)](x, out, given, asked)
