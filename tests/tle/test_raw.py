"""`tle.raw`: functions in PTX, LLVM IR and CUDA inside kernels, in the simulator and on a GPU; what goes wrong with them."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import order
import pytest
import raw_matmul
import raw_workloads

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.testing import simulate_ptx, tensor_map
from tilewright.tle.raw import InOut, Input, dialect
from tilewright.tle.raw.languages import _nvrtc
from tilewright.tle.raw.languages.cuda import _headers


def numbers(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(dtype)


# ---- PTX ---------------------------------------------------------------------------------------------------------


@dialect(name="ptx", source="add.f32 %[out], %[x], %[y];")
def ptx_add(out: InOut["tensor<?xf32>"], x: Input["tensor<?xf32>"], y): ...


@triton.jit
def add_by_ptx(x, y, out, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    tl.store(out + at, tle.raw.call(ptx_add, [a, a, tl.load(y + at)]))


@pytest.mark.parametrize("n", [32, 128])
def test_ptx_with_an_element_a_thread(native, n):
    x, y = numbers(n), numbers(n, seed=1)
    out = native.array(np.zeros(n, np.float32))
    add_by_ptx[(1,)](native.array(x), native.array(y), out, n)
    np.testing.assert_array_equal(native.numpy(out), x + y)


@dialect(
    name="ptx",
    source="""
    .reg .b32 t;
    add.s32 t, %[x.0], %[x.3];
    add.s32 %[x.0], t, %[n];
    shl.b32 %[x.1], %[x.1], 1;
    mov.b32 %[x.2], %[x.1];
    """,
)
def ptx_mix(x: InOut["tensor<512xi32>"], n: Input["i32"]): ...


FOUR = tle.gpu.BlockEncoding([4], [32], [4], [0])


@triton.jit
def mix_by_ptx(x, n):
    at = tl.arange(0, 512)
    a = tl.load(x + at)
    tle.raw.call(ptx_mix, [a, n], layout={a: FOUR})
    tl.store(x + at, a)


def test_ptx_with_several_elements_a_thread(native):
    x = numbers(512, "int32")
    given = native.array(x)
    mix_by_ptx[(1,)](given, 7)
    a = x.reshape(-1, 4)
    want = np.stack([a[:, 0] + a[:, 3] + 7, 2 * a[:, 1], 2 * a[:, 1], a[:, 3]], 1)
    np.testing.assert_array_equal(native.numpy(given), want.reshape(-1))


MODULE = """
    .version 8.0
    .target sm_80
    .address_size 64
    .const .align 4 .b32 bias[2] = {100, 200};  // a table
    .func (.param .b32 r) helper(.param .b32 a) {
      .reg .b32 %r<3>;
      ld.param.b32 %r1, [a];
      add.s32 %r2, %r1, 1;
      st.param.b32 [r], %r2;
      ret;
    }
    .visible .func (.param .b32 r) clip(.param .b32 x, .param .b32 top)
    {
      .reg .pred %p;
      .reg .b32 %r<6>;
      ld.param.u32 %r1, [x];
      ld.param.u32 %r2, [top];
      setp.le.s32 %p, %r1, %r2;
      @%p bra $L__small;
      st.param.b32 [r+0], %r2;
      ret;
    $L__small:
      { .param .b32 p0; .param .b32 r0;
        st.param.b32 [p0], %r1;
        call.uni (r0), helper, (p0);
        ld.param.b32 %r3, [r0]; }
      ld.const.b32 %r4, [bias];
      add.s32 %r5, %r3, %r4;
      st.param.b32 [r+0], %r5;
      ret;
    }
