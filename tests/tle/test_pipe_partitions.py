"""`tle.pipe` between partitions of `tle.gpu.warp_specialize`: what arrives, on every backend, and what is said of those that cannot go on."""

import re

import numpy as np
import order
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@pytest.fixture(params=["cuda:90", "cuda:80"])
def target(request, monkeypatch):
    """What the simulator compiles for; the executor has none."""
    monkeypatch.setenv("TILEWRIGHT_TARGET", request.param)
    return request.param


@pytest.fixture
def stops(device):
    """A launch that never ends would keep a GPU."""
    if device.backend == "cuda":
        pytest.skip("partitions that wait for ever hang a GPU")


def numbers(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


@triton.jit
def fill(slot, x_ptr, k, B: tl.constexpr):
    slot.x.store(tl.load(x_ptr + k * B + tl.arange(0, B)))


@triton.jit
def produce(writer, x_ptr, n, B: tl.constexpr):
    for k in range(n):
        slot = writer.acquire(k)
        fill(slot, x_ptr, k, B)
        writer.commit(k)


@triton.jit
def consume(reader, out_ptr, n, factor, B: tl.constexpr):
    at = tl.arange(0, B)
    for k in range(n):
        ready = reader.wait(k)
        # In another order than it was written in, so that other warps' data is read.
        x = tl.load(tle.gpu.local_ptr(ready.slot.x, (B - 1 - at,)))
        reader.release(k)
        tl.store(out_ptr + k * B + at, x * factor + tl.sum(x))


@triton.jit
def two_roles(
    x_ptr, out_ptr, n, B: tl.constexpr, CAPACITY: tl.constexpr, WARPS: tl.constexpr, SWAP: tl.constexpr
):
    pipe = tle.pipe(
        capacity=CAPACITY, name="x_pipe", x=tle.gpu.alloc([CAPACITY, B], dtype=x_ptr.dtype.element_ty)
    )
    if SWAP:
        tle.gpu.warp_specialize(
            [(consume, (pipe.reader(), out_ptr, n, 3, B)), (produce, (pipe.writer(), x_ptr, n, B))],
            [WARPS],
            [40],
        )
    else:
        tle.gpu.warp_specialize(
            [(produce, (pipe.writer(), x_ptr, n, B)), (consume, (pipe.reader(), out_ptr, n, 3, B))],
            [WARPS],
            [64],
        )


def expected(x, factor=3):
    return x[:, ::-1] * factor + x.sum(1, keepdims=True)


@pytest.mark.parametrize("capacity", [1, 2, 3, 5])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(("num_warps", "warps"), [(4, 4), (1, 8), (8, 1), (2, 2)])
def test_two_roles(device, target, capacity, swap, num_warps, warps):
    for n in (0, 1, 7):
        x = numbers((n, 256), "int32")
        out = device.array(np.zeros((max(n, 1), 256), "int32"))
        two_roles[(1,)](device.array(x), out, n, 256, capacity, warps, swap, num_warps=num_warps)
        np.testing.assert_array_equal(device.numpy(out)[:n], expected(x))


@pytest.mark.parametrize("dtype", ["int8", "float16", "int64", "float64"])
@pytest.mark.parametrize("block", [16, 96, 1000])
def test_types_and_sizes(device, dtype, block):
    x = numbers((5, block), dtype) % 3
    out = device.array(np.zeros((5, block), dtype))
    two_roles[(1,)](device.array(x), out, 5, block, 2, 4, False)
    want = x[:, ::-1] * np.array(3, dtype) + x.sum(1, keepdims=True, dtype=dtype)
    if dtype == "int8":
        want = x[:, ::-1].astype("int32") * 3 + x.sum(1, keepdims=True, dtype="int32")
    np.testing.assert_array_equal(device.numpy(out), want.astype(dtype))


@triton.jit
def fill_rows(writer, x_ptr, n, ROWS: tl.constexpr, B: tl.constexpr, TMA: tl.constexpr):
    rows = tl.make_tensor_descriptor(x_ptr, [n * ROWS, B], [B, 1], [ROWS, B])
    for k in range(n):
        slot = writer.acquire(k)
        if TMA:
            tle.gpu.copy(rows, slot.x, [ROWS, B], [k * ROWS, 0])
        else:
            slot.x.store(rows.load([k * ROWS, 0]))
        writer.commit(k)


@triton.jit
def turn_in_place(reader, out_ptr, n, ROWS: tl.constexpr, B: tl.constexpr):
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, B)[None, :]
    row, column = tl.broadcast(row, column)
    for k in range(n):
        ready = reader.wait(k)
        x = tl.load(tle.gpu.local_ptr(ready.slot.x, (row, column)))
        tl.store(tle.gpu.local_ptr(ready.slot.x, (row, B - 1 - column)), x * 2)
        tl.store(out_ptr + (k * ROWS + row) * B + column, ready.slot.x.load())
        reader.release(k)


@triton.jit
def staged_in_slots(
    x_ptr, out_ptr, n, ROWS: tl.constexpr, B: tl.constexpr, CAPACITY: tl.constexpr, TMA: tl.constexpr
):
    pipe = tle.pipe(capacity=CAPACITY, name="rows", x=tle.gpu.alloc([CAPACITY, ROWS, B], dtype=tl.float32))
    tle.gpu.warp_specialize(
        [
            (turn_in_place, (pipe.reader(), out_ptr, n, ROWS, B)),
            (fill_rows, (pipe.writer(), x_ptr, n, ROWS, B, TMA)),
        ],
        [4],
        [64],
    )


@pytest.mark.parametrize("capacity", [1, 2])
@pytest.mark.parametrize("tma", [False, True])
def test_readers_store_into_their_slots(device, target, capacity, tma):
    """What has been waited for is the reader's until it releases it; the copy engine fills it only then."""
    x = numbers((5 * 16, 64))
    out = device.array(np.zeros_like(x))
    staged_in_slots[(1,)](device.array(x), out, 5, 16, 64, capacity, tma)
    np.testing.assert_array_equal(device.numpy(out), x[:, ::-1] * 2)


@triton.jit
def pass_on(reader, writer, n):
    for k in range(n):
        x = reader.wait(k).slot.x.load()
        reader.release(k)
        slot = writer.acquire(k)
        slot.x.store(x + k)
        writer.commit(k)


@triton.jit
def chain(x_ptr, out_ptr, n, B: tl.constexpr, WARPS: tl.constexpr):
    pipes = (
        tle.pipe(capacity=2, name="first", x=tle.gpu.alloc([2, B], dtype=tl.int32)),
        tle.pipe(capacity=3, name="second", x=tle.gpu.alloc([3, B], dtype=tl.int32)),
    )
    tle.gpu.warp_specialize(
        [
            (pass_on, (pipes[0].reader(), pipes[1].writer(), n)),
            (produce, (pipes[0].writer(), x_ptr, n, B)),
            (consume, (pipes[1].reader(), out_ptr, n, 1, B)),
        ],
        WARPS,
        [40, 64],
    )


