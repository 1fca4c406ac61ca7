"""Kernels whose inner part is CUDA (`raw_workloads.cu`) and whose loads and stores are the language's, each with its check."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tle.raw import InOut, Input, dialect

WARPS = 8
THREADS = 32 * WARPS


def cuda(name):
    return dialect(name="cuda", file="raw_workloads.cu", extern_func_name=name)


def each(count):
    """So many elements one behind the other in each of 256 threads."""
    return tle.gpu.BlockEncoding([count], [32], [WARPS], [0])


FOUR, SIXTEEN, EIGHT, TWO = (
    tl.constexpr(each(4)),
    tl.constexpr(each(16)),
    tl.constexpr(each(8)),
    tl.constexpr(each(2)),
)


@cuda("add")
def add(x: InOut["tensor<1024xf32>"], y: Input["tensor<1024xf32>"]): ...


@cuda("softmax")
def softmax(x: InOut["tensor<4096xf32>"]): ...


@dialect(name="cuda", file="raw_workloads.cu", extern_func_name="quantize")
def quantize(out, x, scales, first): ...


@cuda("topk")
def topk(x: Input["tensor<1024xf32>"], values, places): ...


@cuda("sort")
def sort(x: InOut["tensor<1024xi32>"]): ...


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n):
    at = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.load(y_ptr + at, mask=at < n)
    tle.raw.call(add, [x, y], layout={x: FOUR, y: FOUR})
    tl.store(out_ptr + at, x, mask=at < n)


@triton.jit
def softmax_kernel(x_ptr, out_ptr):
    at = tl.program_id(0) * 4096 + tl.arange(0, 4096)
    x = tl.load(x_ptr + at)
    tle.raw.call(softmax, [x], layout={x: SIXTEEN})
    tl.store(out_ptr + at, x)


@triton.jit
def quantize_kernel(x_ptr, out_ptr, scales_ptr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * 2048 + tl.arange(0, 2048))
    words = tl.zeros([512], tl.int32)
    tle.raw.call(quantize, [words, x, scales_ptr, pid * 16], [0], layout={words: TWO, x: EIGHT})
    tl.store(out_ptr + pid * 512 + tl.arange(0, 512), words)


@triton.jit
def topk_kernel(x_ptr, values_ptr, places_ptr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * 1024 + tl.arange(0, 1024))
    tle.raw.call(topk, [x, values_ptr + pid * 8, places_ptr + pid * 8], layout={x: FOUR})


@triton.jit
def sort_kernel(x_ptr, out_ptr):
    at = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    x = tl.load(x_ptr + at)
    tle.raw.call(sort, [x], layout={x: FOUR})
    tl.store(out_ptr + at, x)


def check_add(x, y, out):
    np.testing.assert_array_equal(out, x + y)


def check_softmax(x, out):
    x = x.reshape(-1, 4096).astype(np.float64)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out.reshape(-1, 4096), e / e.sum(1, keepdims=True), rtol=2e-5)


def of_e4m3(bits):
    """The numbers that bytes are as fp8."""
    bits = bits.astype(np.int32)
    sign, exponent, mantissa = 1 - 2 * (bits >> 7), bits >> 3 & 15, bits & 7
    return sign * np.where(exponent > 0, (8 + mantissa) * 2.0 ** (exponent - 10), mantissa * 2.0**-9)


def check_quantize(x, out, scales):
    x = x.reshape(-1, 128).astype(np.float32)
    top = np.maximum(np.abs(x).max(1), 1e-10)
    np.testing.assert_allclose(scales, top / 448, rtol=1e-6)
    back = of_e4m3(out.view(np.uint8)).reshape(-1, 128) * scales[:, None]
    # Half a step of three bits of mantissa, and of the smallest exponent.
    np.testing.assert_array_less(np.abs(back - x), np.abs(x) / 15.9 + top[:, None] / 448 / 500)


def check_topk(x, values, places):
    x = x.reshape(-1, 1024)
    want = np.argsort(-x, axis=1, kind="stable")[:, :8]
    np.testing.assert_array_equal(places.reshape(-1, 8), want)
    np.testing.assert_array_equal(values.reshape(-1, 8), np.take_along_axis(x, want, 1))


def check_sort(x, out):
    want = np.sort(x.view(np.uint32).reshape(-1, 1024), 1)
    np.testing.assert_array_equal(out.view(np.uint32).reshape(-1, 1024), want)


def workloads(programs, seed=0):
    """For so many programs: name, kernel, inputs, outputs, other arguments, check."""
    rng = np.random.default_rng(seed)
    normal = lambda n: rng.standard_normal(n, np.float32)
    n = programs * 1024
    keys = rng.integers(0, 1 << 32, n, dtype=np.uint32).view(np.int32)
    empty = lambda n, dtype=np.float32: np.zeros(n, dtype)
    return [
        ("vector add", add_kernel, [normal(n), normal(n)], [empty(n)], [n], check_add),
        ("softmax", softmax_kernel, [normal(4 * n)], [empty(4 * n)], [], check_softmax),
        (
            "fp8 group quantization",
            quantize_kernel,
            [normal(2 * n).astype(np.float16)],
            [empty(n // 2, np.int32), empty(programs * 16)],
            [],
            check_quantize,
        ),
        (
            "block top-k",
            topk_kernel,
            [normal(n)],
            [empty(programs * 8), empty(programs * 8, np.int32)],
            [],
            check_topk,
        ),
        ("radix sort", sort_kernel, [keys], [empty(n, np.int32)], [], check_sort),
    ]