"""


@dialect(name="ptx", source=MODULE)
def clip(x: InOut["tensor<?xi32>"], top): ...


@triton.jit
def clip_by_ptx(x, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    for top in tl.static_range(2):
        a = tle.raw.call(clip, [a, 150 - 50 * top])
    tl.store(x + at, a)


def test_a_function_of_ptx_with_what_it_needs(native):
    x = numbers(128, "int32")
    given = native.array(x)
    clip_by_ptx[(1,)](given, 128)
    want = x
    for top in (150, 100):
        want = np.where(want <= top, want + 101, top)
    np.testing.assert_array_equal(native.numpy(given), want)


# ---- LLVM IR -----------------------------------------------------------------------------------------------------

LLVM = """
    @offset = private constant float 1.0
    define {float, i32} @both(float %a, i32 %b) {
      %o = load float, ptr @offset
      %c = fadd float %a, %o
      %d = call i32 @twice(i32 %b)
      %r = insertvalue {float, i32} poison, float %c, 0
      %s = insertvalue {float, i32} %r, i32 %d, 1
      ret {float, i32} %s
    }
    define i32 @twice(i32 %b) {
      %d = shl i32 %b, 1
      ret i32 %d
    }
    define void @scatter(ptr addrspace(1) %p, ptr addrspace(3) %s) {
      %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
      %u = xor i32 %t, 127
      %a = getelementptr float, ptr addrspace(3) %s, i32 %u
      %v = load float, ptr addrspace(3) %a
      %q = getelementptr float, ptr addrspace(1) %p, i32 %t
      store float %v, ptr addrspace(1) %q
      ret void
    }
    declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
"""


@dialect(name="llvm", source=LLVM)
def both(a: InOut["tensor<128xf32>"], b: InOut["tensor<128xi32>"]): ...


@dialect(name="llvm", source=LLVM)
def scatter(p: InOut["!llvm.ptr<1>"], s: Input["!llvm.ptr<3>"]): ...


@triton.jit
def by_llvm(x, y, out):
    at = tl.arange(0, 128)
    a, b = tl.load(x + at), tl.load(y + at)
    a, b = tle.raw.call(both, [a, b], layout={a: {"space": "registers"}, b: {"space": "registers"}})
    tl.store(y + at, b)
    tle.raw.call(scatter, [out, a])


def test_llvm_in_registers_and_shared_memory(native):
    x, y = numbers(128), numbers(128, "int32", 1)
    doubled, out = native.array(y), native.array(np.zeros(128, np.float32))
    by_llvm[(1,)](native.array(x), doubled, out)
    np.testing.assert_array_equal(native.numpy(doubled), 2 * y)
    np.testing.assert_array_equal(native.numpy(out), (x + 1)[::-1])


# ---- CUDA --------------------------------------------------------------------------------------------------------

CUDA = """
    #include <cuda_fp16.h>
    extern "C" __device__ void add(const float* x, const float* y, float* out, int n) {
      for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = x[i] + y[i];
    }
    __device__ float scale(float a, float s) { return a * s; }
    template <class T> __device__ T twice(T x) { if (x > T(3)) return x; return x + x; }
    struct Four { float v[4]; };
    __device__ Four scale4(Four a, float s) { for (float& x : a.v) x *= s; return a; }
    __device__ __half halves(__half a) { return __hadd(a, __float2half(1.0f)); }
    __device__ __noinline__ float helper(float x) { return x * x; }
    __constant__ float table[4] = {1, 2, 3, 4};
    __device__ float lookup(float x, int i) { return helper(x) + table[(i + threadIdx.x) & 3]; }
    // A tensor as FlagTree hands it over: allocated and aligned pointer, offset, sizes, strides.
    __device__ void reverse(float*, float* p, long long offset, long long n, long long stride) {
      float t = p[offset + (n - 1 - threadIdx.x) * stride];
      __syncthreads();
      p[offset + threadIdx.x * stride] = t;
    }
    __device__ void transpose(float* out, const float* in) {
      int r = threadIdx.x / 8, c = threadIdx.x % 8;
      out[c * 16 + r] = in[r * 8 + c];
    }
    // Whatever thread stores, reads and writes it: neighbours and those across.
    __device__ void rotate(float* p) {
      float t = p[(threadIdx.x + 33) % 128];
      __syncthreads();
      p[(threadIdx.x + 66) % 128] = t;
    }
    __device__ void by_columns(float* p) { p[threadIdx.x] += threadIdx.x % 8 + 100 * (threadIdx.x / 8); }
    __device__ void first(int* p, int n) { if (threadIdx.x < n) atomicAdd(p, int(threadIdx.x)); }
