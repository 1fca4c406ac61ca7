"""`tle.gpu.warp_specialize` in loops and branches that are taken at run time: partitions begin as often as the kernel comes there."""

import re

import numpy as np
import order
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def add_up(own, count, x):
    own.store(x + count)
    return tl.sum(own.load()), count + 1


@triton.jit
def scaled(x_ptr, out_ptr, own, factor):
    """Scratch, atomics and a buffer that is read by others than have written it."""
    N: tl.constexpr = own.shape[0]
    at = tl.arange(0, N)
    own.store(tl.cumsum(tl.load(x_ptr + at)))
    tl.atomic_add(tle.gpu.local_ptr(own, (at,)), factor)
    tl.store(out_ptr + at, tl.load(tle.gpu.local_ptr(own, (N - 1 - at,))) * factor)


@triton.jit
def each_row(x_ptr, out_ptr, sums_ptr, n, N: tl.constexpr, WARPS: tl.constexpr, REGISTERS: tl.constexpr):
    buffers = tle.gpu.alloc([4, N], dtype=tl.int32)
    total, count = 0, 0
    for i in range(n):
        x_row, out_row = x_ptr + i * N, out_ptr + i * 3 * N
        own = (buffers.slot(3), count, tl.load(x_row + tl.arange(0, N)))
        first = (x_row, out_row, buffers.slot(0), i)
        second = (x_row, out_row + N, buffers.slot(1), i + 5)
        third = (x_row, out_row + 2 * N, buffers.slot(2), n)
        if len(WARPS) == 1:
            total, count = tle.gpu.warp_specialize([(add_up, own), (scaled, first)], WARPS, REGISTERS)
        elif len(WARPS) == 2:
            total, count = tle.gpu.warp_specialize(
                [(add_up, own), (scaled, first), (scaled, second)], WARPS, REGISTERS
            )
        else:
            total, count = tle.gpu.warp_specialize(
                [(add_up, own), (scaled, first), (scaled, second), (scaled, third)], WARPS, REGISTERS
            )
        tl.store(sums_ptr + i, total)


def scaled_row(x, factor):
    return (np.cumsum(x) + factor)[::-1] * factor


ROLES = [
    ((4,), (64,), 4),
    ((1,), (24,), 1),
    ((8,), (40,), 8),
    ((2, 1), (40, 24), 4),
    ((4, 4), (240, 40), 4),
    ((4, 4, 4), (152, 120, 96), 4),
    ((1, 1, 4), (24, 40, 40), 2),
    # The main warps have fewer than at the beginning, and take theirs back when the workers have given them.
    ((4,), (200,), 8),
    ((4, 4), (240, 24), 8),
]


@pytest.mark.parametrize(("warps", "registers", "num_warps"), ROLES)
@pytest.mark.parametrize("n", [0, 3])
def test_a_loop(device, warps, registers, num_warps, n):
    x = np.random.default_rng(n).integers(0, 50, (3, 128), dtype=np.int32)
    out, sums = device.array(np.zeros((3, 3, 128), np.int32)), device.array(np.zeros(3, np.int32))
    each_row[(1,)](device.array(x), out, sums, n, 128, warps, registers, num_warps=num_warps)
    np.testing.assert_array_equal(device.numpy(sums)[:n], [x[i].sum() + 128 * i for i in range(n)])
    for i in range(n):
        for role, factor in enumerate([i, i + 5, n][: len(warps)]):
            np.testing.assert_array_equal(device.numpy(out)[i, role], scaled_row(x[i], factor))


def test_registers_come_back():
    a = np.zeros((3, 3, 128), np.int32)
    ptx = each_row.warmup(a, a, a, 3, 128, (4, 4), (40, 40), num_warps=8, grid=(1,), target="cuda:90").asm[
        "ptx"
    ]
    taken, given = (
        sorted(re.findall(rf"setmaxnreg\.{way}\.sync\.aligned\.u32 (\d+)", ptx)) for way in ("inc", "dec")
    )
    # The default warps have what both workers give up, and each has as many as before when the next iteration begins.
    assert (taken, given) == (["128", "128", "216"], ["128", "40", "40"])


