"""What partitions of a kernel store for each other, by threads and by TMA copies, and reach by the other way."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def tile(M: tl.constexpr, N: tl.constexpr):
    return tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]


@triton.jit
def store_and_take(x_ptr, out_ptr, buffer, stored, full, n, M: tl.constexpr, N: tl.constexpr):
    at = tile(M, N)
    for i in range(n):
        tl.store(x_ptr + at, (at + i).to(tl.float32))
        tle.gpu.barrier_arrive(stored, phaseIdx=i)
        tle.gpu.barrier_wait(full, phaseIdx=i)
        tl.store(out_ptr + i * M * N + at, buffer.load())


@triton.jit
def copy_back(x, buffer, stored, full, n, M: tl.constexpr, N: tl.constexpr):
    for i in range(n):
        tle.gpu.barrier_wait(stored, phaseIdx=i)
        tle.gpu.copy(x, buffer, [M, N], [0, 0], barrier=full)


@triton.jit
def copied_by_another(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [M, N])
    buffer = tle.gpu.alloc([M, N], tl.float32)
    stored, full = tle.gpu.alloc_barrier(), tle.gpu.alloc_barrier(expect_bytes=M * N * 4)
    tle.gpu.warp_specialize(
        [
            (store_and_take, (x_ptr, out_ptr, buffer, stored, full, n, M, N)),
            (copy_back, (x, buffer, stored, full, n, M, N)),
        ],
        [1],
        [24],
    )


def test_a_partition_copies_what_another_has_stored(device):
    M, N, n = 32, 64, 4
    x, out = device.zeros((M, N), np.float32), device.empty((n, M, N), np.float32)
    kernel = copied_by_another[(1,)](x, out, n, M, N)
    want = np.arange(M * N).reshape(M, N) + np.arange(n)[:, None, None]
    np.testing.assert_array_equal(device.numpy(out), want)
    if device.backend == "ptxsim":
        assert kernel.asm["ptx"].count("fence.proxy.async.global") == 1


@triton.jit
def store_by_copies(x, stored, taken, n, M: tl.constexpr, N: tl.constexpr):
    for i in range(n):
        tle.gpu.barrier_wait(taken, phaseIdx=i)
        x.store([0, 0], (tile(M, N) + i).to(tl.float32))
        tle.gpu.barrier_arrive(stored, phaseIdx=i)


@triton.jit
def load(x_ptr, out_ptr, stored, taken, n, M: tl.constexpr, N: tl.constexpr):
    for i in range(n):
        tle.gpu.barrier_wait(stored, phaseIdx=i)
        value = tl.load(x_ptr + tile(M, N))
        tl.store(out_ptr + i * M * N + tile(M, N), value)
        tle.gpu.barrier_arrive(taken, phaseIdx=i)


@triton.jit
def loaded_by_another(x_ptr, out_ptr, n, WARPS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [M, N])
    stored, taken = tle.gpu.alloc_barrier(), tle.gpu.alloc_barrier(init=tle.gpu.READY)
    tle.gpu.warp_specialize(
        [
            (load, (x_ptr, out_ptr, stored, taken, n, M, N)),
            (store_by_copies, (x, stored, taken, n, M, N)),
        ],
        [WARPS],
        [80],
    )


@pytest.mark.parametrize("warps", [1, 4])
def test_a_partition_loads_what_copies_of_another_have_stored(device, warps):
    M, N, n = 32, 64, 4
    x, out = device.zeros((M, N), np.float32), device.empty((n, M, N), np.float32)
    kernel = loaded_by_another[(1,)](x, out, n, warps, M, N)
    want = np.arange(M * N).reshape(M, N) + np.arange(n)[:, None, None]
    np.testing.assert_array_equal(device.numpy(out), want)
    if device.backend == "ptxsim":
        assert "cp.async.bulk.wait_group 0" in kernel.asm["ptx"]


@triton.jit
def store_and_look(x_ptr, out_ptr, pipe, back, n, M: tl.constexpr, N: tl.constexpr):
    at = tile(M, N)
    for i in range(n):
        tl.store(x_ptr + at, at.to(tl.float32))
        slot = pipe.acquire(i)
        slot.x.store((at * i).to(tl.float32))
        pipe.commit(i)
        back.wait(i)
        tl.store(out_ptr + i * M * N + at, tl.load(x_ptr + at))
        back.release(i)


@triton.jit
def copy_over(x, pipe, back, n, M: tl.constexpr, N: tl.constexpr):
    for i in range(n):
        tle.gpu.copy(pipe.wait(i).slot.x, x, [M, N], [0, 0])
        pipe.release(i)
        slot = back.acquire(i)
        slot.done.store(tl.zeros([16], tl.int32))
        back.commit(i)


@triton.jit
def copied_over_by_another(x_ptr, out_ptr, n, WARPS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [M, N])
    pipe = tle.pipe(capacity=1, name="over", x=tle.gpu.alloc([1, M, N], tl.float32))
    back = tle.pipe(capacity=1, name="back", done=tle.gpu.alloc([1, 16], tl.int32))
    tle.gpu.warp_specialize(
        [
            (store_and_look, (x_ptr, out_ptr, pipe.writer(), back.reader(), n, M, N)),
            (copy_over, (x, pipe.reader(), back.writer(), n, M, N)),
        ],
        [WARPS],
        [56],
    )


@pytest.mark.parametrize("warps", [1, 4])
def test_a_partition_copies_over_what_another_has_stored(device, warps):
    M, N, n = 32, 64, 3
    x, out = device.zeros((M, N), np.float32), device.empty((n, M, N), np.float32)
    copied_over_by_another[(1,)](x, out, n, warps, M, N)
    want = np.arange(M * N).reshape(M, N) * np.arange(n)[:, None, None]
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def turn_in_place(x, x_ptr, pipe, n, M: tl.constexpr, N: tl.constexpr):
    for i in range(n):
        block = x.load([0, 0])
        first = tl.load(x_ptr + M * N + i)
        tl.store(x_ptr + 1, first)
        tl.store(x_ptr + tile(M, N), block + 1)
        pipe.acquire(i)
        pipe.commit(i)


@triton.jit
def count(pipe, out_ptr, n):
    for i in range(n):
        pipe.wait(i)
        pipe.release(i)
        tl.store(out_ptr, i + 1)


@triton.jit
def turned_beside_a_pipe(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [M, N])
    pipe = tle.pipe(capacity=1, name="turns", done=tle.gpu.alloc([1, 16], tl.int32))
    tle.gpu.warp_specialize(
        [(turn_in_place, (x, x_ptr, pipe.writer(), n, M, N)), (count, (pipe.reader(), out_ptr, n))], [2], [96]
    )


def test_barriers_for_global_memory_ask_for_no_fences(device):
    """Those of shared memory have been placed: a barrier before a store is none of an arrival behind it."""
    M, N, n = 32, 64, 3
    x, out = device.zeros((M + 1, N), np.float32), device.zeros(1, np.int32)
    turned_beside_a_pipe[(1,)](x, out, n, M, N)
    np.testing.assert_array_equal(device.numpy(x)[:M], np.full((M, N), n))
    assert device.numpy(out)[0] == n


@triton.jit
def fill_beside(x_ptr, beside, pipe, back, n, HOW: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    for i in range(n):
        if HOW == "load":
            back.wait(i)
            tl.store(x_ptr + (n + i) * M * N + tile(M, N), beside.load() + 1)
            back.release(i)
        else:
            beside.store(tl.load(x_ptr + i * M * N + tile(M, N)))
            pipe.acquire(i)
            pipe.commit(i)
            back.wait(i)
            back.release(i)


@triton.jit
def copy_beside(x, beside, pipe, back, filled, n, HOW: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    for i in range(n):
        if HOW == "load":
            back.acquire(i)
            tle.gpu.copy(x, beside, [M, N], [i * M, 0], barrier=filled)
            tle.gpu.barrier_wait(filled, phaseIdx=i)
        else:
            pipe.wait(i)
            tle.gpu.copy(beside, x, [M, N], [(n + i) * M, 0])
            pipe.release(i)
            back.acquire(i)
        back.commit(i)


@triton.jit
def handed_over_beside(x_ptr, n, HOW: tl.constexpr, WARPS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [2 * n * M, N], [N, 1], [M, N])
    beside = tle.gpu.alloc([M, N], tl.float32)
    filled = tle.gpu.alloc_barrier(expect_bytes=M * N * 4)
    pipe = tle.pipe(capacity=1, name="there", done=tle.gpu.alloc([1, 16], tl.int32))
    back = tle.pipe(capacity=1, name="back", done=tle.gpu.alloc([1, 16], tl.int32))
    tle.gpu.warp_specialize(
        [
            (fill_beside, (x_ptr, beside, pipe.writer(), back.reader(), n, HOW, M, N)),
            (copy_beside, (x, beside, pipe.reader(), back.writer(), filled, n, HOW, M, N)),
        ],
        [WARPS],
        [56],
    )


@pytest.mark.parametrize("how", ["store", "load"])
@pytest.mark.parametrize("warps", [1, 4])
def test_a_pipe_hands_a_buffer_to_the_copy_engine(device, how, warps):
    """The buffer is no field of the pipe, which says that it is there."""
    M, N, n = 32, 64, 3
    given = np.random.default_rng(0).integers(0, 100, (n * M, N)).astype(np.float32)
    x = device.array(np.concatenate([given, np.zeros_like(given)]))
    handed_over_beside[(1,)](x, n, how, warps, M, N)
    want = np.concatenate([given, given + 1 if how == "load" else given])
    np.testing.assert_array_equal(device.numpy(x), want)