@pytest.mark.parametrize("warps", [(4, 4), (1, 2)])
def test_several_pipes(device, target, warps):
    x = numbers((7, 128), "int32")
    out = device.array(np.zeros_like(x))
    chain[(1,)](device.array(x), out, 7, 128, warps)
    np.testing.assert_array_equal(device.numpy(out), expected(x + np.arange(7, dtype="int32")[:, None], 1))


@triton.jit
def write_both(writer, x_ptr, y_ptr, n, B: tl.constexpr):
    rows, columns = tl.arange(0, 4)[:, None], tl.arange(0, B)[None, :]
    for k in range(n):
        slot = writer.acquire(k)
        tl.store(tle.gpu.local_ptr(slot.x, (rows, columns)), tl.load(x_ptr + (k * 4 + rows) * B + columns))
        tle.gpu.copy(y_ptr + k * B + tl.arange(0, B), slot.fields["y"], [B])
        writer.commit(k)


@triton.jit
def sum_rows(reader, sum_ptr, n):
    tl.static_assert(reader.fields == ("x",) and reader.name == "sum")
    for k in range(n):
        whole = reader.wait(k).slot.x.load()
        reader.release(k)
        tl.store(sum_ptr + k * 4 + tl.arange(0, 4), tl.sum(whole, 1))


@triton.jit
def multiply(reader, product_ptr, n, B: tl.constexpr):
    rows, columns = tl.arange(0, 4)[:, None], tl.arange(0, B)[None, :]
    for k in range(n):
        both = reader.wait(k).slot
        product = both.x.load() * both.y.load().to(tl.float32)[None, :]
        reader.release(k)
        tl.store(product_ptr + (k * 4 + rows) * B + columns, product)


@triton.jit
def sums_and_products(
    x_ptr, y_ptr, sum_ptr, product_ptr, n, B: tl.constexpr, CAPACITY: tl.constexpr, WARPS: tl.constexpr
):
    x = tle.gpu.alloc([CAPACITY, 4, B], dtype=tl.float32)
    y = tle.gpu.alloc([CAPACITY, B], dtype=tl.float16, nv_mma_shared_layout=False)
    pipe = tle.pipe(capacity=CAPACITY, name="both", readers=("sum", "product"), x=x, y=y)
    tle.gpu.warp_specialize(
        [
            (sum_rows, (pipe.reader("sum", fields=("x",)), sum_ptr, n)),
            (multiply, (pipe.reader("product"), product_ptr, n, B)),
            (write_both, (pipe.writer(), x_ptr, y_ptr, n, B)),
        ],
        WARPS,
        [64, 40],
    )


@pytest.mark.parametrize("capacity", [1, 2, 3])
@pytest.mark.parametrize("warps", [(4, 4), (2, 1)])
def test_fields_and_readers(device, target, capacity, warps):
    x, y = numbers((6, 4, 32)), numbers((6, 32), "float16", 1)
    sums, products = device.array(np.zeros((6, 4), "float32")), device.array(np.zeros((6, 4, 32), "float32"))
    sums_and_products[(1,)](device.array(x), device.array(y), sums, products, 6, 32, capacity, warps)
    np.testing.assert_array_equal(device.numpy(sums), x.sum(2))
    np.testing.assert_array_equal(device.numpy(products), x * y[:, None, :].astype("float32"))


@triton.jit
def produce_with_cursor(writer, x_ptr, n, B: tl.constexpr):
    cursor = writer.cursor(0)
    for k in range(n):
        slot = writer.acquire(cursor)
        fill(slot, x_ptr, k, B)
        writer.commit(cursor)
        cursor.advance()


@triton.jit
def produce_ahead(writer, x_ptr, n, B: tl.constexpr):
    # The next slot is acquired before this one is committed.
    slot = writer.acquire(0)
    fill(slot, x_ptr, 0, B)
    for k in range(1, n):
        later = writer.acquire(k)
        fill(later, x_ptr, k, B)
        writer.commit(k - 1)
    writer.commit(n - 1)


@triton.jit
def produce_in_pieces(writer, x_ptr, n, B: tl.constexpr):
    # What other threads have written is written again, and read.
    at = tl.arange(0, B)
    for k in range(n):
        slot = writer.acquire(k)
        slot.x.store(tl.zeros([B], tl.int32))
        if k % 2 == 0:
            tl.atomic_add(tle.gpu.local_ptr(slot.x, (B - 1 - at,)), at)
        else:
            tl.store(tle.gpu.local_ptr(slot.x, (B - 1 - at,)), at, mask=at < B)
        turned = slot.x.load()
        slot.x.store(turned - (B - 1 - at) + tl.load(x_ptr + k * B + at))
        writer.commit(k)


@triton.jit
def written_by(produce: tl.constexpr, x_ptr, out_ptr, n, B: tl.constexpr, CAPACITY: tl.constexpr):
    pipe = tle.pipe(capacity=CAPACITY, x=tle.gpu.alloc([CAPACITY, B], dtype=tl.int32))
    tle.gpu.warp_specialize(
        [(produce, (pipe.writer(), x_ptr, n, B)), (consume, (pipe.reader(), out_ptr, n, 3, B))], [4], [64]
    )


@pytest.mark.parametrize("capacity", [2, 3])
@pytest.mark.parametrize("produce", [produce_with_cursor, produce_ahead, produce_in_pieces])
def test_ways_to_write(device, target, produce, capacity):
    x = numbers((9, 128), "int32")
    out = device.array(np.zeros_like(x))
    written_by[(1,)](produce, device.array(x), out, 9, 128, capacity)
    np.testing.assert_array_equal(device.numpy(out), expected(x))


@triton.jit
def until_it_is_closed(reader, out_ptr, count_ptr, B: tl.constexpr):
    k = 0
    result = reader.wait(k)
    while not result.is_closed:
        tl.store(out_ptr + k * B + tl.arange(0, B), result.slot.x.load())
        reader.release(k)
        k += 1
        result = reader.wait(k)
    reader.release(k)
    tl.store(count_ptr, k)


@triton.jit
def produce_and_close(writer, x_ptr, n, B: tl.constexpr):
    produce(writer, x_ptr, n, B)
    writer.close(n)


@triton.jit
def closing(x_ptr, out_ptr, count_ptr, n, B: tl.constexpr, CAPACITY: tl.constexpr, WARPS: tl.constexpr):
    pipe = tle.pipe(
        capacity=CAPACITY, readers=("one", "other"), x=tle.gpu.alloc([CAPACITY, B], dtype=tl.int32)
    )
    tle.gpu.warp_specialize(
        [
            (produce_and_close, (pipe.writer(), x_ptr, n, B)),
            (until_it_is_closed, (pipe.reader("one"), out_ptr, count_ptr, B)),
            (until_it_is_closed, (pipe.reader("other"), out_ptr + n * B, count_ptr + 1, B)),
        ],
        WARPS,
        [64, 64],
    )


