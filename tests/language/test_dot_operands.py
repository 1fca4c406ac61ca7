"""Dots of operands that are computed: rows and columns broadcast into them, and few products a sum."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def column_kernel(x_ptr, b_ptr, out, HOW: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(x_ptr + m[:, None] * K + k)
    b = tl.load(b_ptr + k[:, None] * N + n)
    if HOW == "maximum of a dot":
        column = tl.max(tl.dot(x, b), 1)
    elif HOW == "sum":
        column = tl.sum(x.to(tl.float32), 1)
    elif HOW == "scan":
        column = tl.cumsum(tl.load(x_ptr + m * K).to(tl.float32), 0)
    else:
        column = tl.load(x_ptr + m * K).to(tl.float32)
    a = tl.zeros([M, K], tl.float32) + column[:, None]
    if HOW == "outer":
        a = a * tl.load(x_ptr + k).to(tl.float32)[None, :]
    tl.store(out + m[:, None] * N + n, tl.dot((a * 0.125).to(tl.float16), b))


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("shape", [(64, 64, 64), (16, 16, 16), (32, 48, 96)])
@pytest.mark.parametrize("how", ["maximum of a dot", "sum", "scan", "load", "outer"])
def test_a_column_is_broadcast_into_the_left_operand(device, how, shape, num_warps):
    M, N, K = shape
    rng = np.random.default_rng(0)
    x, b = (rng.integers(-2, 3, s).astype(np.float16) for s in ((M, K), (K, N)))
    out = device.empty((M, N), np.float32)
    column_kernel[(1,)](device.array(x), device.array(b), out, how, M, N, K, num_warps=num_warps)
    x, b = x.astype(np.float32), b.astype(np.float32)
    columns = {
        "maximum of a dot": lambda: (x @ b).max(1),
        "sum": lambda: x.sum(1),
        "scan": lambda: x[:, 0].cumsum(),
    }
    a = np.repeat(columns.get(how, lambda: x[:, 0])()[:, None], K, 1)
    if how == "outer":
        a = a * x.reshape(-1)[:K]
    np.testing.assert_array_equal(device.numpy(out), (a * 0.125).astype(np.float16).astype(np.float32) @ b)


@triton.jit
def short_kernel(a_ptr, b_ptr, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k)
    b = tl.load(b_ptr + k[:, None] * N + n)
    acc = tl.full([M, N], 3, tl.int32 if a.dtype.is_int() else tl.float32)
    tl.store(out + m[:, None] * N + n, tl.dot(a, b, acc))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8])
@pytest.mark.parametrize("depth", [1, 2, 3, 8])
def test_sums_of_few_products(device, depth, dtype):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, s).astype(dtype) for s in ((32, depth), (depth, 16)))
    out = device.empty((32, 16), np.int32 if dtype == np.int8 else np.float32)
    short_kernel[(1,)](device.array(a), device.array(b), out, 32, 16, depth)
    np.testing.assert_array_equal(device.numpy(out), a.astype(np.float32) @ b.astype(np.float32) + 3)
