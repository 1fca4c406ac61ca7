"""Buffers that several pipes hand over, part by part, and products that read their slots where these lie, on every backend."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle

M, N, HALF = 64, 64, 64


@triton.jit
def gather(left, right, kv_ptr, index_ptr, n, N: tl.constexpr, HALF: tl.constexpr):
    row, column = tl.arange(0, N), tl.arange(0, HALF)
    rows = tl.broadcast_to(row[:, None], (N, HALF))
    for k in range(n):
        index = tl.load(index_ptr + k * N + row)
        there = tl.broadcast_to((index >= 0)[:, None], (N, HALF))
        first = kv_ptr + tl.where(index >= 0, index, 0)[:, None] * (2 * HALF)
        slot = left.acquire(k)
        x = tl.load(first + column[None, :], there, other=0.0)
        tl.store(tle.gpu.local_ptr(slot.kv, (rows, tl.broadcast_to(column[None, :], (N, HALF)))), x, there)
        left.commit(k)
        slot = right.acquire(k)
        x = tl.load(first + (HALF + column)[None, :], there, other=0.0)
        columns = tl.broadcast_to((HALF + column)[None, :], (N, HALF))
        tl.store(tle.gpu.local_ptr(slot.kv, (rows, columns)), x, there)
        right.commit(k)


@triton.jit
def attend(q, left, right, n, PART: tl.constexpr, M: tl.constexpr, N: tl.constexpr, HALF: tl.constexpr):
    rows = tl.broadcast_to(tl.arange(0, N)[:, None], (N, HALF))
    columns = tl.broadcast_to(tl.arange(0, HALF)[None, :], (N, HALF))
    q_slot = q.wait(0).slot
    acc = tl.zeros([M, HALF], tl.float32)
    for k in range(n):
        slot = left.wait(k).slot
        lower = tl.load(tle.gpu.local_ptr(slot.kv, (rows, columns)))
        s = tl.dot(tl.load(tle.gpu.local_ptr(q_slot.left)), tl.trans(lower))
        if PART == 1:
            left.release(k)
        slot = right.wait(k).slot
        upper = tl.load(tle.gpu.local_ptr(slot.kv, (rows, columns + HALF)))
        s = tl.dot(tl.load(tle.gpu.local_ptr(q_slot.right)), tl.trans(upper), s).to(tl.float16)
        if PART == 0:
            right.release(k)
            acc = tl.dot(s, lower, acc)
            left.release(k)
        else:
            acc = tl.dot(s, upper, acc)
            right.release(k)
    mine = q_slot.left if PART == 0 else q_slot.right
    pointers = tle.gpu.local_ptr(mine)
    inside = tl.broadcast_to(tl.arange(0, M)[:, None] < M, (M, HALF))
    return acc, pointers, inside


@triton.jit
def lower_half(
    writer, q_desc, q, left, right, mine, theirs, out_desc, n, M: tl.constexpr, N: tl.constexpr, HALF: tl.constexpr
):  # fmt: skip
    slot = writer.acquire(0)
    tle.gpu.copy(q_desc, slot.left, [M, HALF], [0, 0])
    tle.gpu.copy(q_desc, slot.right, [M, HALF], [0, HALF])
    writer.commit(0)
    acc, pointers, inside = attend(q, left, right, n, 0, M, N, HALF)
    mine.acquire(0)
    mine.commit(0)
    theirs.wait(0)
    tl.store(pointers, acc.to(tl.float16), inside)
    tle.gpu.copy(q.wait(0).slot.left, out_desc, [M, HALF], [0, 0])


@triton.jit
def upper_half(
    q, left, right, mine, theirs, out_desc, n, M: tl.constexpr, N: tl.constexpr, HALF: tl.constexpr
):
    acc, pointers, inside = attend(q, left, right, n, 1, M, N, HALF)
    mine.acquire(0)
    mine.commit(0)
    theirs.wait(0)
    tl.store(pointers, acc.to(tl.float16), inside)
    tle.gpu.copy(q.wait(0).slot.right, out_desc, [M, HALF], [0, HALF])


@triton.jit
def by_halves(
    q_desc, out_desc, kv_ptr, index_ptr, n, M: tl.constexpr, N: tl.constexpr, HALF: tl.constexpr, CAPACITY: tl.constexpr
):  # fmt: skip
    both = ("lower", "upper")
    q = tle.pipe(
        capacity=1,
        readers=both,
        one_shot=True,
        left=tle.gpu.alloc([1, M, HALF], dtype=tl.float16),
        right=tle.gpu.alloc([1, M, HALF], dtype=tl.float16),
    )
    kv = tle.gpu.alloc([CAPACITY, N, 2 * HALF], dtype=tl.float16)
    left = tle.pipe(capacity=CAPACITY, name="left", readers=both, kv=kv)
    right = tle.pipe(capacity=CAPACITY, name="right", readers=both, kv=kv)
    flag = tle.gpu.alloc([1, 32], dtype=tl.int32)
    lower_done = tle.pipe(capacity=1, name="lower_done", one_shot=True, flag=flag)
    upper_done = tle.pipe(capacity=1, name="upper_done", one_shot=True, flag=flag)
    tle.gpu.warp_specialize(
        [
            (
                lower_half,
                (
                    q.writer(), q_desc, q.reader("lower"), left.reader("lower"), right.reader("lower"),
                    lower_done.writer(), upper_done.reader(), out_desc, n, M, N, HALF,
                ),
            ),
            (
                upper_half,
                (
                    q.reader("upper"), left.reader("upper"), right.reader("upper"),
                    upper_done.writer(), lower_done.reader(), out_desc, n, M, N, HALF,
                ),
            ),
            (gather, (left.writer(), right.writer(), kv_ptr, index_ptr, n, N, HALF)),
        ],
        [4, 4],
        [168, 64],
    )  # fmt: skip


def halves(device, n, capacity, **options):
    random = np.random.default_rng(n + capacity)
    q = random.integers(0, 2, (M, 2 * HALF)).astype("float16")
    kv = random.integers(0, 2, (100, 2 * HALF)).astype("float16")
    index = random.integers(0, 100, (max(n, 1), N)).astype("int32")
    out = device.array(np.zeros((M, 2 * HALF), "float16"))
    descriptor = triton.tools.tensor_descriptor.TensorDescriptor
    q_desc, out_desc = (descriptor.from_tensor(x, [M, HALF]) for x in (device.array(q), out))
    arguments = (q_desc, out_desc, device.array(kv), device.array(index), n, M, N, HALF, capacity)
    want = np.zeros((M, 2 * HALF), "float32")
    for rows in index[:n]:
        there = kv[rows].astype("float32")
        want += (q.astype("float32") @ there.T) @ there
    return arguments, out, want.astype("float16")


@pytest.mark.parametrize("target", ["cuda:90", "cuda:80"])
@pytest.mark.parametrize("capacity", [1, 2])
def test_halves_of_one_buffer(device, monkeypatch, target, capacity):
    monkeypatch.setenv("TILEWRIGHT_TARGET", target)
    for n in (0, 1, 5):
        arguments, out, want = halves(device, n, capacity)
        by_halves[(1,)](*arguments, num_warps=4)
        np.testing.assert_array_equal(device.numpy(out), want)


def test_products_read_slots_of_several_pipes(device):
    arguments, *_ = halves(device, 5, 1)
    kernel = by_halves.warmup(*arguments, grid=(1,), num_warps=4, target="cuda:90")
    buffers = 2 * (2 * M * HALF + N * 2 * HALF) + 4 * 32
    assert kernel.metadata.shared < buffers + 1024  # nothing is stored again for a product
    ptx = kernel.asm["ptx"]
    assert ptx.count("wgmma.mma_async") == 2 * 3 * (HALF // 16)
    assert "cp.async.cg.shared.global" in ptx and "st.shared.v4" not in ptx


@triton.jit
def two_kinds(a, b, a_ptr, b_ptr, n, N: tl.constexpr):
    row, column = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    slot = a.acquire(0)
    slot.a.store(tl.load(a_ptr + row * N + column))
    a.commit(0)
    for k in range(n):
        # The next block first, which wants the slot of this one.
        if k + 1 < n:
            slot = a.acquire(k + 1)
            slot.a.store(tl.load(a_ptr + ((k + 1) * N + row) * N + column))
            a.commit(k + 1)
        other = b.acquire(k)
        other.b.store(tl.load(b_ptr + (k * N + row) * N + column))
        b.commit(k)


@triton.jit
def multiply(a, b, x_ptr, out_ptr, n, N: tl.constexpr):
    row, column = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + row * N + column)
    acc = tl.zeros([N, N], tl.float32)
    for k in range(n):
        product = tl.dot(x, a.wait(k).slot.a.load())
        a.release(k)
        acc += product * b.wait(k).slot.b.load()
        b.release(k)
    tl.store(out_ptr + row * N + column, acc)


@triton.jit
def released_before_another_wait(x_ptr, a_ptr, b_ptr, out_ptr, n, N: tl.constexpr):
    a = tle.pipe(capacity=1, name="a", a=tle.gpu.alloc([1, N, N], dtype=tl.float16))
    b = tle.pipe(capacity=1, name="b", b=tle.gpu.alloc([1, N, N], dtype=tl.float32))
    tle.gpu.warp_specialize(
        [
            (multiply, (a.reader(), b.reader(), x_ptr, out_ptr, n, N)),
            (two_kinds, (a.writer(), b.writer(), a_ptr, b_ptr, n, N)),
        ],
        [4],
        [64],
    )


def test_a_slot_is_released_before_another_pipe_is_waited_for(device, monkeypatch):
    """The writer fills the next slot of one pipe before it fills the other, on which the product's reader waits meanwhile."""
    monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:90")
    random, n = np.random.default_rng(0), 3
    x = random.integers(0, 3, (64, 64)).astype("float16")
    a, b = random.integers(0, 3, (n, 64, 64)).astype("float16"), random.integers(0, 3, (n, 64, 64)).astype("float32")  # fmt: skip
    out = device.array(np.zeros((64, 64), "float32"))
    released_before_another_wait[(1,)](*map(device.array, (x, a, b)), out, n, 64, num_warps=4)
    np.testing.assert_array_equal(device.numpy(out), sum((x.astype("float32") @ a[k]) * b[k] for k in range(n)))  # fmt: skip