@pytest.mark.parametrize("capacity", [1, 2, 3])
@pytest.mark.parametrize("warps", [(4, 4), (1, 2)])
def test_close(device, target, capacity, warps):
    for n in (0, 1, 5):
        x = numbers((max(n, 1), 64), "int32")
        out, count = device.array(np.zeros((2, max(n, 1), 64), "int32")), device.array(np.zeros(2, "int32"))
        closing[(1,)](device.array(x), out, count, n, 64, capacity, warps)
        assert device.numpy(count).tolist() == [n, n]
        for i in range(2):
            np.testing.assert_array_equal(device.numpy(out)[i][:n], x[:n])


@triton.jit
def look_up(reader, x_ptr, out_ptr, n, B: tl.constexpr):
    for k in range(n):
        table = reader.wait(0).slot.table
        at = tl.load(x_ptr + k * B + tl.arange(0, B))
        tl.store(out_ptr + k * B + tl.arange(0, B), tl.load(tle.gpu.local_ptr(table, (at,))))


@triton.jit
def write_table(writer, table_ptr, B: tl.constexpr):
    writer.acquire(0).table.store(tl.load(table_ptr + tl.arange(0, B)))
    writer.commit(0)


@triton.jit
def once(table_ptr, x_ptr, out_ptr, n, B: tl.constexpr, OUTSIDE: tl.constexpr):
    pipe = tle.pipe(
        capacity=1, one_shot=True, readers=("a", "b"), table=tle.gpu.alloc([1, B], dtype=tl.float32)
    )
    if OUTSIDE:
        # The kernel's own warps write before they are joined by others.
        write_table(pipe.writer(), table_ptr, B)
        tle.gpu.warp_specialize(
            [
                (look_up, (pipe.reader("a"), x_ptr, out_ptr, n, B)),
                (look_up, (pipe.reader("b"), x_ptr, out_ptr + n * B, n, B)),
            ],
            [2],
            [64],
        )
    else:
        tle.gpu.warp_specialize(
            [
                (look_up, (pipe.reader("a"), x_ptr, out_ptr, n, B)),
                (look_up, (pipe.reader("b"), x_ptr, out_ptr + n * B, n, B)),
                (write_table, (pipe.writer(), table_ptr, B)),
            ],
            [2, 1],
            [64, 24],
        )


@pytest.mark.parametrize("outside", [False, True])
def test_one_shot(device, target, outside):
    table, x = numbers(32), numbers((4, 32), "int32") % 32
    out = device.array(np.zeros((2, 4, 32), "float32"))
    once[(1,)](device.array(table), device.array(x), out, 4, 32, outside)
    np.testing.assert_array_equal(device.numpy(out), [table[x], table[x]])


@triton.jit
def both_ends(pipe, x_ptr, out_ptr, n, B: tl.constexpr, AHEAD: tl.constexpr):
    writer, reader = pipe.writer(), pipe.reader()
    for k in range(n + AHEAD):
        if k < n:
            fill(writer.acquire(k), x_ptr, k, B)
            writer.commit(k)
        if k >= AHEAD:
            x = reader.wait(k - AHEAD).slot.x.load()
            reader.release(k - AHEAD)
            tl.store(out_ptr + (k - AHEAD) * B + tl.arange(0, B), x)


@triton.jit
def pipes_of_one_partition(x_ptr, out_ptr, n, N: tl.constexpr, B: tl.constexpr, AHEAD: tl.constexpr):
    mine = tle.pipe(capacity=2, name="mine", x=tle.gpu.alloc([2, B], dtype=tl.int32))
    theirs = tle.pipe(capacity=2, name="theirs", x=tle.gpu.alloc([2, B], dtype=tl.int32))
    known = tle.pipe(capacity=2, name="known", x=tle.gpu.alloc([2, B], dtype=tl.int32))
    tle.gpu.warp_specialize(
        [
            (both_ends, (mine, x_ptr, out_ptr, n, B, AHEAD)),
            (both_ends, (theirs, x_ptr, out_ptr + N * B, n, B, AHEAD)),
            (both_ends, (known, x_ptr, out_ptr + 2 * N * B, N, B, AHEAD)),
        ],
        [4, 2],
        [40, 40],
    )


@pytest.mark.parametrize("ahead", [0, 1])
def test_pipes_of_one_partition(device, target, ahead):
    x = numbers((5, 64), "int32")
    out = device.array(np.zeros((3, 5, 64), "int32"))
    pipes_of_one_partition[(1,)](device.array(x), out, 5, 5, 64, ahead)
    np.testing.assert_array_equal(device.numpy(out), [x, x, x])


def test_one_partition_that_is_too_far_ahead(device, target, stops):
    x = numbers((5, 64), "int32")
    out = device.array(np.zeros((3, 5, 64), "int32"))
    with pytest.raises(triton.TilewrightError, match=r"deadlock|can never succeed"):
        pipes_of_one_partition[(1,)](device.array(x), out, 5, 5, 64, 2)


@triton.jit
def write_and_read(writer, reader, x_ptr, out_ptr, n, B: tl.constexpr, COPY: tl.constexpr):
    at = tl.arange(0, B)
    for k in range(n):
        slot = writer.acquire(k)
        if COPY:
            tle.gpu.copy(x_ptr + k * B + at, slot.x, [B])
        else:
            slot.x.store(tl.load(x_ptr + k * B + at) + k)
        writer.commit(k)
        x = tl.load(tle.gpu.local_ptr(reader.wait(k).slot.x, (B - 1 - at,)))
        reader.release(k)
        tl.store(out_ptr + k * B + at, x)


@triton.jit
def one_reader_beside_the_writer(
    x_ptr, out_ptr, n, B: tl.constexpr, CAPACITY: tl.constexpr, COPY: tl.constexpr
):
    pipe = tle.pipe(
        capacity=CAPACITY, readers=("near", "far"), x=tle.gpu.alloc([CAPACITY, B], dtype=tl.int32)
    )
    tle.gpu.warp_specialize(
        [
            (consume, (pipe.reader("far"), out_ptr, n, 3, B)),
            (write_and_read, (pipe.writer(), pipe.reader("near"), x_ptr, out_ptr + n * B, n, B, COPY)),
        ],
        [4],
        [64],
    )


@pytest.mark.parametrize("capacity", [1, 3])
@pytest.mark.parametrize("copy", [False, True])
def test_one_reader_beside_the_writer(device, target, capacity, copy):
    x = numbers((7, 128), "int32")
    out = device.array(np.zeros((2, 7, 128), "int32"))
    one_reader_beside_the_writer[(1,)](device.array(x), out, 7, 128, capacity, copy)
    x = x if copy else x + np.arange(7, dtype="int32")[:, None]
    np.testing.assert_array_equal(device.numpy(out), [expected(x), x[:, ::-1]])


