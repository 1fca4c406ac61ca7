"""Atomic operations on whole tensors: elements side by side, and what is ordered with all of them."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def add_rows_kernel(x_ptr, out_ptr, n, stride, SEM: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)[:, None]
    cols = tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + rows * N + cols)
    tl.atomic_add(out_ptr + rows * stride + cols, x, mask=cols < n, sem=SEM)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64, np.int32])
@pytest.mark.parametrize("n,sem", [(64, "acq_rel"), (48, "relaxed"), (13, "release"), (64, "acquire")])
@pytest.mark.parametrize("stride", [64, 65])
def test_elements_side_by_side_are_added(device, dtype, n, sem, stride):
    """Of several programs, by rows that begin at a multiple of 16 bytes or not, and masks that end within such a piece."""
    M, N, programs = 8, 64, 3
    x = np.random.default_rng(0).integers(-8, 8, (M, N)).astype(dtype)
    start = np.arange(M * stride).reshape(M, stride).astype(np.float64) % 7
    out = device.array(start.astype(dtype))
    add_rows_kernel[(programs,)](device.array(x), out, n, stride, SEM=sem, M=M, N=N)
    want = start.copy()
    want[:, :n] += programs * x[:, :n].astype(np.float64)
    np.testing.assert_array_equal(device.numpy(out).astype(np.float64), want)


@triton.jit
def hand_over_kernel(x_ptr, counts_ptr, out_ptr, told_ptr, SEM: tl.constexpr, N: tl.constexpr):
    """Each program stores a row, and counts itself at each of N places, at which others may come in another order; who is last at the first place adds up all rows."""
    i = tl.arange(0, N)
    program = tl.program_id(0)
    tl.store(x_ptr + program * N + i, i + program)
    tl.debug_barrier()
    old = tl.atomic_add(counts_ptr + i, 1, sem=SEM)
    last = tl.sum(tl.where(i == 0, old, 0), 0) == tl.num_programs(0) - 1
    if last:
        tl.debug_barrier()
        total = tl.zeros([N], tl.int32)
        for p in range(tl.num_programs(0)):
            total += tl.load(x_ptr + p * N + i)
        tl.store(out_ptr + i, total)
        tl.store(told_ptr, 1)


@pytest.mark.parametrize("n", [128, 512])
def test_what_is_stored_before_is_seen_behind(device, n):
    """With one element a thread, and with several, of which none orders by itself."""
    programs = 4
    x, counts = device.zeros((programs, n), np.int32), device.zeros(n, np.int32)
    out, told = device.empty(n, np.int32), device.zeros(1, np.int32)
    hand_over_kernel[(programs,)](x, counts, out, told, SEM="acq_rel", N=n)
    assert device.numpy(told)[0] == 1
    np.testing.assert_array_equal(device.numpy(out), programs * np.arange(n) + sum(range(programs)))


@triton.jit
def tell_kernel(x_ptr, sums_ptr, out_ptr, N: tl.constexpr):
    """Program 0 stores a row and adds to sums that nobody reads the old values of; program 1 waits for the sum and copies the row."""
    i = tl.arange(0, N)
    if tl.program_id(0) == 0:
        tl.store(x_ptr + i, i * 3)
        tl.debug_barrier()
        tl.atomic_add(sums_ptr + i, tl.full([N], 1.0, tl.float32), sem="release")
    else:
        seen = tl.atomic_add(sums_ptr + i, tl.zeros([N], tl.float32), sem="acquire")
        while tl.min(seen, 0) < 1.0:
            seen = tl.atomic_add(sums_ptr + i, tl.zeros([N], tl.float32), sem="acquire")
        tl.debug_barrier()
        tl.store(out_ptr + i, tl.load(x_ptr + i))


def test_one_fence_releases_what_stands_before_all_elements(device):
    n = 512
    x, sums, out = device.zeros(n, np.int32), device.zeros(n, np.float32), device.empty(n, np.int32)
    tell_kernel[(2,)](x, sums, out, N=n)
    np.testing.assert_array_equal(device.numpy(out), 3 * np.arange(n))
