"""`tle.pipe` whose writer and readers are the same threads: what arrives, and what is said of those that cannot go on."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@pytest.fixture(params=["cuda:90", "cuda:80"])
def target(request, monkeypatch):
    """What the simulator compiles for; the executor has none."""
    monkeypatch.setenv("TILEWRIGHT_TARGET", request.param)
    return request.param


def refused(device):
    """What a launch raises where it is known at compile time that the kernel cannot go on: the executor finds out by running it."""
    return triton.KernelError if device.backend == "interp" else triton.CompilationError


@pytest.fixture
def stops(device):
    """A launch that stops itself ends the process's use of a GPU, and what else is to be tested in it."""
    if device.backend == "cuda":
        pytest.skip("an assertion that fails on the GPU leaves its context useless")


@triton.jit
def produce(writer, k, x_ptr, B: tl.constexpr):
    slot = writer.acquire(k)
    tl.store(tle.gpu.local_ptr(slot.x), tl.load(x_ptr + k * B + tl.arange(0, B)))
    writer.commit(k)


@triton.jit
def consume(reader, k, out_ptr, B: tl.constexpr):
    ready = reader.wait(k)
    x = tl.load(tle.gpu.local_ptr(ready.slot.x))
    reader.release(k)
    tl.store(out_ptr + k * B + tl.arange(0, B), x + 1)


@triton.jit
def ahead(x_ptr, out_ptr, n, B: tl.constexpr, CAPACITY: tl.constexpr, AHEAD: tl.constexpr):
    buffer = tle.gpu.alloc([CAPACITY, B], dtype=x_ptr.dtype.element_ty, scope=tle.gpu.smem)
    pipe = tle.pipe(capacity=CAPACITY, scope="cta", name="x_pipe", x=buffer)
    writer, reader = pipe.writer(), pipe.reader()
    for k in range(0, tl.minimum(n, AHEAD)):
        produce(writer, k, x_ptr, B)
    for k in range(n):
        if k + AHEAD < n:
            produce(writer, k + AHEAD, x_ptr, B)
        consume(reader, k, out_ptr, B)