@triton.jit
def change(reader, writer, n, B: tl.constexpr):
    at = tl.arange(0, B)
    for k in range(n):
        x = tl.load(tle.gpu.local_ptr(reader.wait(k).slot.x, (B - 1 - at,)))
        slot = writer.acquire(k)
        slot.x.store(x + 1)
        writer.commit(k)
        reader.release(k)


@triton.jit
def send_and_get_back(writer, back, x_ptr, out_ptr, n, B: tl.constexpr):
    at = tl.arange(0, B)
    for k in range(n):
        writer.acquire(k).x.store(tl.load(x_ptr + k * B + at))
        writer.commit(k)
        tl.store(out_ptr + k * B + at, back.wait(k).slot.x.load())
        back.release(k)


@triton.jit
def in_place(x_ptr, out_ptr, n, B: tl.constexpr):
    buffer = tle.gpu.alloc([2, B], dtype=tl.int32)
    there = tle.pipe(capacity=2, name="there", x=buffer)
    back = tle.pipe(capacity=2, name="back", x=buffer)
    tle.gpu.warp_specialize(
        [
            (change, (there.reader(), back.writer(), n, B)),
            (send_and_get_back, (there.writer(), back.reader(), x_ptr, out_ptr, n, B)),
        ],
        [4],
        [40],
    )


def test_a_buffer_of_two_pipes(device, target):
    x = numbers((5, 128), "int32")
    out = device.array(np.zeros_like(x))
    in_place[(1,)](device.array(x), out, 5, 128)
    np.testing.assert_array_equal(device.numpy(out), x[:, ::-1] + 1)


# Errors.


@triton.jit
def too_many_chunks(x_ptr, out_ptr, n, B: tl.constexpr):
    pipe = tle.pipe(capacity=2, name="x_pipe", x=tle.gpu.alloc([2, B], dtype=tl.int32))
    tle.gpu.warp_specialize(
        [(consume, (pipe.reader(), out_ptr, n, 1, B)), (produce, (pipe.writer(), x_ptr, n + 3, B))], [4], [40]
    )


@triton.jit
def too_few_chunks(x_ptr, out_ptr, n, B: tl.constexpr):
    pipe = tle.pipe(capacity=2, name="x_pipe", x=tle.gpu.alloc([2, B], dtype=tl.int32))
    tle.gpu.warp_specialize(
        [(consume, (pipe.reader(), out_ptr, n, 1, B)), (produce, (pipe.writer(), x_ptr, n - 1, B))], [4], [40]
    )


def test_deadlocks(device, target, stops):
    x, out = device.array(numbers((8, 32), "int32")), device.array(np.zeros((8, 32), "int32"))
    with pytest.raises(triton.KernelError, match="deadlock") as caught:
        too_many_chunks[(1,)](x, out, 4, 32)
    if device.backend == "interp":
        text = str(caught.value)
        assert "the writer of the pipe `x_pipe` (worker 1) waits for the reader to release slot 0" in text
        assert "the slot was committed at" in text and "slot = writer.acquire(k)" in text
        assert "the default partition has ended, and waits for the workers at" in text
    with pytest.raises(triton.KernelError, match="deadlock") as caught:
        too_few_chunks[(1,)](x, out, 4, 32)
    if device.backend == "interp":
        text = str(caught.value)
        assert (
            "the reader of the pipe `x_pipe` waits for slot 1 to be committed, and nobody else is there"
            in text
        )
        assert "ready = reader.wait(k)" in text


@triton.jit
def read_early(reader, out_ptr, B: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, B), reader.pipe.x.slot(0).load())
    reader.wait(0)
    reader.release(0)


@triton.jit
def read_late(reader, out_ptr, B: tl.constexpr):
    slot = reader.wait(0).slot
    reader.release(0)
    tl.store(out_ptr + tl.arange(0, B), slot.x.load())


@triton.jit
def write_early(writer, x_ptr, B: tl.constexpr):
    writer.pipe.x.slot(0).store(tl.load(x_ptr + tl.arange(0, B)))
    writer.acquire(0)
    writer.commit(0)


@triton.jit
def read_and_wait(reader, out_ptr, B: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, B), reader.wait(0).slot.x.load())


@triton.jit
def wrong_access(x_ptr, out_ptr, B: tl.constexpr, CASE: tl.constexpr):
    pipe = tle.pipe(capacity=2, readers=("a", "b"), name="x_pipe", x=tle.gpu.alloc([2, B], dtype=tl.int32))
    a, b, writer = pipe.reader("a"), pipe.reader("b"), pipe.writer()
    if CASE == 0:
        tle.gpu.warp_specialize(
            [(read_early, (a, out_ptr, B)), (consume, (b, out_ptr, 1, 1, B)), (produce, (writer, x_ptr, 1, B))],
            [4, 1], [40, 24],
        )  # fmt: skip
    elif CASE == 1:
        tle.gpu.warp_specialize(
            [(consume, (a, out_ptr, 1, 1, B)), (read_late, (b, out_ptr, B)), (produce, (writer, x_ptr, 1, B))],
            [4, 1], [40, 24],
        )  # fmt: skip
    elif CASE == 2:
        tle.gpu.warp_specialize(
            [(consume, (a, out_ptr, 1, 1, B)), (consume, (b, out_ptr, 1, 1, B)), (write_early, (writer, x_ptr, B))],
            [4, 1], [40, 24],
        )  # fmt: skip
    elif CASE == 3:
        tle.gpu.warp_specialize(
            [(read_and_wait, (a, out_ptr, B)), (consume, (b, out_ptr, 1, 1, B)), (produce, (writer, x_ptr, 1, B))],
            [4, 1], [40, 24],
        )  # fmt: skip


WRONG_ACCESS = [
    "load of slot 0 of the pipe `x_pipe`, which",
    "load of slot 0 of the pipe `x_pipe`, which its reader has not waited for, or has released",
    "store of slot 0 of the pipe `x_pipe`, which has not been acquired",
    "the program ends, but the reader `a` of the pipe `x_pipe` has not released slot 0",
]


@pytest.mark.parametrize(("case", "message"), list(enumerate(WRONG_ACCESS)))
def test_wrong_accesses(case, message, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.KernelError, match=re.escape(message)) as error:
        wrong_access[(1,)](numbers((2, 32), "int32"), np.zeros((2, 32), "int32"), 32, case)
    assert "test_pipe_partitions.py" in str(error.value)