"""


def cuda(name, **options):
    return dialect(name="cuda", source=CUDA, extern_func_name=name, **options)


@cuda("add")
def cuda_add(x, y, out: InOut["!llvm.ptr<1>"], n: Input["i32"]): ...


@dialect(
    name="cuda",
    source="__device__ void add(const float* x, const float* y, float* out, int n) {\n"
    "  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = x[i] + y[i]; }",
    compiler="nvcc",
    extern_func_name="add",
)
def cuda_add_by_nvcc(*args): ...


@triton.jit
def add_by_cuda(x, y, out, n, NVCC: tl.constexpr):
    if NVCC:
        tle.raw.call(cuda_add_by_nvcc, [x, y, out, n])
    else:
        tle.raw.call(cuda_add, [x, y, out, n])


@pytest.mark.parametrize("nvcc", [False, True])
def test_cuda_with_pointers(native, nvcc):
    x, y = numbers(1000), numbers(1000, seed=1)
    out = native.array(np.zeros(1000, np.float32))
    add_by_cuda[(1,)](native.array(x), native.array(y), out, 1000, nvcc)
    np.testing.assert_array_equal(native.numpy(out), x + y)


@cuda("scale")
def scale(a: InOut["tensor<?xf32>"], s: Input["f32"]): ...


@cuda("twice<unsigned char>")
def twice(a: InOut["tensor<128xi8>"]): ...


@cuda("scale4")
def scale4(a: InOut["tensor<512xf32>"], s: Input["f32"]): ...


@cuda("halves")
def halves(a: InOut["tensor<?xf16>"]): ...


@cuda("lookup")
def lookup(a: InOut["tensor<?xf32>"], i: Input["i32"]): ...


@triton.jit
def in_registers(x, bytes, more, half):
    at, at4 = tl.arange(0, 128), tl.arange(0, 512)
    a = tl.load(x + at)
    tle.raw.call(scale, [a, 3], layout={a: {"space": "registers"}})
    tle.raw.call(lookup, [a, 1], layout={a: {"space": "registers"}})
    tl.store(x + at, a)
    b = tl.load(bytes + at)
    tle.raw.call(twice, [b], layout={"a": {"space": "registers"}})
    tl.store(bytes + at, b)
    c = tl.load(more + at4)
    tle.raw.call(scale4, [c, 0.5], layout={0: {"space": "registers"}})
    tl.store(more + at4, c)
    d = tl.load(half + at)
    tle.raw.call(halves, [d], layout={d: {"space": "registers"}})
    tl.store(half + at, d)


def test_cuda_with_tensors_in_registers(native):
    x, b = numbers(128), np.arange(128).astype(np.uint8) % 7
    c, d = numbers(512, seed=2), numbers(128, "float16", 3)
    given = [native.array(v) for v in (x, b, c, d)]
    in_registers[(1,)](*given)
    x, b, c, d = (native.numpy(v) for v in given), b, c, d
    x = list(x)
    table = np.array([2, 3, 4, 1], np.float32)[np.arange(128) % 4]
    np.testing.assert_array_equal(x[0], (3 * numbers(128)) ** 2 + table)
    np.testing.assert_array_equal(x[1], np.where(b > 3, b, 2 * b))
    np.testing.assert_array_equal(x[2], c / 2)
    np.testing.assert_array_equal(x[3], d + 1)


@cuda("reverse")
def reverse(a: InOut["memref<128xf32, 3>"]): ...


@cuda("transpose")
def transpose(out: InOut["memref<8x16xf32, 3>"], x: Input["tensor<16x8xf32>"]): ...


@triton.jit
def in_shared_memory(x, out):
    at = tl.arange(0, 128)
    a = tl.load(x + at)
    for _ in range(3):
        tle.raw.call(reverse, [a])
    tile = tle.gpu.alloc([8, 16], dtype=tl.float32)
    tle.raw.call_smem(transpose, [tile, a.reshape(16, 8)])
    tl.store(out + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :], tile.load())


def test_cuda_with_shared_memory(native):
    x = numbers(128)
    out = native.array(np.zeros((8, 16), np.float32))
    in_shared_memory[(1,)](native.array(x), out)
    np.testing.assert_array_equal(native.numpy(out), x[::-1].reshape(16, 8).T)


@cuda("first")
def first(p: InOut["!llvm.ptr<1>"], n: Input["i32"]): ...


@triton.jit
def by_some(p):
    tle.call(first, args=[p, 1000], hardware={"threads": (40,)})


def test_the_first_threads_run_it(native):
    p = native.array(np.zeros(1, np.int32))
    by_some[(1,)](p)
    assert native.numpy(p)[0] == 40 * 39 // 2


@triton.jit
def sums(x, out, n, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    at = tl.arange(0, BLOCK)
    for i in tl.range(n, num_stages=3):
        a = tl.load(x + i * BLOCK + at)
        tle.raw.call(scale, [a, 2.0], layout={a: {"space": "registers"}})
        tle.raw.call(reverse, [a])
        total += a
    tl.store(out + at, total)


def test_in_a_pipelined_loop(native):
    x = numbers((6, 128))
    out = native.array(np.zeros(128, np.float32))
    sums[(1,)](native.array(x), out, 6, 128)
    np.testing.assert_array_equal(native.numpy(out), 2 * x.sum(0)[::-1])


@triton.jit
def as_default(x, out):
    at = tl.arange(0, 128)
    a = tl.load(x + at)
    tle.raw.call(reverse, [a])
    tl.store(out + at, a)


@triton.jit
def as_worker(x, out):
    at = tl.arange(0, 128)
    b = tl.load(x + at)
    tle.raw.call(reverse, [b])
    tl.store(out + 128 + at, b)


@triton.jit
def in_partitions(x, out):
    tle.gpu.warp_specialize([(as_default, (x, out)), (as_worker, (x, out))], [4], [64])


def test_in_partitions(native):
    x = numbers(128)
    out = native.array(np.zeros(256, np.float32))
    in_partitions[(1,)](native.array(x), out)
    np.testing.assert_array_equal(native.numpy(out), np.tile(x[::-1], 2))


# ---- barriers, key -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "sizes", "barriers"),
    [
        # Nothing crosses threads.
        (add_by_ptx, ("float32", "float32", "float32", 128), 0),
        # Stored, run (with a barrier of its own), loaded: one on each side.
        (as_default, ("float32", "float32"), 3),
    ],
)
def test_barriers_stand_where_data_need_them(kernel, sizes, barriers, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    args = [np.zeros(512, s) if isinstance(s, str) else s for s in sizes]
    ptx = kernel.warmup(*args, grid=(1,)).asm["ptx"]
    assert len(re.findall(r"bar\.sync", ptx)) == barriers


@cuda("rotate")
def rotate(x: InOut["tensor<128xf32>"]): ...


@triton.jit
def rotated(x_ptr, out_ptr, n):
    at = tl.arange(0, 128)
    total = tl.zeros([128], tl.float32)
    for i in range(n):
        x = tl.load(x_ptr + i * 128 + at)
        tle.raw.call(rotate, [x])
        total += x
    tl.store(out_ptr + at, total)


@triton.jit
def rotate_here(x_ptr, out_ptr):
    rotated(x_ptr, out_ptr, 1)


@triton.jit
def rotate_there(x_ptr, out_ptr):
    rotated(x_ptr, out_ptr + 128, 2)


@triton.jit
def rotated_in_partitions(x_ptr, out_ptr, n):
    tle.gpu.warp_specialize([(rotate_here, (x_ptr, out_ptr)), (rotate_there, (x_ptr, out_ptr))], [4], [64])


@pytest.mark.parametrize("kernel", [rotated, rotated_in_partitions])
def test_without_any_barrier_the_simulator_reports_a_fault(kernel, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    arguments = numbers(256), np.zeros(256, np.float32), 2
    found = order.reported(kernel.warmup(*arguments, grid=(1,)), arguments)
    assert len(found) >= 3
    assert all(kinds for _, kinds in found), found


@cuda("by_columns")
def by_columns(x: InOut["tensor<8x16xf32>"]): ...


@triton.jit
def with_an_order(x_ptr):
    at = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    x = tl.load(x_ptr + at)
    tle.raw.call(by_columns, [x], layout={x: {"space": "shared", "order": [0, 1]}})
    tl.store(x_ptr + at, x)


def test_the_order_of_dimensions_in_memory(native):
    x = numbers((8, 16))
    given = native.array(x)
    with_an_order[(1,)](given)
    np.testing.assert_array_equal(
        native.numpy(given), x + np.arange(8)[:, None] + 100 * np.arange(16)[None, :]
    )


def test_what_is_included_is_in_the_key(tmp_path):
    (tmp_path / "factor.h").write_text("#define FACTOR 2\n")
    (tmp_path / "scale.cu").write_text(
        '#include "factor.h"\n__device__ float scale(float x) { return x * FACTOR; }\n'
    )
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import numpy as np
            import tilewright as triton, tilewright.language as tl
            from tilewright import tle

            @tle.raw.dialect(name="cuda", file="scale.cu")
            def scale(x: tle.raw.InOut["tensor<32xf32>"]): ...

            @triton.jit
            def kernel(x):
                at = tl.arange(0, 32)
                a = tl.load(x + at)
                tle.raw.call(scale, [a], layout={a: {"space": "registers"}})
                tl.store(x + at, a)

            x = np.ones(32, np.float32)
            kernel[(1,)](x)
            print(x[0])
            """
        )
    )
    environment = {
        **os.environ,
        "TILEWRIGHT_BACKEND": "ptxsim",
        "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
    }

    def run():
        done = subprocess.run([sys.executable, program], capture_output=True, text=True, env=environment)
        assert not done.stderr, done.stderr
        return float(done.stdout)

    assert run() == run() == 2
    (tmp_path / "factor.h").write_text("#define FACTOR 3\n")
    assert run() == 3