@triton.jit
def put(out_ptr, value, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), tl.arange(0, N) + value)


@triton.jit
def halves(out_ptr, counts_ptr, n, N: tl.constexpr):
    """As 3 n + 1: another one in each branch, and one of them without any."""
    steps = 0
    while n != 1:
        at = out_ptr + steps * 2 * N
        if n % 2 == 0:
            tle.gpu.warp_specialize([(put, (at, n, N)), (put, (at + N, -n, N))], [2], [40])
            n = n // 2
        else:
            if n > 20:
                tle.gpu.warp_specialize([(put, (at + N, n, N)), (put, (at, 7, N))], [4], [40])
            n = 3 * n + 1
        steps += 1
    tl.store(counts_ptr, steps)
    # Behind the loop, with more warps than in it.
    tle.gpu.warp_specialize(
        [(put, (counts_ptr + 1, 0, 8)), (put, (counts_ptr + 9, 8, 8)), (put, (counts_ptr + 17, 16, 8))],
        [1, 4],
        [40, 40],
    )


@pytest.mark.parametrize("n", [1, 6, 7])
def test_while_and_branches(device, n):
    out, counts = device.array(np.zeros((20, 2, 64), np.int32)), device.array(np.zeros(25, np.int32))
    halves[(1,)](out, counts, n, 64)
    want, steps, at = np.zeros((20, 2, 64), np.int32), 0, np.arange(64)
    while n != 1:
        if n % 2 == 0:
            want[steps] = at + n, at - n
            n //= 2
        else:
            if n > 20:
                want[steps] = at + 7, at + n
            n = 3 * n + 1
        steps += 1
    np.testing.assert_array_equal(device.numpy(out), want)
    np.testing.assert_array_equal(device.numpy(counts), [steps, *range(24)])


@triton.jit
def unless(out_ptr, n, N: tl.constexpr):
    if n == 0:
        return
    tle.gpu.warp_specialize([(put, (out_ptr, n, N)), (put, (out_ptr + N, 1, N))], [1], [40])


def test_behind_a_return(device):
    for n in (0, 5):
        out = device.array(np.zeros(64, np.int32))
        unless[(1,)](out, n, 32)
        want = np.concatenate([np.arange(32) + n, np.arange(32) + 1]) if n else np.zeros(64)
        np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def give(x_ptr, writer, start, n, N: tl.constexpr):
    for k in range(start, start + n):
        slot = writer.acquire(k)
        tle.gpu.copy(x_ptr + k * N + tl.arange(0, N), slot.x, [N])
        writer.commit(k)


@triton.jit
def take(out_ptr, reader, start, n, factor, N: tl.constexpr):
    for k in range(start, start + n):
        x = reader.wait(k).slot.x
        tl.store(
            out_ptr + k * N + tl.arange(0, N),
            tl.load(tle.gpu.local_ptr(x, (N - 1 - tl.arange(0, N),))) * factor,
        )
        reader.release(k)


@triton.jit
def one_pipe(x_ptr, out_ptr, n, N: tl.constexpr):
    """Made before the loop: its numbers go on."""
    pipe = tle.pipe(capacity=3, x=tle.gpu.alloc([3, N], dtype=tl.float32), readers=("left", "right"))
    writer, left, right = pipe.writer(), pipe.reader("left"), pipe.reader("right")
    start = 0
    for i in range(n):
        tle.gpu.warp_specialize(
            [
                (take, (out_ptr, left, start, i, 2, N)),
                (give, (x_ptr, writer, start, i, N)),
                (take, (out_ptr + 10 * N, right, start, i, 3, N)),
            ],
            [1, 2],
            [40, 64],
        )
        start += i