@pytest.mark.parametrize("case", [0, 1])
def test_the_simulator_sees_wrong_accesses(case, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    with pytest.raises(triton.KernelError):
        wrong_access[(1,)](numbers((2, 32), "int32"), np.zeros((2, 32), "int32"), 32, case)


@triton.jit
def wrong_partitions(x_ptr, out_ptr, B: tl.constexpr, CASE: tl.constexpr):
    pipe = tle.pipe(capacity=2, readers=("a", "b"), name="x_pipe", x=tle.gpu.alloc([2, B], dtype=tl.int32))
    a, b, writer = pipe.reader("a"), pipe.reader("b"), pipe.writer()
    if CASE == 0:
        tle.gpu.warp_specialize(
            [(consume, (a, out_ptr, 1, 1, B)), (produce, (writer, x_ptr, 1, B)), (produce, (writer, x_ptr, 1, B))],
            [4, 1], [40, 24],
        )  # fmt: skip
    elif CASE == 1:
        tle.gpu.warp_specialize(
            [(consume, (a, out_ptr, 1, 1, B)), (produce, (writer, x_ptr, 1, B)), (consume, (a, out_ptr, 1, 1, B))],
            [4, 1], [40, 24],
        )  # fmt: skip


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (0, "the writer of the pipe `x_pipe` is used in two partitions"),
        (1, 'the reader "a" of the pipe `x_pipe` is used in two partitions'),
    ],
)
def test_ends_in_two_partitions(device, case, message):
    x, out = device.array(numbers((2, 32), "int32")), device.array(np.zeros((2, 32), "int32"))
    with pytest.raises(triton.CompilationError, match=message) as error:
        wrong_partitions[(1,)](x, out, 32, case)
    assert "test_pipe_partitions.py" in str(error.value) and "^" in str(error.value)


# What orders partitions is needed: without it the simulator reports something.


def each_is_needed(kernel, arguments, args, target):
    """What is reported without each line that keeps a kernel's roles in order."""
    return order.reported(kernel.warmup(*args, grid=(1,), target=target), arguments)


@pytest.mark.parametrize("target", ["cuda:90", "cuda:80"])
def test_what_orders_stores_is_needed(target):
    x, out = numbers((5, 128), "int32"), np.zeros((5, 128), "int32")
    reported = each_is_needed(two_roles, [x, out, 5], (x, out, 5, 128, 2, 4, False), target)
    assert [line for line, found in reported if not found] == []


# How slots are filled.


@triton.jit
def fill_all(writer, x_ptr, y_ptr, z_ptr, n, ROWS: tl.constexpr, B: tl.constexpr, ASYNC: tl.constexpr):
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, B)[None, :]
    desc = tl.make_tensor_descriptor(x_ptr, [n * ROWS, B], [B, 1], [ROWS, B])
    for k in range(n):
        scale = tl.load(z_ptr + k * ROWS + tl.arange(0, ROWS))
        slot = writer.acquire(k)
        tle.gpu.copy(desc, slot.x, [ROWS, B], [k * ROWS, 0])
        tle.gpu.copy(y_ptr + (k * ROWS + rows) * B + columns, slot.y, [ROWS, B], is_async=ASYNC)
        tl.store(tle.gpu.local_ptr(slot.z, (tl.arange(0, ROWS),)), scale * 2)
        writer.commit(k)


@triton.jit
def combine(reader, out_ptr, n, ROWS: tl.constexpr, B: tl.constexpr):
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, B)[None, :]
    for k in range(n):
        slot = reader.wait(k).slot
        turned = tl.load(tle.gpu.local_ptr(slot.y, (rows, B - 1 - columns)))
        out = slot.x.load() + turned * slot.z.load()[:, None]
        reader.release(k)
        tl.store(out_ptr + (k * ROWS + rows) * B + columns, out)


@triton.jit
def mixed(
    x_ptr, y_ptr, z_ptr, out_ptr, n,
    ROWS: tl.constexpr, B: tl.constexpr, CAPACITY: tl.constexpr, WARPS: tl.constexpr, ASYNC: tl.constexpr,
):  # fmt: skip
    x = tle.gpu.alloc([CAPACITY, ROWS, B], dtype=tl.float32)
    y = tle.gpu.alloc([CAPACITY, ROWS, B], dtype=tl.float32)
    z = tle.gpu.alloc([CAPACITY, ROWS], dtype=tl.float32)
    pipe = tle.pipe(capacity=CAPACITY, x=x, y=y, z=z)
    tle.gpu.warp_specialize(
        [
            (combine, (pipe.reader(), out_ptr, n, ROWS, B)),
            (fill_all, (pipe.writer(), x_ptr, y_ptr, z_ptr, n, ROWS, B, ASYNC)),
        ],
        [WARPS],
        [40],
    )


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("shape", "capacity", "warps"), [((16, 32), 2, 1), ((24, 64), 3, 4), ((16, 96), 1, 2)]
)
def test_fields_filled_in_different_ways(device, target, shape, capacity, warps, asynchronous):
    rows, b = shape
    x, y, z = numbers((5, rows, b)), numbers((5, rows, b), seed=1), numbers((5, rows), seed=2)
    out = device.array(np.zeros_like(x))
    given = [device.array(a) for a in (x, y, z)]
    mixed[(1,)](*given, out, 5, rows, b, capacity, warps, asynchronous)
    np.testing.assert_array_equal(device.numpy(out), x + y[:, :, ::-1] * (z * 2)[:, :, None])


@pytest.mark.parametrize("target", ["cuda:90", "cuda:80"])
def test_what_orders_copies_is_needed(target):
    x, y, z = numbers((5, 16, 32)), numbers((5, 16, 32), seed=1), numbers((5, 16), seed=2)
    out = np.zeros_like(x)
    reported = each_is_needed(mixed, [x, y, z, out, 5], (x, y, z, out, 5, 16, 32, 2, 4, False), target)
    # Each lane arrives when its copies are done, so behind its stores.
    assert [order.kind(line) for line, found in reported if not found] == ["bar.warp.sync"]
    ptx = "\n".join(line for line, _ in reported)
    assert "cp.async.mbarrier.arrive.noinc" in ptx
    fences = [found for line, found in reported if "fence.proxy.async" in line]
    assert len(fences) == (target == "cuda:90") and all("proxy-fence" in found for found in fences)


# Products of slots.


@triton.jit
def bring_operands(
    writer, a_ptr, b_ptr, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, WAYS: tl.constexpr
):
    rows, columns, inner = tl.arange(0, M)[:, None], tl.arange(0, N)[:, None], tl.arange(0, K)[None, :]
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, n * K], [n * K, 1], [M, K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, n * K], [n * K, 1], [N, K])
    for k in range(n):
        slot = writer.acquire(k)
        if WAYS[0] == "blocks":
            tle.gpu.copy(a_desc, slot.a, [M, K], [0, k * K])
        elif WAYS[0] == "copies":
            tle.gpu.copy(a_ptr + rows * (n * K) + k * K + inner, slot.a, [M, K])
        else:
            slot.a.store(tl.load(a_ptr + rows * (n * K) + k * K + inner) + 0)
        if WAYS[1] == "blocks":
            tle.gpu.copy(b_desc, slot.b, [N, K], [0, k * K])
        elif WAYS[1] == "copies":
            tle.gpu.copy(b_ptr + columns * (n * K) + k * K + inner, slot.b, [N, K])
        else:
            slot.b.store(tl.load(b_ptr + columns * (n * K) + k * K + inner) + 0)
        writer.commit(k)