@triton.jit
def turned_part(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PART: tl.constexpr):
    row, column = tl.arange(0, 2 * N)[:, None], tl.arange(0, 2 * K)[None, :]
    both = tle.gpu.alloc([2 * N, 2 * K], dtype=tl.float16)
    both.store(tl.load(y_ptr + row * (2 * K) + column))
    part = both.subslice(PART * N, N, 0).subslice(PART * K, K, 1)
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    out = tl.dot(x, tl.trans(part.load()))
    tl.store(out_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], out)


@pytest.mark.parametrize("target", ["cuda:90", "cuda:80"])
@pytest.mark.parametrize("part", [0, 1])
def test_a_product_of_a_transposed_part(device, monkeypatch, target, part):
    monkeypatch.setenv("TILEWRIGHT_TARGET", target)
    random = np.random.default_rng(part)
    x, y = (
        random.integers(0, 3, (64, 32)).astype("float16"),
        random.integers(0, 3, (64, 64)).astype("float16"),
    )
    out = device.array(np.zeros((64, 32), "float32"))
    turned_part[(1,)](device.array(x), device.array(y), out, 64, 32, 32, part)
    there = y[32 * part :, 32 * part :][:32, :32]
    np.testing.assert_array_equal(device.numpy(out), x.astype("float32") @ there.T.astype("float32"))