@triton.jit
def a_pipe_each(x_ptr, out_ptr, n, N: tl.constexpr):
    """Made in the loop: its numbers begin again."""
    start = 0
    for i in range(n):
        pipe = tle.pipe(capacity=2, x=tle.gpu.alloc([2, N], dtype=tl.float32), readers=("left", "right"))
        writer, left, right = pipe.writer(), pipe.reader("left"), pipe.reader("right")
        tle.gpu.warp_specialize(
            [
                (take, (out_ptr + start * N, left, 0, i, 2, N)),
                (give, (x_ptr + start * N, writer, 0, i, N)),
                (take, (out_ptr + 10 * N + start * N, right, 0, i, 3, N)),
            ],
            [1, 2],
            [40, 64],
        )
        start += i


@pytest.mark.parametrize("kernel", [one_pipe, a_pipe_each])
def test_pipes(device, kernel):
    x = np.random.default_rng(0).integers(0, 50, (10, 128)).astype(np.float32)
    out = device.array(np.zeros((2, 10, 128), np.float32))
    kernel[(1,)](device.array(x), out, 5, 128)
    np.testing.assert_array_equal(device.numpy(out), np.stack([2 * x[:, ::-1], 3 * x[:, ::-1]]))


@triton.jit
def give_block(desc, buffer, full, i):
    tle.gpu.copy(desc, buffer, [16, 32], [16 * i, 0], barrier=full)


@triton.jit
def take_block(out_ptr, buffer, full, i):
    tle.gpu.barrier_wait(full, phaseIdx=0)
    at = 16 * i + tl.arange(0, 16)
    tl.store(out_ptr + at[:, None] * 32 + tl.arange(0, 32)[None, :], buffer.load() * 2)


@triton.jit
def a_barrier_each(desc, out_ptr, n):
    for i in range(n):
        buffer = tle.gpu.alloc([16, 32], dtype=tl.float32)
        full = tle.gpu.alloc_barrier(expect_bytes=16 * 32 * 4)
        tle.gpu.warp_specialize(
            [(take_block, (out_ptr, buffer, full, i)), (give_block, (desc, buffer, full, i))], [1], [40]
        )


def test_mbarriers(device):
    from tilewright.tools.tensor_descriptor import TensorDescriptor

    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    out = device.array(np.zeros_like(x))
    a_barrier_each[(1,)](TensorDescriptor.from_tensor(device.array(x), [16, 32]), out, 4)
    np.testing.assert_array_equal(device.numpy(out), x * 2)


@triton.jit
def left_half(buffer, x):
    H: tl.constexpr = x.shape[0]
    tl.store(tle.gpu.local_ptr(buffer, (tl.arange(0, H),)), x)


@triton.jit
def right_half(buffer, x):
    H: tl.constexpr = x.shape[0]
    tl.store(tle.gpu.local_ptr(buffer, (H + tl.arange(0, H),)), x * 2)


@triton.jit
def shared_out(x_ptr, out_ptr, n, N: tl.constexpr):
    """The kernel's own warps run both."""
    buffer = tle.gpu.alloc([2 * N], dtype=tl.int32)
    for i in range(n):
        x = tl.load(x_ptr + i * N + tl.arange(0, N))
        tle.gpu.warp_specialize(
            [(left_half, (buffer, x)), (right_half, (buffer, x))], [2, 2], reuse_default_warps=True
        )
        at = tl.arange(0, 2 * N)
        tl.store(out_ptr + i * 2 * N + at, tl.load(tle.gpu.local_ptr(buffer, (2 * N - 1 - at,))))


def test_shared_out(device):
    x = np.random.default_rng(0).integers(0, 50, (3, 64), dtype=np.int32)
    out = device.array(np.zeros((3, 128), np.int32))
    shared_out[(1,)](device.array(x), out, 3, 64)
    np.testing.assert_array_equal(device.numpy(out), np.concatenate([x, 2 * x], 1)[:, ::-1])


@triton.jit
def nothing():
    pass