@triton.jit
def dot_slots(reader, c_ptr, n, M: tl.constexpr, N: tl.constexpr, EARLY: tl.constexpr):
    acc = tl.zeros([M, N], tl.float32)
    for k in range(n):
        slot = reader.wait(k).slot
        if EARLY:
            a, b = slot.a.load(), slot.b.load().T
            reader.release(k)
            acc = tl.dot(a, b, acc)
        else:
            acc = tl.dot(slot.a.load(), slot.b.load().T, acc)
            reader.release(k)
    tl.store(c_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], acc)


@triton.jit
def wgmma_slots(reader, c_ptr, n, M: tl.constexpr, N: tl.constexpr, EARLY: tl.constexpr):
    acc = tl.zeros([M, N], tl.float32)
    for k in range(n):
        slot = reader.wait(k).slot
        acc = tle.gpu.wgmma(slot.a, slot.b, acc, trans_b=True)
        acc = tle.gpu.wgmma_wait(0, acc)
        reader.release(k)
    tl.store(c_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], acc)


@triton.jit
def product(
    multiply: tl.constexpr, a_ptr, b_ptr, c_ptr, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    CAPACITY: tl.constexpr, WAYS: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    a = tle.gpu.alloc([CAPACITY, M, K], dtype=tl.float16)
    b = tle.gpu.alloc([CAPACITY, N, K], dtype=tl.float16)
    pipe = tle.pipe(capacity=CAPACITY, name="operands", a=a, b=b)
    tle.gpu.warp_specialize(
        [
            (multiply, (pipe.reader(), c_ptr, n, M, N, EARLY)),
            (bring_operands, (pipe.writer(), a_ptr, b_ptr, n, M, N, K, WAYS)),
        ],
        [4],
        [64],
    )


WAYS = [(a, b) for a in ("blocks", "copies", "stores") for b in ("blocks", "copies", "stores")]


def operands(m, n, k):
    return numbers((m, k), "float16") % 8, numbers((n, k), "float16", 1) % 8


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("capacity", [1, 2, 3])
@pytest.mark.parametrize("ways", WAYS)
def test_products(device, ways, capacity, early):
    a, b = operands(64, 32, 5 * 64)
    c = device.array(np.zeros((64, 32), "float32"))
    product[(1,)](dot_slots, device.array(a), device.array(b), c, 5, 64, 32, 64, capacity, ways, early)
    np.testing.assert_array_equal(device.numpy(c), a.astype("float32") @ b.T.astype("float32"))


@pytest.mark.parametrize("capacity", [1, 3])
@pytest.mark.parametrize("ways", WAYS)
def test_products_that_the_kernel_issues(device, ways, capacity):
    a, b = operands(64, 32, 5 * 64)
    c = device.array(np.zeros((64, 32), "float32"))
    product[(1,)](wgmma_slots, device.array(a), device.array(b), c, 5, 64, 32, 64, capacity, ways, False)
    np.testing.assert_array_equal(device.numpy(c), a.astype("float32") @ b.T.astype("float32"))


@pytest.mark.parametrize(
    ("multiply", "ways"),
    [
        (dot_slots, ("blocks", "blocks")),
        (dot_slots, ("copies", "copies")),
        (dot_slots, ("stores", "stores")),
        (wgmma_slots, ("stores", "stores")),
        (wgmma_slots, ("copies", "copies")),
        (wgmma_slots, ("copies", "blocks")),
        (wgmma_slots, ("stores", "blocks")),
    ],
)
def test_what_orders_products_is_needed(multiply, ways):
    a, b = operands(64, 32, 5 * 64)
    c = np.zeros((64, 32), "float32")
    args = (multiply, a, b, c, 5, 64, 32, 64, 2, ways, False)
    reported = each_is_needed(product, [a, b, c, 5], args, "cuda:90")
    # The whole warp waits for products, so that the elected lane may release what they have read. Behind the loop
    # of `tl.dot` the last slot is released, for which nobody waits any more.
    by_tma = ["bar.warp.sync", "bar.warp.sync", "mbarrier.arrive"]
    silent = [order.kind(line) for line, found in reported if not found]
    assert silent == (by_tma if multiply is dot_slots else ["bar.warp.sync"]), reported
    fences = [found for line, found in reported if "fence.proxy.async" in line]
    assert len(fences) == (ways != ("blocks", "blocks")) and all("proxy-fence" in found for found in fences)


@pytest.mark.parametrize("ways", WAYS)
def test_products_read_slots_where_they_lie(ways, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:90")
    a, b = operands(64, 32, 5 * 64)
    c = np.zeros((64, 32), "float32")
    for early in (False, True):
        args = (dot_slots, a, b, c, 5, 64, 32, 64, 3, ways, early)
        ptx = product.warmup(*args, grid=(1,)).asm["ptx"]
        assert "wgmma.mma_async" in ptx and "ld.shared" not in ptx and "ldmatrix" not in ptx
        # One product is under way while the next slot is waited for.
        assert "wgmma.wait_group.sync.aligned 1" in ptx


@triton.jit
def bring_ahead(
    writer, a_ptr, b_ptr, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, WAYS: tl.constexpr
):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, n * K], [n * K, 1], [M, K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, n * K], [n * K, 1], [N, K])
    slot = writer.acquire(0)
    for k in range(n):
        tle.gpu.copy(a_desc, slot.a, [M, K], [0, k * K])
        tle.gpu.copy(b_desc, slot.b, [N, K], [0, k * K])
        # A slot more than it is filling is the writer's.
        slot = writer.acquire(k + 1)
        writer.commit(k)
    writer.commit(n)


@triton.jit
def dot_pairs(reader, c_ptr, n, M: tl.constexpr, N: tl.constexpr, EARLY: tl.constexpr):
    acc = tl.zeros([M, N], tl.float32)
    for k in range(0, n - 1, 2):
        slot = reader.wait(k).slot
        acc = tl.dot(slot.a.load(), slot.b.load().T, acc)
        reader.release(k)
        slot = reader.wait(k + 1).slot
        acc = tl.dot(slot.a.load(), slot.b.load().T, acc)
        reader.release(k + 1)
    if n % 2 == 1:
        slot = reader.wait(n - 1).slot
        acc = tl.dot(slot.a.load(), slot.b.load().T, acc)
        reader.release(n - 1)
    tl.store(c_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], acc)


@triton.jit
def product_by(
    bring: tl.constexpr, multiply: tl.constexpr, a_ptr, b_ptr, c_ptr, n,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, CAPACITY: tl.constexpr,
):  # fmt: skip
    a = tle.gpu.alloc([CAPACITY, M, K], dtype=tl.float16)
    b = tle.gpu.alloc([CAPACITY, N, K], dtype=tl.float16)
    pipe = tle.pipe(capacity=CAPACITY, name="operands", a=a, b=b)
    tle.gpu.warp_specialize(
        [
            (multiply, (pipe.reader(), c_ptr, n, M, N, False)),
            (bring, (pipe.writer(), a_ptr, b_ptr, n, M, N, K, ("blocks", "blocks"))),
        ],
        [1],
        [64],
    )