# ---- errors ------------------------------------------------------------------------------------------------------


@dialect(name="cuda", source="__device__ float broken(float x) {\n  return y;\n}\n")
def broken(x: InOut["tensor<?xf32>"]): ...


@dialect(name="ptx", source="add.f32 %[out], %[x], %[z];")
def unknown_operand(out: InOut["tensor<?xf32>"], x: Input["tensor<?xf32>"]): ...


@cuda("nothing_like_it")
def no_such_function(x: InOut["tensor<?xf32>"]): ...


@dialect(name="ptx", source="nonsense %[x];")
def nonsense(x: InOut["tensor<?xf32>"]): ...


@cuda("scale", deferred=True)
def later(a, s): ...


@dialect(name="llvm", source="define float @noise(float %x) { ret flat %x }")
def noise(x: InOut["tensor<?xf32>"]): ...


@triton.jit
def wrong(x, n, CASE: tl.constexpr):
    at = tl.arange(0, 128)
    a = tl.load(x + at)
    if CASE == 0:
        tle.raw.call(broken, [a])
    elif CASE == 1:
        tle.raw.call(unknown_operand, [a, a])
    elif CASE == 2:
        tle.raw.call(no_such_function, [a])
    elif CASE == 3:
        tle.raw.call(ptx_add, [a, a])
    elif CASE == 4:
        tle.raw.call(ptx_mix, [a, 1])
    elif CASE == 5:
        tle.raw.call(scale, [a, a], layout={a: {"space": "registers"}})
    elif CASE == 6:
        tle.raw.call(scale, [a, 1.0], layout={a: {"space": "texture"}})
    elif CASE == 7:
        tle.call(scale, args=[a, 1.0], hardware={"threads": (256,)}, layout={a: {"space": "registers"}})
    elif CASE == 8:
        tle.call(reverse, args=[a], hardware={"threads": (64,)})
    elif CASE == 9:
        tle.raw.call(scale, [a + 1, 1.0], layout={0: {"space": "registers"}})
    elif CASE == 10:
        tle.raw.call(noise, [a], layout={a: {"space": "registers"}})
    elif CASE == 11:
        tle.raw.call(print, [a])
    elif CASE == 12:
        tle.raw.call(scale, [a, 1.0], output_indices=[5])
    elif CASE == 13:
        tle.raw.call(scale, [a, 1.0])
    elif CASE == 14:
        tle.call(scale, args=[a, 1.0], hardware={"warps": 4})
    elif CASE == 17:
        tle.raw.call(nonsense, [a])
    elif CASE == 15:
        tle.raw.call(later, [a, 1.0])
    elif CASE == 16:
        tle.raw.call(scale, [a, 1.0], layout={"z": {"space": "registers"}})
    tl.store(x + at, a)