CLUSTER = tle.device_mesh({"block_cluster": 2})


@triton.jit
def tell(buffer, value):
    buffer.store(tl.full(buffer.shape, 0, tl.int32) + value)


@triton.jit
def in_a_cluster(out_ptr, n, mesh: tl.constexpr, N: tl.constexpr):
    """Programs that wait for each other before the loop, in it, where its workers don't come along, and at the end, when these have gone."""
    rank = tle.shard_id(mesh, "block_cluster")
    buffer = tle.gpu.alloc([N], dtype=tl.int32)
    there = tle.remote(buffer, 1 - rank, mesh)
    tle.distributed_barrier(mesh)
    for i in range(n):
        tle.gpu.warp_specialize([(nothing, ()), (tell, (buffer, rank * 100 + i))], [2], [40])
        tle.distributed_barrier(mesh)
        at = tl.arange(0, N)
        tl.store(out_ptr + (rank * n + i) * N + at, tl.load(tle.gpu.local_ptr(there, (at,))))
        tle.distributed_barrier(mesh)
    tle.distributed_barrier(mesh)


def test_in_a_cluster(device):
    out = device.array(np.zeros((2, 3, 64), np.int32))
    in_a_cluster[(1,)](out, 3, CLUSTER, 64)
    want = np.array([[100, 101, 102], [0, 1, 2]])
    np.testing.assert_array_equal(device.numpy(out), np.broadcast_to(want[:, :, None], (2, 3, 64)))


@triton.jit
def double(buffer):
    N: tl.constexpr = buffer.shape[0]
    at = tl.arange(0, N)
    buffer.store(tl.load(tle.gpu.local_ptr(buffer, (N - 1 - at,))) * 2)


@triton.jit
def back_and_forth(x_ptr, out_ptr, n, N: tl.constexpr):
    """What orders the iterations are the barriers at which partitions begin and end, alone."""
    at = tl.arange(0, N)
    buffer = tle.gpu.alloc([N], dtype=tl.int32)
    buffer.store(tl.load(x_ptr + at))
    for i in range(n):
        if i % 3 == 1:
            tle.gpu.warp_specialize([(nothing, ()), (double, (buffer,))], [2], [40])
        else:
            tl.atomic_add(tle.gpu.local_ptr(buffer, (N - 1 - at,)), i)
    tl.store(out_ptr + at, buffer.load())


def test_barriers_are_needed():
    x, out = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    compiled = back_and_forth.warmup(x, out, 4, 128, grid=(1,), target="cuda:90")
    found = order.reported(compiled, (x, out, 4))
    assert sum("bar.red" in line for line, _ in found) == 3
    silent = [line for line, kinds in found if not kinds]
    assert not silent, silent


def test_barriers_of_pipes_are_needed():
    x, out = np.ones((6, 64), np.float32), np.zeros((2, 10, 64), np.float32)
    compiled = a_pipe_each.warmup(x, out, 4, 64, grid=(1,), target="cuda:90")
    silent = [line for line, kinds in order.reported(compiled, (x, out, 4)) if not kinds]
    assert not silent, silent


def test_back_and_forth(device):
    for n in (0, 4):
        x, out = np.arange(128, dtype=np.int32), device.array(np.zeros(128, np.int32))
        back_and_forth[(1,)](device.array(x), out, n, 128)
        want = x
        for i in range(n):
            want = want[::-1] * 2 if i % 3 == 1 else want + i
        np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def in_a_sum(a, b):
    tle.gpu.warp_specialize([(nothing, ()), (nothing, ())], [1], [40])
    return a + b


@triton.jit
def sums(x_ptr):
    tl.store(x_ptr, tl.reduce(tl.load(x_ptr + tl.arange(0, 32)), 0, in_a_sum))


def test_not_where_elements_are_combined():
    with pytest.raises(triton.CompilationError, match="in a function that combines elements"):
        sums[(1,)](np.zeros(32, np.int32))
