"""`tle.gpu.copy` from a buffer to a tensor descriptor: by the copy engine, straight from the buffer, which is not written before it has been read."""

import numpy as np
import order
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


def engine_stores(kernel, *args, target="cuda:90"):
    """The PTX of a kernel, and how many copies to global memory stand in it."""
    ptx = kernel.warmup(*args, grid=(1,), target=target).asm["ptx"]
    return ptx, ptx.count("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group")


def waits(ptx):
    """What waits for copies to global memory leave under way, in order."""
    lines = [line.strip() for line in ptx.splitlines()]
    return [
        int(line.split()[-1].rstrip(";"))
        for i, line in enumerate(lines)
        if line.startswith("cp.async.bulk.wait_group.read") and "fence.proxy.tensormap" not in lines[i - 2]
    ]


@triton.jit
def doubled(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    """One buffer, written by all threads in each turn."""
    desc = tl.make_tensor_descriptor(out_ptr, [n * M, N], [N, 1], [M, N])
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tle.gpu.alloc([M, N], dtype=x_ptr.dtype.element_ty)
    for i in range(n):
        x.store(tl.load(x_ptr + i * M * N + at) * 2)
        tle.gpu.copy(x, desc, [M, N], [i * M, 0])


@triton.jit
def by_turns(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    """Two buffers: the copy from one goes on while the other is written."""
    desc = tl.make_tensor_descriptor(out_ptr, [2 * n * M, N], [N, 1], [M, N])
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    slots = tle.gpu.alloc([2, M, N], dtype=x_ptr.dtype.element_ty)
    for i in range(n):
        for half in tl.static_range(2):
            k = 2 * i + half
            slots.slot(half).store(tl.load(x_ptr + k * M * N + at) * 2)
            tle.gpu.copy(slots.slot(half), desc, [M, N], [k * M, 0])


@triton.jit
def numbered(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    """A slot whose number is known at run time only."""
    desc = tl.make_tensor_descriptor(out_ptr, [n * M, N], [N, 1], [M, N])
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    slots = tle.gpu.alloc([3, M, N], dtype=x_ptr.dtype.element_ty)
    for i in range(n):
        slots.slot(i % 3).store(tl.load(x_ptr + i * M * N + at) * 2)
        tle.gpu.copy(slots.slot(i % 3), desc, [M, N], [i * M, 0])


@triton.jit
def numbered_twice(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    """Two slots an iteration, of a ring that the next run of the loop begins anew."""
    desc = tl.make_tensor_descriptor(out_ptr, [n * M, N], [N, 1], [M, N])
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    slots = tle.gpu.alloc([4, M, N], dtype=x_ptr.dtype.element_ty)
    for first in range(0, n, 4):
        for i in range(2):
            for half in tl.static_range(2):
                k = first + 2 * i + half
                slot = slots.slot((2 * i + half + 3) % 4)
                slot.store(tl.load(x_ptr + k * M * N + at) * 2)
                tle.gpu.copy(slot, desc, [M, N], [k * M, 0])


@triton.jit
def sometimes(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    """Copied in a branch, changed through pointers behind it."""
    desc = tl.make_tensor_descriptor(out_ptr, [n * M, N], [N, 1], [M, N])
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tle.gpu.alloc([M, N], dtype=x_ptr.dtype.element_ty)
    x.store(tl.load(x_ptr + rows * N + columns))
    for i in range(n):
        there = tle.gpu.local_ptr(x, (rows, columns))
        tl.store(there, tl.load(there) * 2)
        if i % 2 == 0:
            tle.gpu.copy(x, desc, [M, N], [i * M, 0])


@triton.jit
def memory_again(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    """The memory of what is copied is another buffer's next, and scratch."""
    desc = tl.make_tensor_descriptor(out_ptr, [n * M, N], [N, 1], [M, N])
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    total = tl.zeros([M, N], x_ptr.dtype.element_ty)
    for i in range(n):
        x = tle.gpu.alloc([M, N], dtype=x_ptr.dtype.element_ty)
        x.store(tl.load(x_ptr + i * M * N + at) * 2)
        tle.gpu.copy(x, desc, [M, N], [i * M, 0])
        other = tle.gpu.alloc([M, N], dtype=x_ptr.dtype.element_ty)
        other.store(total + 1)
        turned = tl.load(
            tle.gpu.local_ptr(other, (M - 1 - tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]))
        )
        total = turned + tl.max(turned, axis=1)[:, None]
    tl.store(out_ptr + n * M * N + at, total)


IN_ORDER = [doubled, by_turns, numbered, numbered_twice, sometimes]


@pytest.mark.parametrize("kernel", IN_ORDER)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
@pytest.mark.parametrize("shape", [(16, 64), (64, 32), (24, 96)])
def test_in_order(device, kernel, dtype, shape):
    (m, n), turns = shape, 8 if kernel is numbered_twice else 4
    x = np.random.default_rng(0).integers(-3, 4, (turns * m, n)).astype(dtype)
    out = device.array(np.zeros((turns * m, n), dtype))
    kernel[(1,)](device.array(x), out, turns // 2 if kernel is by_turns else turns, m, n)
    want = x * 2
    if kernel is sometimes:
        want = np.concatenate([x[:m] * 2, x[:m] * 0, x[:m] * 8, x[:m] * 0])
    np.testing.assert_array_equal(device.numpy(out), want)


def test_memory_again(device):
    turns, m, n = 4, 32, 32
    x = np.random.default_rng(0).integers(-3, 4, (turns * m, n)).astype(np.float32)
    out = device.array(np.zeros(((turns + 1) * m, n), np.float32))
    memory_again[(1,)](device.array(x), out, turns, m, n)
    np.testing.assert_array_equal(device.numpy(out)[: turns * m], x * 2)
    total = 0
    for _ in range(turns):
        total = 2 * (total + 1)
    assert (device.numpy(out)[turns * m :] == total).all()


@triton.jit
def parts(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, WIDE: tl.constexpr):
    """Quarters of the rows and of the columns of a buffer, and of a slot of another."""
    by_rows = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [M // 4, N])
    by_columns = tl.make_tensor_descriptor(out_ptr + M * N, [M, N], [N, 1], [M, WIDE])
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    rows, columns = tle.gpu.alloc([M, N], tl.float16), tle.gpu.alloc([2, M, N], tl.float16)
    rows.store(tl.load(x_ptr + at))
    columns.slot(1).store(tl.load(x_ptr + at))
    for i in tl.static_range(4):
        tle.gpu.copy(
            rows.subslice((3 - i) * (M // 4), M // 4, dim=0), by_rows, [M // 4, N], [i * (M // 4), 0]
        )
    for i in tl.static_range(N // WIDE):
        part = columns.slot(1).subslice(N - (i + 1) * WIDE, WIDE)
        tle.gpu.copy(part, by_columns, [M, WIDE], [0, i * WIDE])


@pytest.mark.parametrize(("m", "n", "wide"), [(64, 128, 32), (32, 256, 64), (96, 64, 16), (64, 64, 8)])
def test_parts_of_buffers(device, m, n, wide):
    x = np.random.default_rng(0).random((m, n)).astype(np.float16)
    out = device.array(np.zeros((2, m, n), np.float16))
    parts[(1,)](device.array(x), out, m, n, wide)
    want = [
        np.concatenate(np.split(x, pieces, axis)[::-1], axis) for axis, pieces in ((0, 4), (1, n // wide))
    ]
    np.testing.assert_array_equal(device.numpy(out), want)


def test_parts_go_by_the_copy_engine():
    x = np.zeros((64, 128), np.float16)
    assert engine_stores(parts, x, np.zeros((2, 64, 128), np.float16), 64, 128, 32)[1] > 0


@triton.jit
def bring(desc, slots, full, empty, n, M: tl.constexpr, N: tl.constexpr):
    for i in range(n):
        tle.gpu.barrier_wait(empty[i % 2], phaseIdx=i // 2)
        tle.gpu.copy(desc, slots.slot(i % 2), [M, N], [i * M, 0], barrier=full[i % 2])


@triton.jit
def take_away(desc, slots, full, empty, n, CHANGED: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    for i in range(n):
        tle.gpu.barrier_wait(full[i % 2], phaseIdx=i // 2)
        slot = slots.slot(i % 2)
        if CHANGED:
            slot.store(slot.load() * 2)
        tle.gpu.copy(slot, desc, [M, N], [i * M, 0])
        tle.gpu.barrier_arrive(empty[i % 2], phaseIdx=i // 2)


@triton.jit
def nothing():
    pass


@triton.jit
def relay(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, CHANGED: tl.constexpr, WARPS: tl.constexpr):
    """What one partition has copied in another copies out, before the first fills the slot again."""
    x = tl.make_tensor_descriptor(x_ptr, [n * M, N], [N, 1], [M, N])
    out = tl.make_tensor_descriptor(out_ptr, [n * M, N], [N, 1], [M, N])
    slots = tle.gpu.alloc([2, M, N], dtype=x_ptr.dtype.element_ty)
    BYTES: tl.constexpr = M * N * x_ptr.dtype.element_ty.primitive_bitwidth // 8
    full = tle.gpu.alloc_barriers(2, expect_bytes=BYTES)
    empty = tle.gpu.alloc_barriers(2, init=tle.gpu.READY)
    tle.gpu.warp_specialize(
        [
            (nothing, ()),
            (bring, (x, slots, full, empty, n, M, N)),
            (take_away, (out, slots, full, empty, n, CHANGED, M, N)),
        ],
        [1, WARPS],
        [40, 40],
    )


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("warps", [1, 4])
def test_between_partitions(device, changed, warps):
    x = np.random.default_rng(0).random((5 * 32, 64), np.float32)
    out = device.array(np.zeros_like(x))
    relay[(1,)](device.array(x), out, 5, 32, 64, changed, warps)
    np.testing.assert_array_equal(device.numpy(out), x * 2 if changed else x)


@triton.jit
def fill(writer, desc, n, M: tl.constexpr, N: tl.constexpr):
    for k in range(n):
        tle.gpu.copy(desc, writer.acquire(k).x, [M, N], [k * M, 0])
        writer.commit(k)


@triton.jit
def fill_by_stores(writer, x_ptr, n, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    for k in range(n):
        writer.acquire(k).x.store(tl.load(x_ptr + k * M * N + at) + 0)
        writer.commit(k)


@triton.jit
def drain(reader, desc, n, M: tl.constexpr, N: tl.constexpr):
    for k in range(n):
        tle.gpu.copy(reader.wait(k).slot.x, desc, [M, N], [k * M, 0])
        reader.release(k)


@triton.jit
def through_pipe(
    x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, STORES: tl.constexpr, WARPS: tl.constexpr
):
    x = tl.make_tensor_descriptor(x_ptr, [n * M, N], [N, 1], [M, N])
    out = tl.make_tensor_descriptor(out_ptr, [n * M, N], [N, 1], [M, N])
    pipe = tle.pipe(capacity=2, x=tle.gpu.alloc([2, M, N], dtype=tl.float32))
    if STORES:
        tle.gpu.warp_specialize(
            [(fill_by_stores, (pipe.writer(), x_ptr, n, M, N)), (drain, (pipe.reader(), out, n, M, N))],
            [WARPS],
            [40],
        )
    else:
        tle.gpu.warp_specialize(
            [(fill, (pipe.writer(), x, n, M, N)), (drain, (pipe.reader(), out, n, M, N))], [WARPS], [40]
        )


@triton.jit
def pipe_of_one_group(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    out = tl.make_tensor_descriptor(out_ptr, [n * M, N], [N, 1], [M, N])
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    pipe = tle.pipe(capacity=2, x=tle.gpu.alloc([2, M, N], dtype=tl.float32))
    writer, reader = pipe.writer(), pipe.reader()
    for k in range(n):
        writer.acquire(k).x.store(tl.load(x_ptr + k * M * N + at) + 0)
        writer.commit(k)
        tle.gpu.copy(reader.wait(k).slot.x, out, [M, N], [k * M, 0])
        reader.release(k)


@pytest.mark.parametrize("stores", [False, True])
@pytest.mark.parametrize("warps", [1, 4])
def test_slots_of_pipes(device, stores, warps):
    x = np.random.default_rng(0).random((5 * 32, 64), np.float32)
    out = device.array(np.zeros_like(x))
    through_pipe[(1,)](device.array(x), out, 5, 32, 64, stores, warps)
    np.testing.assert_array_equal(device.numpy(out), x)


def test_slots_of_a_pipe_of_one_group(device):
    x = np.random.default_rng(0).random((5 * 32, 64), np.float32)
    out = device.array(np.zeros_like(x))
    pipe_of_one_group[(1,)](device.array(x), out, 5, 32, 64)
    np.testing.assert_array_equal(device.numpy(out), x)


WAITED = {
    "doubled": (doubled, (4, 32, 64)),
    "by turns": (by_turns, (2, 32, 64)),
    "numbered": (numbered, (4, 32, 64)),
    "sometimes": (sometimes, (5, 32, 64)),
    "relay": (relay, (5, 32, 64, False, 1)),
    "relay of four warps": (relay, (5, 32, 64, False, 4)),
    "relay that changes": (relay, (5, 32, 64, True, 4)),
    "pipe of blocks": (through_pipe, (5, 32, 64, False, 1)),
    "pipe of stores": (through_pipe, (5, 32, 64, True, 4)),
    "pipe of one group": (pipe_of_one_group, (5, 32, 64)),
}


# Barriers without which nothing is reported: between accesses of each thread to what it alone accesses. Of a warp whose elected lane copies, waits and arrives.
SILENT = {
    "sometimes": ["bar.sync"],
    "relay": ["bar.warp.sync"],
    "relay that changes": ["bar.sync"],
    "pipe of stores": ["bar.warp.sync"],
}


@pytest.mark.parametrize("name", WAITED)
def test_the_simulator_asks_for_each_wait_and_fence(name):
    kernel, (n, *constants) = WAITED[name]
    x = np.random.default_rng(0).random((5 * 32, 64), np.float32)
    compiled = kernel.warmup(x, np.zeros_like(x), n, *constants, grid=(1,), target="cuda:90")
    reported = order.reported(compiled, [x, np.zeros_like(x), n])
    silent = [order.kind(line) for line, kinds in reported if not kinds]
    assert silent == SILENT.get(name, []), reported
    assert any("wait_group" in line for line, _ in reported)


@pytest.mark.parametrize(
    ("kernel", "left"),
    [
        (doubled, [0, 0]),
        (by_turns, [1, 1, 0]),
        (numbered, [2, 0]),
        (numbered_twice, [3, 3, 0]),
        (sometimes, [0, 0]),
    ],
)
def test_what_waits_leave_under_way(kernel, left):
    x = np.zeros((8 * 32, 64), np.float32)
    ptx, stores = engine_stores(kernel, x, x, 4, 32, 64)
    assert stores > 0 and waits(ptx) == left


@triton.jit
def again_and_again(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, HINTS: tl.constexpr):
    """One buffer that stays as it is: nothing but a hint bounds how many copies are under way."""
    desc = tl.make_tensor_descriptor(out_ptr, [n * M, N], [N, 1], [M, N])
    x = tle.gpu.alloc([M, N], dtype=tl.float32)
    x.store(tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]))
    for i in range(n):
        if HINTS == 0:
            tle.gpu.copy(x, desc, [M, N], [i * M, 0])  # a comment
        elif HINTS == 1:
            tle.gpu.copy(x, desc, [M, N], [i * M, 0])  # @hint: tma_store_pending=8
        elif i % 2 == 0:
            tle.gpu.copy(x, desc, [M, N], [i * M, 0])  # @hint: tma_store_pending=2
        else:
            tle.gpu.copy(x, desc, [M, N], [i * M, 0])  # @hint: tma_store_pending = 4


@pytest.mark.parametrize(("hints", "left"), [(0, [0]), (1, [0, 7]), (2, [0, 3, 3])])
def test_a_hint_bounds_what_is_under_way(device, hints, left):
    x = np.random.default_rng(0).random((32, 64), np.float32)
    out = device.array(np.zeros((5 * 32, 64), np.float32))
    again_and_again[(1,)](device.array(x), out, 5, 32, 64, hints)
    np.testing.assert_array_equal(device.numpy(out), np.tile(x, (5, 1)))
    ptx, _ = engine_stores(again_and_again, x, np.zeros((5 * 32, 64), np.float32), 5, 32, 64, hints)
    assert sorted(waits(ptx)) == left


@triton.jit
def wrong_hint(x_ptr, CASE: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, [32, 32], [32, 1], [32, 32])
    x = tle.gpu.alloc([32, 32], dtype=tl.float32)
    if CASE == 0:
        tle.gpu.copy(x, desc, [32, 32], [0, 0])  # @hint: tma_store_pending
    elif CASE == 1:
        tle.gpu.copy(x, desc, [32, 32], [0, 0])  # @hint: tma_store_pending=0
    elif CASE == 2:
        tle.gpu.copy(x, desc, [32, 32], [0, 0])  # @hint: pending=3


@pytest.mark.parametrize("case", range(3))
def test_wrong_hints(case):
    with pytest.raises(triton.CompilationError, match="at most N such copies are under way") as error:
        wrong_hint[(1,)](np.zeros((32, 32), np.float32), case)
    assert "test_copy_out.py" in str(error.value) and "^" in str(error.value)


@triton.jit
def converted(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    desc = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [M, N])
    x = tle.gpu.alloc([M, N], dtype=tl.float32)
    x.store(tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]))
    tle.gpu.copy(x, desc, [M, N], [0, 0])


SWIZZLED = tle.gpu.swizzled_shared_layout(4, 1, 8, (1, 0))


@triton.jit
def laid_out(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    desc = tl.make_tensor_descriptor(out_ptr, [2 * M, N], [N, 1], [M, N])
    x, y = tle.gpu.alloc([M, N], tl.float32, layout=SWIZZLED), tle.gpu.alloc([M, N], tl.float32)
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x.store(tl.load(x_ptr + at))
    y.store(tl.load(x_ptr + at) + 1)
    tle.gpu.copy(x, desc, [M, N], [0, 0])
    tle.gpu.copy(y, desc, [M, N], [M, 0])


def test_what_the_copy_engine_has_not_goes_by_registers(device):
    """Conversions, layouts that it does not read, and two layouts of one descriptor."""
    x = np.random.default_rng(0).random((32, 64), np.float32)
    out = device.array(np.zeros((32, 64), np.float16))
    converted[(1,)](device.array(x), out, 32, 64)
    np.testing.assert_array_equal(device.numpy(out), x.astype(np.float16))
    out = device.array(np.zeros((64, 64), np.float32))
    laid_out[(1,)](device.array(x), out, 32, 64)
    np.testing.assert_array_equal(device.numpy(out), np.concatenate([x, x + 1]))


def test_other_targets():
    x = np.zeros((4 * 32, 64), np.float32)
    assert engine_stores(doubled, x, x, 4, 32, 64, target="cuda:80")[1] == 0