@pytest.mark.parametrize(
    ("case", "messages"),
    [
        (0, ["NVRTC refuses broken.cu", 'broken.cu(2): error: identifier "y" is undefined']),
        (1, ["line 1 of the PTX text: `%[z]` names no parameter; there are out, x"]),
        (2, ["there is no function `nothing_like_it`; there are: add, "]),
        (3, ["`ptx_add` takes 3 arguments (out, x, y), but 2 are given"]),
        (
            4,
            [
                "`x` of `ptx_mix` is declared as a tensor of shape [512] of int32, but the argument is a tensor of shape [128]"
            ],
        ),
        (5, ["`s` of `scale` is declared as a scalar of fp32, but the argument is a tensor"]),
        (6, ['there is no space "texture"']),
        (7, ["the function wants 256 threads, but 128 run this", "num_warps=8"]),
        (8, ["it has a barrier for all threads, of which only some run it"]),
        (9, ["the function writes this argument, which has no name"]),
        (10, ["the LLVM IR of `noise`", "expected type"]),
        (11, ["`func` of tle.raw.call must be a function marked by @tle.raw.dialect"]),
        (12, ["`output_indices` has 5"]),
        (13, ["`_Z5scaleff` has 4 bytes for `a`, but the call has 8 in each thread"]),
        (14, ["`hardware` of tle.raw.call knows `threads`, not 'warps'"]),
        (15, ["`later` is deferred: each call says which arguments it writes"]),
        (
            17,
            ["failed on the generated PTX", "nonsense", "the kernel calls code of its author's: text in ptx"],
        ),
        (16, ["which is no tensor among the arguments"]),
    ],
)
def test_what_is_wrong_is_said_at_the_call(case, messages, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    with pytest.raises(triton.CompilationError) as caught:
        wrong[(1,)](np.zeros(128, np.float32), 1, case)
    text = str(caught.value)
    for message in messages:
        assert message in text
    assert "test_raw.py:" in text


def test_what_is_wrong_with_a_declaration():
    with pytest.raises(ValueError, match=r"no language 'hip' for tle\.raw; there are cuda, llvm, mlir, ptx"):
        dialect(name="hip")
    with pytest.raises(ValueError, match="the language ptx has no option `compiler`"):
        dialect(name="ptx", compiler="nvcc")
    with pytest.raises(ValueError, match="compiler is one of nvrtc, nvcc, clang"):
        dialect(name="cuda", compiler="gcc")
    for options in ({"include": "folder"}, {"options": "-O3"}, {"options": [3]}):
        with pytest.raises(TypeError, match="of a function in CUDA is a list of strings, not "):
            dialect(name="cuda", **options)
    with pytest.raises(TypeError, match="`source` of dialect is a string, not 3"):
        dialect(name="ptx", source=3)
    with pytest.raises(ValueError, match="threads_dim must be 1, 2 or 3"):
        tle.hardware_constraint(threads_dim=4)
    with pytest.raises(NotImplementedError, match='not supported yet: sync_scope="grid"'):
        tle.hardware_constraint(sync_scope="grid")
    with pytest.raises(TypeError, match="is called by kernels"):
        scale(1, 2)


def plus_one(file):
    """A function of CUDA in a file."""

    @dialect(name="cuda", file=file, extern_func_name="plus_one")
    def function(x: InOut["tensor<?xf32>"]): ...

    return function


PLUS_ONE = "__device__ float plus_one(float x) { return x + 1; }  // gr\u00f6\u00dfer\r\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_files_as_editors_write_them(native, tmp_path, encoding):
    path = tmp_path / "plus_one.cu"
    path.write_bytes(PLUS_ONE.encode(encoding))
    function = plus_one(path)

    @triton.jit
    def kernel(x_ptr):
        at = tl.arange(0, 128)
        x = tl.load(x_ptr + at)
        tle.raw.call(function, [x], layout={x: {"space": "registers"}})
        tl.store(x_ptr + at, x)

    x = native.array(np.zeros(128, np.float32))
    kernel[(1,)](x)
    np.testing.assert_array_equal(native.numpy(x), 1)


def test_files_that_are_no_text(tmp_path):
    path = tmp_path / "plus_one.cu"
    with pytest.raises(FileNotFoundError, match="which is not there"):
        plus_one(path).text()
    with pytest.raises(FileNotFoundError, match="which is a folder"):
        plus_one(tmp_path).text()
    path.write_bytes(PLUS_ONE.encode("latin-1"))
    with pytest.raises(ValueError, match=r"plus_one\.cu is not text in UTF-8: invalid .* at byte "):
        plus_one(path).text()
    path.write_text(PLUS_ONE + "\0")
    with pytest.raises(ValueError, match=r"plus_one\.cu has a character NUL in line 2"):
        plus_one(path).text()


def test_the_cpu_executor_says_who_runs_it(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(
        triton.CompilationError, match=r"not supported on the CPU executor: `ptx_add`, which is ptx code"
    ):
        add_by_ptx[(1,)](*(np.zeros(128, np.float32) for _ in range(3)), 128)


def test_an_access_out_of_bounds_is_found(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    with pytest.raises(Exception, match=r"out of bounds|outside"):
        add_by_cuda[(1,)](*(np.zeros(100, np.float32) for _ in range(3)), 101, False)


# ---- workloads ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(5))
def test_workloads(native, number):
    _, kernel, inputs, outputs, others, check = raw_workloads.workloads(2)[number]
    given = [native.array(x) for x in inputs]
    out = [native.array(x) for x in outputs]
    kernel[(2,)](*given, *out, *others, num_warps=raw_workloads.WARPS)
    check(*inputs, *(native.numpy(x) for x in out))


# ---- a matmul ----------------------------------------------------------------------------------------------------


def half_numbers(shape, seed):
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float16)


@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 64), (256, 128, 640)])
def test_a_matmul_whose_products_are_cuda(native, m, n, k):
    a, b = half_numbers((m, k), 0), half_numbers((n, k), 1)
    c = native.array(np.zeros((m, n), np.float16))
    raw_matmul.matmul(native.array(a), native.array(b), c)
    np.testing.assert_array_equal(native.numpy(c), a.astype(np.float32) @ b.astype(np.float32).T)