@pytest.mark.parametrize(
    ("bring", "multiply", "capacity"),
    [
        (bring_ahead, dot_slots, 2),
        (bring_ahead, dot_slots, 3),
        (bring_operands, dot_pairs, 1),
        (bring_operands, dot_pairs, 2),
        (bring_operands, dot_pairs, 3),
    ],
)
def test_releases_that_others_wait_for_are_not_delayed(device, bring, multiply, capacity):
    a, b = operands(64, 32, 5 * 64)
    c = device.array(np.zeros((64, 32), "float32"))
    product_by[(1,)](bring, multiply, device.array(a), device.array(b), c, 5, 64, 32, 64, capacity)
    np.testing.assert_array_equal(device.numpy(c), a.astype("float32") @ b.T.astype("float32"))


# Nothing waits that needn't: the barriers of warp_specialize itself are four, and a slot has one arrival and one wait at each end.

OTHERS = [np.zeros((5, 16, 32), np.float32)] * 2 + [
    np.zeros((5, 16), np.float32),
    np.zeros((5, 16, 32), np.float32),
]
PRODUCT = [*operands(64, 32, 5 * 64), np.zeros((64, 32), np.float32), 5, 64, 32, 64, 2]


@pytest.mark.parametrize(
    ("kernel", "args", "counts"),
    [
        # What threads have copied they arrive for by an instruction of its own, behind the loop there is one more release.
        (mixed, (*OTHERS, 5, 16, 32, 2, 4, False), dict(sync=4, arrive=2, expect=1, copied=1, wait=2, fence=1)),
        (product, (dot_slots, *PRODUCT, ("blocks", "blocks"), False), dict(sync=4, arrive=2, expect=1, copied=0, wait=2, fence=0)),
        (product, (dot_slots, *PRODUCT, ("copies", "copies"), False), dict(sync=4, arrive=2, expect=0, copied=1, wait=2, fence=1)),
        (product, (wgmma_slots, *PRODUCT, ("blocks", "blocks"), False), dict(sync=4, arrive=1, expect=1, copied=0, wait=2, fence=0)),
        (product, (wgmma_slots, *PRODUCT, ("copies", "blocks"), False), dict(sync=4, arrive=1, expect=1, copied=1, wait=2, fence=1)),
        (product, (wgmma_slots, *PRODUCT, ("stores", "stores"), False), dict(sync=4, arrive=2, expect=0, copied=0, wait=2, fence=1)),
    ],
)  # fmt: skip
def test_counts(kernel, args, counts):
    ptx = kernel.warmup(*args, grid=(1,), target="cuda:90").asm["ptx"]
    patterns = dict(
        sync=r"bar\.sync",
        arrive=r"mbarrier\.arrive\.shared",
        expect=r"mbarrier\.arrive\.expect_tx",
        copied=r"cp\.async\.mbarrier",
        wait=r"mbarrier\.try_wait",
        fence=r"fence\.proxy\.async",
    )
    assert {name: len(re.findall(pattern, ptx)) for name, pattern in patterns.items()} == counts


@triton.jit
def hand_on(reader, out_ptr, n, B: tl.constexpr):
    x = reader.wait(0).slot.x
    for k in range(n):
        tl.store(out_ptr + k * B + tl.arange(0, B), x.load())
        reader.release(k)
        if k + 1 < n:
            x = reader.wait(k + 1).slot.x


@triton.jit
def drain(reader, n):
    for k in range(n):
        reader.wait(k)
        reader.release(k)


@triton.jit
def copy_to_barrier(writer, x_ptr, bar, n, B: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, [n, B], [B, 1], [1, B])
    for k in range(n):
        slot = writer.acquire(k)
        tle.gpu.copy(desc, slot.x, [1, B], [k, 0], barrier=bar)
        writer.commit(k)


@triton.jit
def fill_in_two_ways(writer, x_ptr, n, B: tl.constexpr):
    at = tl.arange(0, B)
    for k in range(n):
        slot = writer.acquire(k)
        tle.gpu.copy(x_ptr + k * B + at, slot.x, [B], is_async=True)
        tl.store(tle.gpu.local_ptr(slot.x, (B - 1 - at,)), at, mask=at < 3)
        writer.commit(k)


@triton.jit
def not_supported(x_ptr, out_ptr, n, B: tl.constexpr, CASE: tl.constexpr):
    if CASE == 0:
        pipe = tle.pipe(capacity=2, name="x_pipe", x=tle.gpu.alloc([2, B], dtype=tl.int32))
        tle.gpu.warp_specialize(
            [(hand_on, (pipe.reader(), out_ptr, n, B)), (produce, (pipe.writer(), x_ptr, n, B))], [4], [40]
        )
    elif CASE == 1:
        pipe = tle.pipe(capacity=2, name="x_pipe", x=tle.gpu.alloc([2, 1, B], dtype=tl.int32))
        bar = tle.gpu.alloc_barrier(expect_bytes=4 * B)
        tle.gpu.warp_specialize(
            [(drain, (pipe.reader(), n)), (copy_to_barrier, (pipe.writer(), x_ptr, bar, n, B))],
            [4],
            [40],
        )
    elif CASE == 2:
        pipe = tle.pipe(
            capacity=2, name="x_pipe", readers=("a", "b"), x=tle.gpu.alloc([2, B], dtype=tl.int32)
        )
        tle.gpu.warp_specialize(
            [(consume, (pipe.reader("a"), out_ptr, n, 1, B)), (produce, (pipe.writer(), x_ptr, n, B))],
            [4],
            [40],
        )
    elif CASE == 3:
        pipe = tle.pipe(capacity=2, name="x_pipe", x=tle.gpu.alloc([2, B], dtype=tl.int32))
        tle.gpu.warp_specialize(
            [(consume, (pipe.reader(), out_ptr, n, 1, B)), (fill_in_two_ways, (pipe.writer(), x_ptr, n, B))],
            [4],
            [40],
        )


NOT_SUPPORTED = [
    "not supported yet: a slot of the pipe `x_pipe` that a loop or a branch hands on",
    "not supported yet: tle.gpu.copy(barrier=…) to a slot of the pipe `x_pipe`",
    "the reader `b` of the pipe `x_pipe` never reads, so that the writer would wait for ever",
    "a field of the pipe `x_pipe` is filled in two ways",
]


@pytest.mark.parametrize(("case", "message"), list(enumerate(NOT_SUPPORTED)))
def test_what_cannot_be_compiled(case, message):
    x = np.zeros((5, 64), "int32")
    with pytest.raises(triton.CompilationError, match=re.escape(message)) as error:
        not_supported.warmup(x, x, 5, 64, case, grid=(1,), target="cuda:90")
    assert "test_pipe_partitions.py" in str(error.value) and "^" in str(error.value)