@triton.jit
def put(turns, tile, x_ptr, n, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    for k in range(n):
        turns.acquire(k)
        tile.store(tl.load(x_ptr + k * N * N + at))
        turns.commit(k)


@triton.jit
def take(turns, tile, out_ptr, n, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    for k in range(n):
        turns.wait(k)
        tl.store(out_ptr + k * N * N + at, tile.load())
        turns.release(k)


@triton.jit
def turns_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    tile = tle.gpu.alloc([N, N], dtype=tl.float16)
    turns = tle.pipe(capacity=1, turn=tle.gpu.alloc([1, 32], dtype=tl.int32))
    tle.gpu.warp_specialize(
        [(take, (turns.reader(), tile, out_ptr, n, N)), (put, (turns.writer(), tile, x_ptr, n, N))], [4], [64]
    )


def test_a_release_hands_over_what_is_no_field(device):
    """Two roles take turns at a buffer of which the pipe does not know."""
    x = np.random.default_rng(0).integers(-8, 8, (5, N, N)).astype(np.float16)
    out = device.array(np.zeros_like(x))
    turns_kernel[(1,)](device.array(x), out, 5, N, num_warps=4)
    np.testing.assert_array_equal(device.numpy(out), x)


@triton.jit
def lay(base, patch, x_ptr, y_ptr, n, N: tl.constexpr):
    row, column = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    at, rows, columns = row * N + column, tl.broadcast_to(row, (N, N)), tl.broadcast_to(column, (N, N))
    for k in range(n):
        slot = base.acquire(k)
        tl.store(tle.gpu.local_ptr(slot.kv, (rows, columns)), tl.load(x_ptr + k * N * N + at))
        base.commit(k)
        slot = patch.acquire(k)
        even = rows % 2 == 0
        y = tl.load(y_ptr + k * N * N + at, even, other=0.0)
        tl.store(tle.gpu.local_ptr(slot.kv, (rows, columns)), y, even)
        patch.commit(k)


@triton.jit
def multiply_twice(base, patch, q_ptr, out_ptr, n, CHANGE: tl.constexpr, N: tl.constexpr):
    row, column = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    at, rows, columns = row * N + column, tl.broadcast_to(row, (N, N)), tl.broadcast_to(column, (N, N))
    q = tl.load(q_ptr + at)
    acc = tl.zeros([N, N], tl.float32)
    for k in range(n):
        base.wait(k)
        slot = patch.wait(k).slot
        acc = tl.dot(q, slot.kv.load(), acc)
        ones = tl.full([N, N], 1.0, tl.float16)
        if CHANGE == "stored":
            slot.kv.store(ones)
        elif CHANGE == "stored in a branch":
            if k % 2 == 0:
                slot.kv.store(ones)
        else:
            tl.atomic_add(tle.gpu.local_ptr(slot.kv, (rows, columns)), ones)
        acc = tl.dot(q, slot.kv.load(), acc)
        patch.release(k)
        base.release(k)
    tl.store(out_ptr + at, acc)


@triton.jit
def patched_kernel(q_ptr, x_ptr, y_ptr, out_ptr, n, CHANGE: tl.constexpr, N: tl.constexpr):
    kv = tle.gpu.alloc([2, N, N], dtype=tl.float16)
    base, patch = tle.pipe(capacity=2, kv=kv), tle.pipe(capacity=2, kv=kv)
    tle.gpu.warp_specialize(
        [
            (multiply_twice, (base.reader(), patch.reader(), q_ptr, out_ptr, n, CHANGE, N)),
            (lay, (base.writer(), patch.writer(), x_ptr, y_ptr, n, N)),
        ],
        [4],
        [64],
    )


@pytest.mark.parametrize("change", ["stored", "stored in a branch", "added to"])
def test_what_a_second_pipe_leaves_and_a_reader_changes(device, change):
    """A mask leaves what the first pipe has put there, and a product reads what has been stored before it, however."""
    rng = np.random.default_rng(0)
    q = rng.integers(-3, 4, (N, N)).astype(np.float16)
    x, y = (rng.integers(-3, 4, (5, N, N)).astype(np.float16) for _ in range(2))
    out = device.array(np.zeros((N, N), np.float32))
    patched_kernel[(1,)](*map(device.array, (q, x, y)), out, 5, change, N, num_warps=4)
    kv = np.where((np.arange(N) % 2 == 0)[:, None], y, x).astype(np.float32)
    changed = kv + 1 if change == "added to" else np.ones_like(kv)
    if change == "stored in a branch":
        changed[1::2] = kv[1::2]
    want = sum(q.astype(np.float32) @ (before + after) for before, after in zip(kv, changed))
    np.testing.assert_array_equal(device.numpy(out), want)