def warmed_up_matmul():
    """The kernel, compiled, with the arguments of a launch."""
    arguments = [
        half_numbers((128, 192), 0),
        half_numbers((128, 192), 1),
        np.zeros((128, 128), np.float16),
        128,
        128,
        192,
    ]
    compiled = raw_matmul.matmul_kernel.warmup(*arguments, 2, grid=(1,), target="cuda:90", num_warps=4)
    return compiled, arguments


def test_a_call_between_barriers_of_its_own_costs_none():
    """Of each warp group's step: the fence, wait and so on of its products, and what its arrival takes, for which all threads meet."""
    compiled, _ = warmed_up_matmul()
    ptx = compiled.asm["ptx"]
    steps = re.findall(r"wgmma\.fence.*?mbarrier\.arrive", ptx, re.DOTALL)
    counts = {"bar.sync": 1, "mbarrier.arrive": 1, "fence.proxy.async": 1, "wgmma.fence": 1}
    assert [order.counts(step) for step in steps] == [counts | {"wgmma.wait_group": 1}] * 2
    assert ptx.count("wgmma.mma_async") == 8
    assert compiled.n_spills == 0


def test_the_simulator_asks_for_what_orders_the_matmul():
    """All but the fences for what a call may have read by ordinary loads: this one reads as the copies write, which nobody knows but its author."""
    reported = order.reported(*warmed_up_matmul())
    assert [line for line, kinds in reported if not kinds] == ["fence.proxy.async.shared::cta;"] * 2


