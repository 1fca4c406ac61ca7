"""Products that a kernel stores through pointers: by TMA where the launch can make a map of the matrix, by threads elsewhere."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl

STORE = ".global.shared::cta.bulk_group"


@triton.jit
def product(a_ptr, b_ptr, K, BLOCK: tl.constexpr):
    m, k = tl.arange(0, BLOCK), tl.arange(0, 32)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, 32):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * BLOCK + m[None, :])
        acc = tl.dot(a, b, acc)
    return acc


@triton.jit
def placed(a_ptr, b_ptr, c_ptr, M, N, K, stride, row, column, BLOCK: tl.constexpr):
    m, n = row + tl.arange(0, BLOCK), column + tl.arange(0, BLOCK)
    c = product(a_ptr, b_ptr, K, BLOCK).to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + m[:, None] * stride + n[None, :], c, mask=(m[:, None] < M) & (n[None, :] < N))


def operands(k, block, dtype=np.float16):
    rng = np.random.default_rng(0)
    return tuple(rng.integers(-3, 4, shape).astype(dtype) for shape in ((block, k), (k, block)))


# Inside, over an edge, over both, behind the matrix, in front of a row, and in front of the matrix.
PLACES = [(64, 64), (80, 64), (80, 80), (64, 192), (64, -16), (-16, 32)]


@pytest.mark.parametrize(("row", "column"), PLACES)
@pytest.mark.parametrize(("n", "stride"), [(128, 128), (144, 160), (100, 128)])
def test_places(device, row, column, n, stride):
    """What lies in front of a row's begin, and is not masked, is stored there: at the end of the row before."""
    m, k, block, before = 128, 64, 64, 32
    a, b = operands(k, block)
    memory = np.full((before + m, stride), -1, np.float16)
    want = memory.reshape(-1).copy()
    rows, columns = row + np.arange(block), column + np.arange(block)
    at = (before + rows)[:, None] * stride + columns
    inside = (rows < m)[:, None] & (columns < n)
    want[at[inside]] = (a.astype(np.float32) @ b.astype(np.float32))[inside]
    c = device.array(memory)
    kernel = placed[(1,)](device.array(a), device.array(b), c[before:], m, n, k, stride, row, column, block)
    if device.backend == "ptxsim":
        assert (STORE in kernel.asm["ptx"]) == (n % 16 == 0)
    np.testing.assert_array_equal(device.numpy(c).reshape(-1), want)


def test_empty(device):
    """A matrix without columns has no map."""
    a, b = operands(64, 64)
    c = device.array(np.full((64, 64), -1, np.float16))
    placed[(1,)](device.array(a), device.array(b), c, 64, 0, 64, 64, 0, 0, 64)
    assert np.all(device.numpy(c) == -1)


@triton.jit
def before_and_behind(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr):
    m = tl.arange(0, BLOCK)
    c_ptrs = c_ptr + m[:, None] * BLOCK + m[None, :]
    old = tl.load(c_ptrs)
    tl.store(c_ptrs, old * 0)
    acc = product(a_ptr, b_ptr, K, BLOCK) + old
    tl.store(c_ptrs, acc.to(tl.float16))
    # Other threads have these elements.
    turned = tl.load(c_ptr + m[None, :] * BLOCK + m[:, None])
    tl.store(c_ptr + BLOCK * BLOCK + m[:, None] * BLOCK + m[None, :], turned + 1)


def test_order(device):
    """Threads store to the matrix before, and load from it behind."""
    k, block = 64, 64
    a, b = operands(k, block)
    old = np.arange(block * block).reshape(block, block) % 7
    c = device.array(np.concatenate([old, old]).astype(np.float16))
    kernel = before_and_behind[(1,)](device.array(a), device.array(b), c, k, block)
    want = a.astype(np.float32) @ b.astype(np.float32) + old
    np.testing.assert_array_equal(device.numpy(c), np.concatenate([want, want.T + 1]))
    if device.backend == "ptxsim":
        ptx = kernel.asm["ptx"]
        assert STORE in ptx and "cp.async.bulk.wait_group 0" in ptx and "fence.proxy.async.global" in ptx


@triton.jit
def loaded_behind(a_ptr, b_ptr, c_ptr, same_ptr, d_ptr, K, BLOCK: tl.constexpr):
    m = tl.arange(0, BLOCK)
    at = m[:, None] * BLOCK + m[None, :]
    tl.store(c_ptr + at, product(a_ptr, b_ptr, K, BLOCK).to(tl.float16))
    tl.store(d_ptr + at, tl.load(same_ptr + at) + 1)


def test_one_tensor_given_twice(device):
    """A thread loads what it has stored, by another argument."""
    k, block = 64, 64
    a, b = operands(k, block)
    c, d = device.empty((block, block), np.float16), device.empty((block, block), np.float16)
    loaded_behind[(1,)](device.array(a), device.array(b), c, c, d, k, block)
    want = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(device.numpy(c), want)
    np.testing.assert_array_equal(device.numpy(d), want + 1)


@triton.jit
def batched(a_ptr, b_ptr, c_ptr, K, stride, BLOCK: tl.constexpr):
    m = tl.arange(0, BLOCK)
    batch = tl.program_id(0)
    acc = product(a_ptr, b_ptr, K, BLOCK) * batch
    tl.store(c_ptr + batch.to(tl.int64) * stride + m[:, None] * BLOCK + m[None, :], acc.to(tl.bfloat16))


def test_batches(device):
    k, block, stride = 32, 64, 64 * 64 + 16
    a, b = operands(k, block)
    c = device.array(np.zeros((3, stride), ml_dtypes.bfloat16))
    kernel = batched[(3,)](device.array(a), device.array(b), c, k, stride, block)
    want = np.arange(3)[:, None, None] * (a.astype(np.float32) @ b.astype(np.float32))
    got = device.numpy(c)[:, : block * block].reshape(3, block, block)
    np.testing.assert_array_equal(got, want.astype(ml_dtypes.bfloat16))
    if device.backend == "ptxsim":
        assert STORE in kernel.asm["ptx"]


@pytest.mark.parametrize(
    ("dtype", "n", "stride", "by_copies"),
    [
        (np.float16, 128, 128, True),
        (np.float16, 100, 128, False),
        (np.float16, 128, 100, False),
        (np.float32, 128, 128, False),
    ],
)
def test_which_go_by_tma(dtype, n, stride, by_copies):
    a, b = operands(64, 64)
    c = np.zeros((128, stride), dtype)
    kernel = placed.warmup(a, b, c, 128, n, 64, stride, 0, 0, BLOCK=64, grid=(1,), target="cuda:90")
    ptx = kernel.asm["ptx"]
    assert (STORE in ptx) == by_copies and "st.global" in ptx
