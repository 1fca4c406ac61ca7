"""Testing and benchmarking."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright.testing import simulate_ptx, tensor_map


# %% triton.testing.do_bench
@triton.jit
def add_one(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


x = np.zeros(4096, np.float32)
run = lambda: add_one[(4,)](x, 4096, BLOCK=1024)
milliseconds = triton.testing.do_bench(run, warmup=1, rep=5)
assert milliseconds > 0


# %% triton.testing.do_bench_cudagraph
@triton.jit
def add_two(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i) + 2)


def benchmark(x):
    """Milliseconds of a launch, for a tensor on a GPU."""
    return triton.testing.do_bench_cudagraph(lambda: add_two[(1,)](x, BLOCK=1024))


# %% triton.testing.perf_report, triton.testing.Benchmark, triton.testing.Mark
@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["n"],
        x_vals=[256, 1024],
        line_arg="provider",
        line_vals=["numpy"],
        line_names=["NumPy"],
        plot_name="sums",
        args={},
        ylabel="ms",
    )
)
def sums(n, provider):
    x = np.ones(n)
    return triton.testing.do_bench(lambda: x.sum(), warmup=1, rep=1)


assert isinstance(sums, triton.testing.Mark)
table = sums.run(return_df=True)  # print_data, show_plots: to look at

# %% triton.testing.assert_close
triton.testing.assert_close(np.array([1.0, 2.0]), np.array([1.0, 2.001]), rtol=1e-3)

# %% simulate_ptx
PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry twice(.param .u64 x) {
  .reg .b64 %a<3>;
  .reg .b32 %r<3>;
  ld.param.u64 %a0, [x];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %a1, %r0, 4;
  add.u64 %a0, %a0, %a1;
  ld.global.u32 %r1, [%a0];
  add.u32 %r1, %r1, %r1;
  st.global.u32 [%a0], %r1;
  ret;
}
"""
x = np.arange(32, dtype=np.uint32)
report = simulate_ptx(PTX, "twice", grid=1, block=32, arguments=[x])
np.testing.assert_array_equal(x, 2 * np.arange(32))
assert not report["findings"]

# %% tensor_map
x = np.zeros((64, 64), np.float16)
described = tensor_map(x, dims=[64, 64], strides=[128], box=[32, 8], swizzle=64)
assert len(described) == 128  # bytes: an argument of simulate_ptx

# %% triton.testing.get_dram_gbps, triton.testing.get_max_tensorcore_tflops, triton.testing.get_max_simd_tflops


def roofline(flops: float, moved: float) -> float:
    """The least milliseconds that a GPU needs for these operations and bytes."""
    rate = triton.testing.get_max_tensorcore_tflops(tl.float16, clock_rate=1.7e6)
    assert rate > triton.testing.get_max_simd_tflops(tl.float16, clock_rate=1.7e6)
    return max(flops / rate * 1e-9, moved / triton.testing.get_dram_gbps() * 1e-6)


# %% triton.testing.set_gpu_clock, triton.testing.nvsmi


def steady(fn):
    """Measured while the clocks stand still."""
    with triton.testing.set_gpu_clock(1350, 1215):
        print("MHz:", triton.testing.nvsmi(["clocks.current.sm"]))
        return triton.testing.do_bench(fn)


# %% triton.testing.cuda_memcheck
@triton.testing.cuda_memcheck(size=1024)
def test_copy(size, request):
    """With this size it runs under compute-sanitizer, with others as it is."""
    assert size > 0


test_copy(size=512, request=None)