def numbers(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize(
    "capacity, distance", [(1, 0), (2, 0), (3, 0), (2, 1), (3, 2), (5, 3), (7, 6), (40, 20)]
)
def test_the_writer_is_ahead(device, target, capacity, distance):
    for n in (0, 1, 9):
        x = numbers((16, 64))
        out = device.array(np.zeros((16, 64), "float32"))
        ahead[(1,)](device.array(x), out, n, 64, capacity, distance)
        expected = np.where(np.arange(16)[:, None] < n, x + 1, 0)
        np.testing.assert_array_equal(device.numpy(out), expected)


@pytest.mark.parametrize("dtype", ["int8", "float16", "int64", "float64"])
@pytest.mark.parametrize("block", [16, 96, 1000])
def test_types_and_sizes(device, dtype, block):
    x = numbers((5, block), dtype)
    out = device.array(np.zeros((5, block), dtype))
    ahead[(1,)](device.array(x), out, 5, block, 3, 1)
    np.testing.assert_array_equal(device.numpy(out), x + np.ones(1, dtype))


def test_a_writer_that_is_too_far_ahead(device, target, stops):
    x, out = device.array(numbers((8, 32))), device.array(np.zeros((8, 32), "float32"))
    with pytest.raises(
        triton.KernelError, match="deadlock: the writer of the pipe `x_pipe` waits for"
    ) as caught:
        ahead[(1,)](x, out, 8, 32, 2, 2)
    assert "slot = writer.acquire(k)" in str(caught.value) or "test_pipe.py" in str(caught.value)
    if device.backend == "interp":
        assert "the slot was committed at" in str(caught.value)


@triton.jit
def one_loop_after_the_other(x_ptr, out_ptr, n, B: tl.constexpr, CAPACITY: tl.constexpr):
    buffer = tle.gpu.alloc([CAPACITY, B], dtype=tl.float32)
    pipe = tle.pipe(capacity=CAPACITY, name="whole", x=buffer)
    for k in range(n):
        produce(pipe.writer(), k, x_ptr, B)
    for k in range(n):
        consume(pipe.reader(), k, out_ptr, B)


@triton.jit
def one_loop_after_the_other_of(x_ptr, out_ptr, N: tl.constexpr, B: tl.constexpr, CAPACITY: tl.constexpr):
    one_loop_after_the_other(x_ptr, out_ptr, N, B, CAPACITY)


@pytest.mark.parametrize("kernel", [one_loop_after_the_other, one_loop_after_the_other_of])
def test_all_chunks_fit(device, target, kernel):
    for n, capacity in [(3, 3), (3, 4), (1, 1)]:
        x = numbers((n, 32))
        out = device.array(np.zeros((n, 32), "float32"))
        kernel[(1,)](device.array(x), out, n, 32, capacity)
        np.testing.assert_array_equal(device.numpy(out), x + 1)


def test_chunks_that_do_not_fit(device, target, stops):
    x, out = device.array(numbers((4, 32))), device.array(np.zeros((4, 32), "float32"))
    with pytest.raises(triton.KernelError, match="deadlock: the writer of the pipe `whole`"):
        one_loop_after_the_other[(1,)](x, out, 4, 32, 3)
    # Known at compile time, it is an error there.
    with pytest.raises(refused(device)) as caught:
        one_loop_after_the_other_of[(1,)](x, out, 4, 32, 3)
    assert "slot 0 of the pipe `whole`" in str(caught.value) or "release slot 0" in str(caught.value)
    assert "committed at" in str(caught.value) and "slot = writer.acquire(k)" in str(caught.value)


def test_nothing_is_left_of_a_pipe_that_is_in_order(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:90")

    x = np.zeros((8, 64), np.float32)
    balanced = simple_example.warmup(x, x, 8, 64, grid=(1,)).asm["ptx"]
    assert "__assertfail" not in balanced and "mbarrier" not in balanced
    known = one_loop_after_the_other_of.warmup(x, x, 3, 64, 3, grid=(1,)).asm["ptx"]
    assert "__assertfail" not in known
    assert "__assertfail" in ahead.warmup(x, x, 8, 64, 2, 1, grid=(1,)).asm["ptx"]


@triton.jit
def with_cursors(x_ptr, out_ptr, start, n, B: tl.constexpr, CAPACITY: tl.constexpr):
    buffer = tle.gpu.alloc([CAPACITY, B], dtype=tl.float32)
    pipe = tle.pipe(capacity=CAPACITY, x=buffer)
    writer, reader = pipe.writer(), pipe.reader()
    filled, read = writer.cursor(0), reader.cursor(start - start)
    for k in range(n):
        slot = writer.acquire(filled)
        slot.x.store(tl.load(x_ptr + k * B + tl.arange(0, B)) + filled.stage)
        writer.commit(filled)
        filled.advance()
        x = reader.wait(read).slot.x.load()
        tl.store(out_ptr + k * B + tl.arange(0, B), x)
        reader.release(read)
        read = read.advance()


@pytest.mark.parametrize("capacity", [1, 2, 3, 5])
def test_cursors(device, target, capacity):
    x = numbers((8, 32))
    out = device.array(np.zeros((8, 32), "float32"))
    with_cursors[(1,)](device.array(x), out, 3, 8, 32, capacity)
    np.testing.assert_array_equal(device.numpy(out), x + (np.arange(8) % capacity)[:, None])


@triton.jit
def until_it_is_closed(x_ptr, out_ptr, count_ptr, n, B: tl.constexpr, CAPACITY: tl.constexpr):
    buffer = tle.gpu.alloc([CAPACITY, B], dtype=tl.float32)
    pipe = tle.pipe(capacity=CAPACITY, x=buffer)
    writer, reader = pipe.writer(), pipe.reader()
    k = 0
    closed = False
    while not closed:
        if k < n:
            produce(writer, k, x_ptr, B)
        else:
            writer.close(k)
        result = reader.wait(k)
        closed = result.is_closed
        if not closed:
            tl.store(out_ptr + k * B + tl.arange(0, B), result.slot.x.load())
        reader.release(k)
        k += 1
    tl.store(count_ptr, k)


@pytest.mark.parametrize("capacity", [1, 2, 3])
def test_close(device, target, capacity):
    for n in (0, 1, 5):
        x = numbers((5, 32))
        out, count = device.array(np.zeros((5, 32), "float32")), device.array(np.zeros(1, "int32"))
        until_it_is_closed[(1,)](device.array(x), out, count, n, 32, capacity)
        assert device.numpy(count)[0] == n + 1
        np.testing.assert_array_equal(device.numpy(out), np.where(np.arange(5)[:, None] < n, x, 0))


@triton.jit
def closed_after(x_ptr, out_ptr, N: tl.constexpr, B: tl.constexpr):
    buffer = tle.gpu.alloc([N + 1, B], dtype=tl.float32)
    pipe = tle.pipe(capacity=N + 1, x=buffer)
    writer, reader = pipe.writer(), pipe.reader()
    for k in tl.static_range(N):
        produce(writer, k, x_ptr, B)
    writer.close(N)
    for k in tl.static_range(N + 1):
        result = reader.wait(k)
        tl.store(out_ptr + k, result.is_closed.to(tl.int32))
        reader.release(k)


def test_what_is_closed_is_known(device, target):
    out = device.array(np.full(4, 7, "int32"))
    closed_after[(1,)](device.array(numbers((3, 32))), out, 3, 32)
    np.testing.assert_array_equal(device.numpy(out), [0, 0, 0, 1])


@triton.jit
def sums_and_products(x_ptr, y_ptr, sum_ptr, product_ptr, n, B: tl.constexpr, CAPACITY: tl.constexpr):
    rows, columns = tl.arange(0, 4)[:, None], tl.arange(0, B)[None, :]
    x = tle.gpu.alloc([CAPACITY, 4, B], dtype=tl.float32)
    y = tle.gpu.alloc([CAPACITY, B], dtype=tl.float16, nv_mma_shared_layout=False)
    pipe = tle.pipe(capacity=CAPACITY, name="both", readers=("sum", "product"), x=x, y=y)
    tl.static_assert(pipe.readers == ("sum", "product") and pipe.scope == "cta" and not pipe.one_shot)
    writer = pipe.writer()
    tl.static_assert(writer.pipe.name == "both")
    of_sum, of_product = pipe.reader("sum", fields=("x",)), pipe.reader(name="product", fields=["y", "x"])
    tl.static_assert(of_sum.fields == ("x",) and of_product.name == "product")
    for k in range(n):
        slot = writer.acquire(k)
        tl.store(tle.gpu.local_ptr(slot.x, (rows, columns)), tl.load(x_ptr + (k * 4 + rows) * B + columns))
        tle.gpu.copy(y_ptr + k * B + tl.arange(0, B), slot.fields["y"], [B])
        writer.commit(k)
        whole = of_sum.wait(k).slot.x.load()
        of_sum.release(k)
        tl.store(sum_ptr + k * 4 + tl.arange(0, 4), tl.sum(whole, 1))
        both = of_product.wait(k).slot
        product = both.x.load() * both.y.load().to(tl.float32)[None, :]
        of_product.release(k)
        tl.store(product_ptr + (k * 4 + rows) * B + columns, product)


@pytest.mark.parametrize("capacity", [1, 2, 3])
def test_fields_and_readers(device, target, capacity):
    x, y = numbers((6, 4, 32)), numbers((6, 32), "float16", 1)
    sums, products = device.array(np.zeros((6, 4), "float32")), device.array(np.zeros((6, 4, 32), "float32"))
    sums_and_products[(1,)](device.array(x), device.array(y), sums, products, 6, 32, capacity)
    np.testing.assert_array_equal(device.numpy(sums), x.sum(2))
    np.testing.assert_array_equal(device.numpy(products), x * y[:, None, :].astype("float32"))


@triton.jit
def a_reader_who_never_reads(x_ptr, out_ptr, n, B: tl.constexpr):
    buffer = tle.gpu.alloc([2, B], dtype=tl.float32)
    pipe = tle.pipe(capacity=2, readers=("one", "other"), x=buffer)
    for k in range(n):
        produce(pipe.writer(), k, x_ptr, B)
        consume(pipe.reader("one"), k, out_ptr, B)


def test_a_reader_who_never_reads(device, target, stops):
    x, out = device.array(numbers((4, 32))), device.array(np.zeros((4, 32), "float32"))
    with pytest.raises(triton.KernelError, match="the writer of the pipe waits for") as caught:
        a_reader_who_never_reads[(1,)](x, out, 4, 32)
    if device.backend == "interp":
        assert "the reader `other` to release slot 0" in str(caught.value)


@triton.jit
def once(table_ptr, x_ptr, out_ptr, n, B: tl.constexpr):
    buffer = tle.gpu.alloc([1, B], dtype=tl.float32)
    pipe = tle.pipe(capacity=1, one_shot=True, table=buffer)
    writer, reader = pipe.writer(), pipe.reader()
    writer.acquire(0).table.store(tl.load(table_ptr + tl.arange(0, B)))
    writer.commit(0)
    for k in range(n):
        table = reader.wait(0).slot.table
        at = tl.load(x_ptr + k * B + tl.arange(0, B))
        tl.store(out_ptr + k * B + tl.arange(0, B), tl.load(tle.gpu.local_ptr(table, (at,))))


def test_one_shot(device, target):
    table, x = numbers(32), numbers((4, 32), "int32") % 32
    out = device.array(np.zeros((4, 32), "float32"))
    once[(1,)](device.array(table), device.array(x), out, 4, 32)
    np.testing.assert_array_equal(device.numpy(out), table[x])


@triton.jit
def twice(x_ptr, n, B: tl.constexpr):
    buffer = tle.gpu.alloc([1, B], dtype=tl.float32)
    pipe = tle.pipe(capacity=1, one_shot=True, x=buffer)
    for k in range(n):
        produce(pipe.writer(), k, x_ptr, B)


def test_one_shot_twice(device, target, stops):
    with pytest.raises(triton.KernelError, match=r"is filled a second time|waits for a slot"):
        twice[(1,)](device.array(numbers((2, 32))), 2, 32)


@triton.jit
def two_pipes(x_ptr, out_ptr, n, B: tl.constexpr):
    first = tle.pipe(capacity=2, name="first", x=tle.gpu.alloc([2, B], dtype=tl.float32))
    second = tle.pipe(capacity=3, name="second", x=tle.gpu.alloc([3, B], dtype=tl.float32))
    for k in range(n):
        produce(first.writer(), k, x_ptr, B)
        slot = second.writer().acquire(k)
        slot.x.store(first.reader().wait(k).slot.x.load() * 2)
        first.reader().release(k)
        second.writer().commit(k)
        consume(second.reader(), k, out_ptr, B)


def test_two_pipes(device, target):
    x = numbers((7, 64))
    out = device.array(np.zeros((7, 64), "float32"))
    two_pipes[(1,)](device.array(x), out, 7, 64)
    np.testing.assert_array_equal(device.numpy(out), 2 * x + 1)


@triton.jit
def products(
    a_ptr, b_ptr, c_ptr, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, CAPACITY: tl.constexpr
):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    a = tle.gpu.alloc([CAPACITY, M, BK], dtype=tl.float16)
    b = tle.gpu.alloc([CAPACITY, BK, N], dtype=tl.float16)
    pipe = tle.pipe(capacity=CAPACITY, a=a, b=b)
    writer, reader = pipe.writer(), pipe.reader()
    acc = tl.zeros((M, N), tl.float32)
    for i in range(0, K // BK):
        slot = writer.acquire(i)
        tle.gpu.copy(a_ptr + m[:, None] * K + (i * BK + k)[None, :], slot.a, [M, BK])
        tle.gpu.copy(b_ptr + (i * BK + k)[:, None] * N + n[None, :], slot.b, [BK, N])
        writer.commit(i)
        ready = reader.wait(i).slot
        acc = tl.dot(ready.a.load(), ready.b.load(), acc)
        reader.release(i)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize("capacity", [1, 3])
def test_products(device, target, capacity):
    a, b = numbers((64, 128), "float16") % 8, numbers((128, 32), "float16", 1) % 8
    c = device.array(np.zeros((64, 32), "float32"))
    products[(1,)](device.array(a), device.array(b), c, 128, 64, 32, 32, capacity)
    np.testing.assert_array_equal(device.numpy(c), a.astype("float32") @ b.astype("float32"))


# The examples of the specification, made complete.


@triton.jit
def simple_example(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    stage_buf = tle.gpu.alloc([2, BLOCK], dtype=tl.float32, scope=tle.gpu.smem)
    pipe = tle.pipe(capacity=2, scope="cta", name="x_pipe", x=stage_buf)
    writer = pipe.writer()
    reader = pipe.reader()
    offs = tl.arange(0, BLOCK)
    for k in range(n):
        slot = writer.acquire(k)
        tl.store(tle.gpu.local_ptr(slot.x), tl.load(x_ptr + k * BLOCK + offs))
        writer.commit(k)

        ready = reader.wait(k)
        x = tl.load(tle.gpu.local_ptr(ready.slot.x))
        reader.release(k)
        tl.store(out_ptr + k * BLOCK + offs, x)


def test_simple_example(device, target):
    x = numbers((5, 128))
    out = device.array(np.zeros((5, 128), "float32"))
    simple_example[(1,)](device.array(x), out, 5, 128)
    np.testing.assert_array_equal(device.numpy(out), x)


@triton.jit
def filter_and_compact(
    x_ptr, out_ptr, block_offsets_ptr, block_counts_ptr, threshold, n_elements, BLOCK: tl.constexpr
):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_elements

    x = tle.load(x_ptr + offs, mask=mask, other=0.0, is_async=True)
    keep = (x > threshold) & mask
    active = keep.to(tl.int32)

    write_offsets, active_total = tle.cumsum(active, axis=0)
    block_base = tl.load(block_offsets_ptr + pid)

    tl.store(out_ptr + block_base + write_offsets, x, mask=keep)
    tl.store(block_counts_ptr + pid, active_total)


def test_filter_and_compact(device, target):
    n, block = 1000, 256
    x = numbers(n)
    kept = [part[part > 60] for part in np.split(x, range(block, n, block))]
    bases = np.cumsum([0] + [len(part) for part in kept[:-1]]).astype("int32")
    out, counts = device.array(np.zeros(n, "float32")), device.array(np.zeros(4, "int32"))
    filter_and_compact[(4,)](device.array(x), out, device.array(bases), counts, 60.0, n, block)
    everything = np.concatenate(kept)
    np.testing.assert_array_equal(device.numpy(out), np.pad(everything, (0, n - len(everything))))
    np.testing.assert_array_equal(device.numpy(counts), [len(part) for part in kept])


@triton.jit
def tile_offset(t, rows, cols, N: tl.constexpr, BM: tl.constexpr):
    return (t * BM + rows) * N + cols


@triton.jit
def tile_mask(t, rows, cols, M, N: tl.constexpr, BM: tl.constexpr):
    return (t * BM + rows < M) & (cols < N)


@triton.jit
def post_process(
    x_ptr, out_ptr, M, N: tl.constexpr, n_tiles: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    tile_buf = tle.gpu.alloc([2, BM, BN], dtype=tl.float32, scope=tle.gpu.smem)
    pipe = tle.pipe(capacity=2, scope="cta", name="post_pipe", tile=tile_buf)
    writer = pipe.writer()
    reader = pipe.reader()

    rows = tl.arange(0, BM)[:, None]
    cols = tl.arange(0, BN)[None, :]

    for t in tl.range(0, n_tiles):
        slot = writer.acquire(t)
        mask = tile_mask(t, rows, cols, M, N, BM)
        vals = tle.load(x_ptr + tile_offset(t, rows, cols, N, BM), mask=mask, other=0.0, is_async=True)
        tl.store(tle.gpu.local_ptr(slot.tile, (rows, cols)), vals)
        writer.commit(t)

    for t in tl.range(0, n_tiles):
        ready = reader.wait(t)
        tile = tl.load(tle.gpu.local_ptr(ready.slot.tile, (rows, cols)))
        sub = tile.extract_tile(index=[0, 0], shape=[BM // 2, BN // 2])
        sub = tl.maximum(sub, 0.0)
        tile = tile.insert_tile(sub, index=[0, 0])
        mask = tile_mask(t, rows, cols, M, N, BM)
        tl.store(out_ptr + tile_offset(t, rows, cols, N, BM), tile, mask=mask)
        reader.release(t)


def test_post_processing(device, target):
    m, n, bm, bn = 30, 28, 16, 32
    x = numbers((m, n)) - 50
    out = device.array(np.zeros((m, n), "float32"))
    post_process[(1,)](device.array(x), out, m, n, 2, bm, bn)
    expected = x.copy()
    for t in range(2):
        corner = expected[t * bm : t * bm + bm // 2, : bn // 2]
        np.maximum(corner, 0, out=corner)
    np.testing.assert_array_equal(device.numpy(out), expected)
    # As the specification has it, for any number of tiles, the writer's loop cannot end.
    with pytest.raises(refused(device), match="slot 0"):
        post_process[(1,)](device.array(x), out, m, n, 3, bm, bn)


@triton.jit
def selective_readers(
    q_ptr, scale_ptr, gram_ptr, scaled_ptr, n,
    BM: tl.constexpr, BK: tl.constexpr, PIPE_CAPACITY: tl.constexpr,
):  # fmt: skip
    q_desc = tl.make_tensor_descriptor(q_ptr, [n * BM, BK], [BK, 1], [BM, BK])
    rows, columns = tl.arange(0, BM), tl.arange(0, BK)
    q = tle.gpu.alloc([PIPE_CAPACITY, BM, BK], dtype=tl.float16, scope=tle.gpu.smem)
    scale = tle.gpu.alloc(
        [PIPE_CAPACITY, BM],
        dtype=tl.float32,
        scope=tle.gpu.smem,
        nv_mma_shared_layout=False,
    )

    pipe = tle.pipe(
        capacity=PIPE_CAPACITY,
        scope="cta",
        name="multi_field_inputs",
        readers=("mma", "epilogue"),
        q=q,
        scale=scale,
    )

    writer = pipe.writer()
    mma_reader = pipe.reader("mma", fields=("q",))
    epilogue_reader = pipe.reader("epilogue", fields=("q", "scale"))

    for k in range(n):
        scale_values = tl.load(scale_ptr + k * BM + rows)
        slot = writer.acquire(k)
        tle.gpu.copy(q_desc, slot.q, [BM, BK], [k * BM, 0])
        tl.store(tle.gpu.local_ptr(slot.scale, (tl.arange(0, BM),)), scale_values)
        writer.commit(k)

        q_ready = mma_reader.wait(k).slot
        q_tile = tl.load(tle.gpu.local_ptr(q_ready.q))
        mma_reader.release(k)
        gram = tl.dot(q_tile, q_tile.T)
        tl.store(gram_ptr + (k * BM + rows[:, None]) * BM + rows[None, :], gram)

        epilogue_ready = epilogue_reader.wait(k).slot
        q_for_epilogue = tl.load(tle.gpu.local_ptr(epilogue_ready.q))
        scale_tile = tl.load(tle.gpu.local_ptr(epilogue_ready.scale, (tl.arange(0, BM),)))
        epilogue_reader.release(k)
        scaled = q_for_epilogue.to(tl.float32) * scale_tile[:, None]
        tl.store(scaled_ptr + (k * BM + rows[:, None]) * BK + columns[None, :], scaled)


@pytest.mark.parametrize("capacity", [1, 2, 3])
def test_selective_readers(device, target, capacity):
    n, bm, bk = 4, 32, 64
    q, scale = numbers((n, bm, bk), "float16") % 8, numbers((n, bm), seed=1)
    gram, scaled = (
        device.array(np.zeros((n, bm, bm), "float32")),
        device.array(np.zeros((n, bm, bk), "float32")),
    )
    selective_readers[(1,)](device.array(q), device.array(scale), gram, scaled, n, bm, bk, capacity)
    wide = q.astype("float32")
    np.testing.assert_array_equal(device.numpy(gram), wide @ wide.transpose(0, 2, 1))
    np.testing.assert_array_equal(device.numpy(scaled), wide * scale[:, :, None])


@triton.jit
def short_rows(x_ptr, out_ptr, n, N: tl.constexpr, CAPACITY: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, [n * N], [1], [N])
    pipe = tle.pipe(capacity=CAPACITY, x=tle.gpu.alloc([CAPACITY, N], dtype=tl.float32))
    writer, reader = pipe.writer(), pipe.reader()
    for k in range(n):
        tle.gpu.copy(desc, writer.acquire(k).x, [N], [k * N])
        writer.commit(k)
        tl.store(out_ptr + k * N + tl.arange(0, N), reader.wait(k).slot.x.load() + 1)
        reader.release(k)


@pytest.mark.parametrize("size", [8, 16, 48])
def test_slots_that_begin_in_between(device, target, size):
    """The copy engine goes to multiples of 128 bytes: threads store to other slots."""
    x = np.arange(5 * size, dtype=np.float32)
    out = device.array(np.zeros_like(x))
    short_rows[(1,)](device.array(x), out, 5, size, 3)
    np.testing.assert_array_equal(device.numpy(out), x + 1)
