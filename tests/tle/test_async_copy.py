"""`tle.gpu.copy(is_async=True)`: groups of copies that the kernel waits for by itself."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def sum_rows(x_ptr, out_ptr, rows, n, N: tl.constexpr, SLOTS: tl.constexpr, MASKED: tl.constexpr):
    at = tl.arange(0, N)
    slots = tle.gpu.alloc([SLOTS, N], dtype=tl.float32)
    for i in tl.static_range(SLOTS - 1):
        if MASKED:
            tle.gpu.copy(x_ptr + i * N + at, slots.slot(i), [N], mask=(at < n) & (i < rows), is_async=True)
        else:
            tle.gpu.copy(x_ptr + i * N + at, slots.slot(i), [N], is_async=True)
        tle.gpu.async_commit_group()
    total = tl.zeros([N], tl.float32)
    for i in range(rows):
        ahead = i + SLOTS - 1
        inside = (at < n) & (ahead < rows)
        tle.gpu.copy(x_ptr + ahead * N + at, slots.slot(ahead % SLOTS), [N], mask=inside, is_async=True)
        tle.gpu.async_commit_group()
        tle.gpu.async_wait_group(SLOTS - 1)
        # Backwards, so that other threads' copies are read.
        total += tl.load(tle.gpu.local_ptr(slots.slot(i % SLOTS), (N - 1 - at,)))
    tle.gpu.async_wait_group(0)
    tl.store(out_ptr + at, total)


@pytest.mark.parametrize(("slots", "masked"), [(1, True), (2, True), (2, False), (4, True), (8, False)])
@pytest.mark.parametrize("num_warps", [1, 4])
def test_rows_ahead(device, slots, masked, num_warps):
    x = np.random.default_rng(0).integers(0, 100, (9, 512)).astype(np.float32)
    n = 300 if masked else 512
    out = device.array(np.zeros(512, np.float32))
    sum_rows[(1,)](device.array(x), out, 9, n, 512, slots, masked, num_warps=num_warps)
    x[:, n:] = 0
    np.testing.assert_array_equal(device.numpy(out), x.sum(0)[::-1])


@pytest.mark.parametrize("arch", ["cuda:80", "cuda:90"])
def test_they_are_copies(arch):
    x, out = np.zeros((9, 512), np.float32), np.zeros(512, np.float32)
    ptx = sum_rows.warmup(x, out, 9, 512, 512, 3, True, grid=(1,), target=arch).asm["ptx"]
    assert ptx.count("cp.async.commit_group") == 3 and ptx.count("cp.async.wait_group 2") == 1
    assert ptx.count("cp.async.wait_group 0") == 1 and ptx.count("cp.async.cg") >= 3


@triton.jit
def never(x_ptr, out_ptr, N: tl.constexpr, MASK: tl.constexpr):
    at = tl.arange(0, N)
    buffer = tle.gpu.alloc([N], dtype=tl.float32)
    tle.gpu.copy(x_ptr + at, buffer, [N], mask=MASK, is_async=True)
    tle.gpu.async_commit_group()
    tle.gpu.async_wait_group(0)
    tl.store(out_ptr + at, tl.load(tle.gpu.local_ptr(buffer, (N - 1 - at,))))


@pytest.mark.parametrize("mask", [False, True])
def test_a_mask_that_is_a_constant(device, mask):
    x = np.arange(256, dtype=np.float32)
    out = device.array(np.full_like(x, 7))
    never[(1,)](device.array(x), out, 256, mask)
    np.testing.assert_array_equal(device.numpy(out), x[::-1] * mask)


@triton.jit
def in_a_worker(x_ptr, full, buffer, N: tl.constexpr):
    tle.gpu.copy(x_ptr + tl.arange(0, N), buffer, [N], is_async=True)
    tle.gpu.async_commit_group()
    tle.gpu.async_wait_group(0)
    tle.gpu.barrier_arrive(full, phaseIdx=0)


@triton.jit
def reads(out_ptr, full, buffer, N: tl.constexpr):
    tle.gpu.barrier_wait(full, phaseIdx=0)
    tl.store(out_ptr + tl.arange(0, N), tl.load(tle.gpu.local_ptr(buffer, (N - 1 - tl.arange(0, N),))))


@triton.jit
def from_a_worker(x_ptr, out_ptr, N: tl.constexpr):
    buffer = tle.gpu.alloc([N], dtype=tl.float16)
    full = tle.gpu.alloc_barrier()
    tle.gpu.warp_specialize(
        [(reads, (out_ptr, full, buffer, N)), (in_a_worker, (x_ptr, full, buffer, N))], [2], [40]
    )


def test_from_a_worker(device):
    x = np.arange(1024).astype(np.float16)
    out = device.array(np.zeros_like(x))
    from_a_worker[(1,)](device.array(x), out, 1024)
    np.testing.assert_array_equal(device.numpy(out), x[::-1])


@triton.jit
def wrong(x_ptr, CASE: tl.constexpr):
    at = tl.arange(0, 64)
    buffer = tle.gpu.alloc([64], dtype=tl.float32)
    if CASE == 0:
        tle.gpu.copy(x_ptr + at, buffer, [32], is_async=True)
    elif CASE == 1:
        tle.gpu.copy(buffer, x_ptr + at, [64], is_async=True)
    elif CASE == 2:
        tle.gpu.copy(x_ptr + at, tle.gpu.alloc([64], dtype=tl.float16), [64], is_async=True)
    elif CASE == 3:
        tle.gpu.copy(x_ptr + at, tle.gpu.alloc([128], dtype=tl.float32), [64], is_async=True)
    elif CASE == 4:
        tle.gpu.async_wait_group(8)
    elif CASE == 5:
        tle.gpu.copy(tle.gpu.local_ptr(buffer), tle.gpu.alloc([64], dtype=tl.float32), [64], is_async=True)


WRONG = [
    "`shape` must be that of both",
    "it copies from a tensor of pointers to a buffer",
    "it converts nothing",
    "`shape` must be that of both",
    "leaves 0 to 7 groups, not 8",
    "copies from pointers to global memory",
]


@pytest.mark.parametrize(("case", "message"), list(enumerate(WRONG)))
def test_errors(device, case, message):
    with pytest.raises(triton.CompilationError, match=message) as error:
        wrong[(1,)](device.array(np.zeros(64, np.float32)), case)
    assert "test_async_copy.py" in str(error.value) and "^" in str(error.value)


@triton.jit
def of_single_bytes(x_ptr, out_ptr):
    at = tl.arange(0, 64)
    buffer = tle.gpu.alloc([64], dtype=tl.int8)
    tle.gpu.copy(x_ptr + at * 2, buffer, [64], is_async=True)
    tle.gpu.async_commit_group()
    tle.gpu.async_wait_group(0)
    tl.store(out_ptr + at, buffer.load())


@pytest.mark.parametrize("arch", ["cuda:80", "cuda:90"])
def test_a_copy_that_cannot_be_is_an_error(arch):
    x = np.zeros(128, np.int8)
    with pytest.raises(triton.CompilationError, match=f"can't be asynchronous on {arch}: copies are 4 bytes"):
        of_single_bytes.warmup(x, x, grid=(1,), target=arch)


@triton.jit
def copied_in_order(x_ptr, out_ptr, BEFORE: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    buffer = tle.gpu.alloc([N], dtype=tl.float32)
    if BEFORE:
        tl.store(x_ptr + (N - 1 - at), at.to(tl.float32))
    tle.gpu.copy(x_ptr + at, buffer, [N], is_async=True)
    tle.gpu.async_commit_group()
    tle.gpu.async_wait_group(0)
    if not BEFORE:
        tl.store(x_ptr + (N - 1 - at), at.to(tl.float32))
    tl.store(out_ptr + at, buffer.load())


@pytest.mark.parametrize("before", [True, False])
def test_copies_are_in_order_with_stores(device, before):
    x = np.random.default_rng(0).standard_normal(512).astype(np.float32)
    y, out = device.array(x.copy()), device.array(np.zeros(512, np.float32))
    copied_in_order[(1,)](y, out, before, 512)
    turned = np.arange(512, dtype=np.float32)[::-1]
    np.testing.assert_array_equal(device.numpy(out), turned if before else x)
    np.testing.assert_array_equal(device.numpy(y), turned)