def test_the_matmul_in_cuda_alone():
    """What ``tests/gpu/raw.py`` times the other against computes the same, and the simulator finds nothing wrong with it."""
    m, n, k = 256, 128, 640
    source = Path(__file__).parents[1] / "gpu" / "raw.cu"
    folders = [str(Path(__file__).parent), *_headers()]
    ptx = _nvrtc.compile(source.read_text(), "raw.cu", "90a", ["-std=c++17", *(f"-I{f}" for f in folders)])
    # Descriptors are of arguments: the matrices lie in one.
    memory = np.zeros(m * n + (m + n) * k + 64, np.float16)
    memory = memory[-memory.ctypes.data % 128 // 2 :]
    c, a, b, _ = np.split(memory, np.cumsum([m * n, m * k, n * k]))
    a, b, c = a.reshape(m, k), b.reshape(n, k), c.reshape(m, n)
    a[:], b[:] = half_numbers((m, k), 0), half_numbers((n, k), 1)
    maps = [tensor_map(x, [8, len(x), k // 8], [2 * k, 16], [8, 128, 8]) for x in (a, b)]
    grid = m // raw_matmul.BLOCK, n // raw_matmul.BLOCK
    report = simulate_ptx(ptx, "matmul_kernel", grid, 384, [*maps, memory, n, k], shared=131072)
    assert report["findings"] == []
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