@triton.jit
def bring(slot, x_desc, x_ptr, k, HOW: tl.constexpr, B: tl.constexpr):
    if HOW == "blocks" or HOW == "assembly":
        tle.gpu.copy(x_desc, slot.x, [B], [k * B])
    elif HOW == "copies":
        tle.gpu.copy(x_ptr + k * B + tl.arange(0, B), slot.x, [B])
    else:
        fill(slot, x_ptr, k, B)


@triton.jit
def fill_and_note(writer, x_desc, x_ptr, side, noted, n, HOW: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B)
    for k in range(n):
        slot = writer.acquire(k)
        bring(slot, x_desc, x_ptr, k, HOW, B)
        side.store(at * (k + 1))
        if HOW == "assembly":
            text = "st.global.b32 [$1], $2; mov.b32 $0, $2;"
            tl.inline_asm_elementwise(text, "=r,l,r", [noted + at, at * (k + 2)], tl.int32, False, 1)
        else:
            tl.store(noted + at, at * (k + 2))
        writer.commit(k)


@triton.jit
def read_noted(reader, out_desc, out_ptr, side, noted, n, ELECTED: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B)
    for k in range(n):
        slot = reader.wait(k).slot
        turned = tl.load(tle.gpu.local_ptr(side, (B - 1 - at,))) + tl.load(noted + B - 1 - at)
        if ELECTED:
            tle.gpu.copy(slot.x, out_desc, [B], [(n + k) * B])
        else:
            tl.store(out_ptr + (n + k) * B + at, slot.x.load())
        reader.release(k)
        tl.store(out_ptr + k * B + at, turned)


@triton.jit
def beside(x_ptr, noted, out_ptr, n, HOW: tl.constexpr, ELECTED: tl.constexpr, B: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [n * B], [1], [B])
    out_desc = tl.make_tensor_descriptor(out_ptr, [2 * n * B], [1], [B])
    side = tle.gpu.alloc([B], dtype=tl.int32)
    pipe = tle.pipe(capacity=1, x=tle.gpu.alloc([1, B], dtype=tl.int32))
    tle.gpu.warp_specialize(
        [
            (read_noted, (pipe.reader(), out_desc, out_ptr, side, noted, n, ELECTED, B)),
            (fill_and_note, (pipe.writer(), x_desc, x_ptr, side, noted, n, HOW, B)),
        ],
        [2],
        [40],
    )


@pytest.mark.parametrize("elected", [False, True])
@pytest.mark.parametrize("how", ["blocks", "copies", "stores", "assembly"])
def test_what_is_done_beside_a_slot_is_handed_over(device, how, elected):
    n, block = 4, 128
    x = np.arange(n * block, dtype=np.int32) * 3
    out, noted = device.zeros(2 * n * block, np.int32), device.zeros(block, np.int32)
    beside[(1,)](device.array(x), noted, out, n, how, elected, block, num_warps=1)
    at = np.arange(block)[::-1]
    want = np.concatenate([at * (2 * k + 3) for k in range(n)] + [x])
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit(noinline=True)
def total(pointers):
    return tl.sum(tl.load(pointers))


@triton.jit
def fill_and_sum(writer, x_desc, x_ptr, n, HOW: tl.constexpr, READ: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B)
    for k in range(n):
        slot = writer.acquire(k)
        bring(slot, x_desc, x_ptr, k, HOW, B)
        if READ == "load":
            whole = tl.sum(slot.x.load())
        elif READ == "pointers":
            whole = tl.sum(tl.load(tle.gpu.local_ptr(slot.x, (B - 1 - at,))))
        else:
            whole = total(tle.gpu.local_ptr(slot.x))
        slot.scale.store(at * 0 + whole)
        writer.commit(k)


@triton.jit
def read_scaled(reader, out_ptr, n, B: tl.constexpr):
    for k in range(n):
        slot = reader.wait(k).slot
        x = slot.x.load() * 2 + slot.scale.load()
        reader.release(k)
        tl.store(out_ptr + k * B + tl.arange(0, B), x)


@triton.jit
def scaled(x_ptr, out_ptr, n, HOW: tl.constexpr, READ: tl.constexpr, B: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [n * B], [1], [B])
    x, scale = tle.gpu.alloc([2, B], dtype=tl.int32), tle.gpu.alloc([2, B], dtype=tl.int32)
    pipe = tle.pipe(capacity=2, x=x, scale=scale)
    tle.gpu.warp_specialize(
        [
            (read_scaled, (pipe.reader(), out_ptr, n, B)),
            (fill_and_sum, (pipe.writer(), x_desc, x_ptr, n, HOW, READ, B)),
        ],
        [2],
        [40],
    )


@pytest.mark.parametrize("read", ["load", "pointers", "function"])
@pytest.mark.parametrize("how", ["blocks", "copies", "stores"])
def test_a_writer_reads_what_it_fills(device, how, read):
    n, block = 3, 128
    x, out = np.arange(n * block, dtype=np.int32) % 91, device.zeros(n * block, np.int32)
    scaled[(1,)](device.array(x), out, n, how, read, block, num_warps=2)
    want = 2 * x + np.repeat(x.reshape(n, block).sum(1), block)
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def take(writer, x_desc, x_ptr, n, HOW: tl.constexpr, BEFORE: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B)
    for k in range(n):
        slot = writer.acquire(k)
        bring(slot, x_desc, x_ptr, k, HOW, B)
        if BEFORE:
            tl.store(x_ptr + k * B + at, at * 0)
        writer.commit(k)
        if not BEFORE:
            tl.store(x_ptr + k * B + at, at * 0)


@triton.jit
def taken(x_ptr, out_ptr, n, HOW: tl.constexpr, BEFORE: tl.constexpr, B: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [n * B], [1], [B])
    pipe = tle.pipe(capacity=2, x=tle.gpu.alloc([2, B], dtype=tl.int32))
    tle.gpu.warp_specialize(
        [
            (consume, (pipe.reader(), out_ptr, n, 2, B)),
            (take, (pipe.writer(), x_desc, x_ptr, n, HOW, BEFORE, B)),
        ],
        [2],
        [40],
    )


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("how", ["blocks", "copies"])
def test_a_writer_clears_what_it_has_taken(device, how, before):
    n, block = 3, 128
    x, out = np.arange(n * block, dtype=np.int32), device.zeros(n * block, np.int32)
    left = device.array(x.copy())
    taken[(1,)](left, out, n, how, before, block, num_warps=2)
    rows = x.reshape(n, block)
    want = rows[:, ::-1] * 2 + rows.sum(1, keepdims=True)
    np.testing.assert_array_equal(device.numpy(out), want.ravel())
    np.testing.assert_array_equal(device.numpy(left), 0 * x)
