"""`extract_tile` and `insert_tile` on buffers, and other parts of them: views, by numbers known at compile time and at run time."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def grid(shape: tl.constexpr, width: tl.constexpr):
    return tl.arange(0, shape[0])[:, None] * width + tl.arange(0, shape[1])[None, :]


@triton.jit
def tile_kernel(
    x_ptr,
    tile_ptr,
    out_ptr,
    numbers_ptr,
    SHAPE: tl.constexpr,
    TILE: tl.constexpr,
    HOW: tl.constexpr,
    AT: tl.constexpr,
):
    buffer = tle.gpu.alloc(SHAPE, dtype=x_ptr.dtype.element_ty)
    buffer.store(tl.load(x_ptr + grid(SHAPE, SHAPE[1])))
    if HOW == "constant":
        index = AT
    elif HOW == "number":
        index = tl.load(numbers_ptr)
    elif HOW == "mixed":
        index = (AT[0], tl.load(numbers_ptr + 2))
    else:
        index = (tl.load(numbers_ptr + 1), tl.load(numbers_ptr + 2))
    tile = buffer.extract_tile(index, TILE)
    tl.store(tile_ptr + grid(TILE, TILE[1]), tile.load())
    # What is stored there is seen through the view.
    same = tle.insert_tile(buffer, tile.load() + 1, index)
    tile.store(tile.load() * 2)
    tl.atomic_add(tle.gpu.local_ptr(tile, (0, TILE[1] - 1)), 5)
    tl.store(out_ptr + grid(SHAPE, SHAPE[1]), same.load())


@pytest.mark.parametrize("how", ["constant", "number", "mixed", "both"])
@pytest.mark.parametrize(
    ("shape", "tile", "at", "dtype"),
    [
        ((16, 32), (4, 8), (3, 1), np.int32),
        ((12, 15), (4, 5), (1, 2), np.int32),
        ((96, 40), (32, 40), (2, 0), np.float32),
        ((6, 8), (1, 8), (5, 0), np.int32),
    ],
)
def test_tiles(device, shape, tile, at, dtype, how):
    x = np.random.default_rng(0).integers(0, 50, shape).astype(dtype)
    found, out = device.empty(tile, dtype), device.empty(shape, dtype)
    number = at[0] * (shape[1] // tile[1]) + at[1]
    numbers = device.array(np.array([number, *at], np.int32))
    tile_kernel[(1,)](device.array(x), found, out, numbers, shape, tile, how, at)
    place = tuple(slice(n * t, n * t + t) for n, t in zip(at, tile))
    np.testing.assert_array_equal(device.numpy(found), x[place])
    x[place] = (x[place] + 1) * 2
    x[place][0, -1] += 5
    np.testing.assert_array_equal(device.numpy(out), x)


@triton.jit
def nested(x_ptr, out_ptr, numbers_ptr, N: tl.constexpr):
    """Tiles of tiles, carried by a loop and out of a branch, and of truths."""
    buffer = tle.gpu.alloc([N, N], dtype=tl.int32)
    buffer.store(tl.load(x_ptr + grid((N, N), N)))
    truths = tle.gpu.alloc([N, N], dtype=tl.int1)
    truths.store(buffer.load() % 2 == 1)
    i = tl.load(numbers_ptr)
    if tl.load(numbers_ptr + 1) > 0:
        part = buffer.extract_tile((i, 0), (N // 2, N // 2))
    else:
        part = buffer.extract_tile((0, i), (N // 2, N // 2))
    total = tl.zeros([N // 4, N // 2], tl.int32)
    for k in range(2):
        total += part.extract_tile((k, 0), (N // 4, N // 2)).load()
        total += truths.extract_tile((k, i), (N // 4, N // 2)).load().to(tl.int32)
    tl.store(out_ptr + grid((N // 4, N // 2), N // 2), total)


@pytest.mark.parametrize("flag", [0, 1])
def test_nested(device, flag):
    x = np.random.default_rng(1).integers(0, 50, (16, 16), dtype=np.int32)
    out = device.empty((4, 8), np.int32)
    nested[(1,)](device.array(x), out, device.array(np.array([1, flag], np.int32)), 16)
    part = x[8:, :8] if flag else x[:8, 8:]
    want = part[:4] + part[4:] + x[:4, 8:] % 2 + x[4:8, 8:] % 2
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def scale(tile, out_ptr, factor):
    N: tl.constexpr = tile.shape[1]
    tl.store(out_ptr + tl.arange(0, N), tl.sum(tile.load(), 0) * factor)


@triton.jit
def in_partitions(x_ptr, out_ptr, i, N: tl.constexpr):
    buffer = tle.gpu.alloc([N, N], dtype=tl.int32)
    buffer.store(tl.load(x_ptr + grid((N, N), N)))
    tle.gpu.warp_specialize(
        [
            (scale, (buffer.extract_tile((i, 0), (4, N)), out_ptr, 2)),
            (scale, (buffer.extract_tile((i + 1, 0), (4, N)), out_ptr + N, 3)),
        ],
        [2],
        [40],
    )


def test_in_partitions(device):
    x = np.random.default_rng(2).integers(0, 50, (16, 16), dtype=np.int32)
    out = device.empty((2, 16), np.int32)
    in_partitions[(1,)](device.array(x), out, 2, 16)
    np.testing.assert_array_equal(device.numpy(out), np.stack([x[8:12].sum(0) * 2, x[12:].sum(0) * 3]))


@triton.jit
def copies(x_ptr, out_ptr, numbers_ptr, N: tl.constexpr, BY_DESCRIPTOR: tl.constexpr):
    """Copies to and from tiles, whole and in part; slots and parts of them."""
    buffer = tle.gpu.alloc([N, N], dtype=tl.int32, init_value=tl.zeros([N, N], tl.int32))
    i, n = tl.load(numbers_ptr), tl.load(numbers_ptr + 1)
    half = buffer.extract_tile((i, 0), (N // 2, N))
    x_desc = tl.make_tensor_descriptor(x_ptr, [N, N], [N, 1], [N // 2, N])
    out_desc = tl.make_tensor_descriptor(out_ptr, [N, N], [N, 1], [N // 2, N])
    if BY_DESCRIPTOR:
        tle.gpu.copy(x_desc, half, [N // 2, N], [0, 0])
    else:
        tle.gpu.copy(x_ptr + grid((N // 2, N), N), half, [n, N])
    half.slot(i).store(half.slot(1).load() + 1000)
    half.subslice(3, 4, dim=1).slot(n - 1).store(tl.zeros([4], tl.int32))
    if BY_DESCRIPTOR:
        tle.gpu.copy(half, out_desc, [N // 2, N], [0, 0])
        tle.gpu.copy(
            buffer, tl.make_tensor_descriptor(out_ptr + N * N, [N, N], [N, 1], [N, N]), [N, N], [0, 0]
        )
    else:
        quarter = half.extract_tile((0, i), (N // 2, N // 2))
        tle.gpu.copy(quarter, out_ptr + grid((N // 2, N // 2), N), [n, N // 2])
        tle.gpu.copy(buffer, out_ptr + N * N + grid((N, N), N), [N, N])


@pytest.mark.parametrize("by_descriptor", [False, True])
@pytest.mark.parametrize("i", [0, 1])
def test_copies(device, i, by_descriptor):
    n, rows = 16, 5
    x = np.random.default_rng(3).integers(1, 50, (n, n), dtype=np.int32)
    out = device.array(np.zeros((2, n, n), np.int32))
    copies[(1,)](device.array(x), out, device.array(np.array([i, rows], np.int32)), n, by_descriptor)
    half = x[:8].copy()
    if not by_descriptor:
        half[rows:] = 0
    half[i] = half[1] + 1000
    half[rows - 1, 3:7] = 0
    want = np.zeros((2, n, n), np.int32)
    if by_descriptor:
        want[0, :8] = half
    else:
        want[0, :rows, :8] = half[:rows, 8 * i : 8 * i + 8]
    want[1, 8 * i : 8 * i + 8] = half
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def ahead(x_ptr, out_ptr, n, BUFFER: tl.constexpr, TILE: tl.constexpr):
    """Asynchronous copies to one half of a buffer while the other one is read."""
    ROWS: tl.constexpr = TILE[0] if len(TILE) == 2 else TILE[1]
    COLUMNS: tl.constexpr = TILE[len(TILE) - 1]
    block = tl.reshape(grid((ROWS, COLUMNS), COLUMNS), TILE)
    buffer = tle.gpu.alloc(BUFFER, dtype=x_ptr.dtype.element_ty)
    total = tl.zeros(TILE, x_ptr.dtype.element_ty)
    for i in range(n + 1):
        inside = tl.full(TILE, i < n, tl.int1)
        if len(TILE) == 2:
            there = buffer.extract_tile((i % 2, 0), TILE)
        else:
            there = buffer.extract_tile(i % 2, TILE)
        tle.gpu.copy(x_ptr + i * ROWS * COLUMNS + block, there, TILE, mask=inside, is_async=True)
        tle.gpu.async_commit_group()
        tle.gpu.async_wait_group(1)
        if i > 0:
            total += buffer.extract_tile(((i - 1) % 2,) + (0,) * (len(TILE) - 1), TILE).load()
    tl.store(out_ptr + block, total)


@pytest.mark.parametrize(
    ("shape", "tile"),
    [((32, 32), (16, 32)), ((16, 24), (8, 24)), ((2, 8, 32), (1, 8, 32))],
)
def test_asynchronous_copies(device, shape, tile):
    x = np.random.default_rng(4).integers(0, 50, (5, *tile)).astype(np.float32)
    out = device.empty(tile, np.float32)
    ahead[(1,)](device.array(x), out, 5, shape, tile)
    np.testing.assert_array_equal(device.numpy(out), x.sum(0))


@triton.jit
def seen_otherwise(x_ptr, out_ptr, numbers_ptr, N: tl.constexpr):
    """A tile reshaped, its slots and tiles; its bytes as another dtype; a tile of a buffer of one dimension."""
    buffer = tle.gpu.alloc([4 * N], dtype=tl.uint32)
    buffer.store(tl.load(x_ptr + tl.arange(0, 4 * N)))
    i, k = tl.load(numbers_ptr), tl.load(numbers_ptr + 1)
    tile = buffer.extract_tile(i, (N,))
    square = tile.reshape([4, N // 4])
    tl.store(out_ptr + tl.arange(0, N // 4), square.slot(k).load())
    halves = tle.gpu.alloc([2 * N], dtype=tl.uint16, alias=tile, nv_mma_shared_layout=False)
    tl.store(out_ptr + N + tl.arange(0, 2 * N), halves.load().to(tl.uint32))
    part = square.extract_tile((k // 2, 0), (2, N // 4)).reshape([N // 2])
    tl.store(out_ptr + 3 * N + tl.arange(0, N // 2), part.load())


@pytest.mark.parametrize("i", [0, 3])
def test_seen_otherwise(device, i):
    n, k = 32, 3
    x = np.random.default_rng(5).integers(0, 1 << 32, 4 * n, dtype=np.uint32)
    out = device.array(np.zeros(4 * n, np.uint32))
    seen_otherwise[(1,)](device.array(x), out, device.array(np.array([i, k], np.int32)), n)
    tile = x[i * n : i * n + n]
    found = device.numpy(out)
    np.testing.assert_array_equal(found[: n // 4], tile.reshape(4, -1)[k])
    np.testing.assert_array_equal(found[n : 3 * n], tile.view(np.uint16))
    np.testing.assert_array_equal(
        found[3 * n : 3 * n + n // 2], tile.reshape(4, -1)[2 * (k // 2) :][:2].ravel()
    )


@triton.jit
def products(a_ptr, b_ptr, out_ptr, numbers_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Products of tiles that the program chooses, one of which is read the other way round."""
    a = tle.gpu.alloc([4 * M, K], dtype=tl.float16)
    a.store(tl.load(a_ptr + grid((4 * M, K), K)))
    b = tle.gpu.alloc([2, 2 * N, K], dtype=tl.float16)
    b.slot(0).store(tl.load(b_ptr + grid((2 * N, K), K)))
    b.slot(1).store(tl.load(b_ptr + 2 * N * K + grid((2 * N, K), K)))
    i, j = tl.load(numbers_ptr), tl.load(numbers_ptr + 1)
    acc = tl.zeros([M, N], tl.float32)
    for k in range(2):
        left = a.extract_tile((2 * k + i, 0), (M, K))
        right = b.slot(k).extract_tile((j, 0), (N, K))
        acc = tle.gpu.wgmma(left, right, acc, trans_b=True)
        acc = tle.gpu.wgmma_wait(0, acc)
    tl.store(out_ptr + grid((M, N), N), acc)


@pytest.mark.parametrize("i", [0, 1])
@pytest.mark.parametrize("n", [8, 64])
def test_products(device, i, n):
    m, k = 64, 64
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((4, m, k), (2, 2, n, k)))
    out = device.empty((m, n), np.float32)
    numbers = device.array(np.array([i, 1 - i], np.int32))
    products[(1,)](device.array(a), device.array(b), out, numbers, m, n, k)
    a, b = a.astype(np.float32), b.astype(np.float32)
    want = a[i] @ b[0, 1 - i].T + a[2 + i] @ b[1, 1 - i].T
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def products_along_k(a_ptr, b_ptr, out_ptr, numbers_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Products of columns of one buffer and rows of another one, which come in an order that is loaded."""
    a = tle.gpu.alloc([M, 4 * K], dtype=tl.float16)
    a.store(tl.load(a_ptr + grid((M, 4 * K), 4 * K)))
    b = tle.gpu.alloc([4 * K, N], dtype=tl.float16)
    b.store(tl.load(b_ptr + grid((4 * K, N), N)))
    acc = tl.zeros([M, N], tl.float32)
    for k in range(3):
        number = tl.load(numbers_ptr + k)
        acc = tle.gpu.wgmma(a.extract_tile((0, number), (M, K)), b.extract_tile((number, 0), (K, N)), acc)
        acc = tle.gpu.wgmma_wait(0, acc)
    tl.store(out_ptr + grid((M, N), N), acc)


@pytest.mark.parametrize(("n", "k"), [(64, 64), (128, 32)])
def test_products_along_k(device, n, k):
    m = 64
    rng = np.random.default_rng(12)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, 4 * k), (4 * k, n)))
    out = device.empty((m, n), np.float32)
    numbers = np.array([3, 0, 2], np.int32)
    products_along_k[(1,)](device.array(a), device.array(b), out, device.array(numbers), m, n, k)
    chosen = (numbers[:, None] * k + np.arange(k)).ravel()
    want = a[:, chosen].astype(np.float32) @ b[chosen].astype(np.float32)
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def columns_ahead(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    """Asynchronous copies to columns of a buffer, and to a tile in a corner."""
    buffer = tle.gpu.alloc([2 * M, 2 * N], dtype=tl.float32, init_value=tl.zeros([2 * M, 2 * N], tl.float32))
    tl.debug_barrier()
    tle.gpu.copy(
        x_ptr + grid((2 * M, N), N), buffer.extract_tile((0, n), (2 * M, N)), [2 * M, N], is_async=True
    )
    tle.gpu.copy(
        x_ptr + 2 * M * N + grid((M, N), N), buffer.extract_tile(2 * n + 1 - n, (M, N)), [M, N], is_async=True
    )
    tle.gpu.async_commit_group()
    tle.gpu.async_wait_group(0)
    tl.store(out_ptr + grid((2 * M, 2 * N), 2 * N), buffer.load())


def test_asynchronous_copies_to_columns(device):
    m, n = 8, 16
    x = np.random.default_rng(13).integers(0, 50, (3, m, n)).astype(np.float32)
    out = device.empty((2 * m, 2 * n), np.float32)
    columns_ahead[(1,)](device.array(x), out, 0, m, n)
    want = np.zeros((2 * m, 2 * n), np.float32)
    want[:, :n] = x[:2].reshape(2 * m, n)
    want[:m, n:] = x[2]
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def columns_by_barrier(x_ptr, out_ptr, number_ptr, M: tl.constexpr, N: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [M, N])
    buffer = tle.gpu.alloc([M, 2 * N], dtype=tl.float32)
    bar = tle.gpu.alloc_barrier(expect_bytes=M * N * 4)
    tle.gpu.copy(x_desc, buffer.extract_tile((0, tl.load(number_ptr)), (M, N)), [M, N], [0, 0], barrier=bar)
    tle.gpu.barrier_wait(bar, phaseIdx=0)
    tl.store(out_ptr + grid((M, N), N), buffer.subslice(N, N, dim=1).load())


def test_columns_with_a_barrier(device):
    m, n = 16, 32
    x = np.random.default_rng(14).random((m, n)).astype(np.float32)
    out = device.empty((m, n), np.float32)
    columns_by_barrier[(1,)](device.array(x), out, device.array(np.array([1], np.int32)), m, n)
    np.testing.assert_array_equal(device.numpy(out), x)


@triton.jit
def within_a_swizzle(a_ptr, out_ptr, i):
    a = tle.gpu.alloc([64, 64], dtype=tl.float16)
    a.store(tl.load(a_ptr + grid((64, 64), 64)))
    acc = tle.gpu.wgmma_wait(0, tle.gpu.wgmma(a, a, trans_b=True))
    tl.store(out_ptr + grid((64, 64), 64), acc)
    tle.gpu.copy(a_ptr + grid((64, 16), 64), a.extract_tile((0, i), (64, 16)), [64, 16], is_async=True)
    tle.gpu.async_commit_group()
    tle.gpu.async_wait_group(0)


def test_what_begins_within_a_swizzle(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    with pytest.raises(triton.CompilationError, match="which may begin within a swizzle"):
        within_a_swizzle[(1,)](np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float32), 2)


@triton.jit
def bring(desc, buffer, full, empty, n, M: tl.constexpr, N: tl.constexpr):
    for i in range(n):
        tle.gpu.barrier_wait(empty[i % 2], phaseIdx=i // 2)
        there = buffer.extract_tile((i % 2, 0), (M, N))
        tle.gpu.copy(desc, there, [M, N], [i * M, 0], barrier=full[i % 2])


@triton.jit
def take(out_desc, buffer, full, empty, n, M: tl.constexpr, N: tl.constexpr):
    for i in range(n):
        tle.gpu.barrier_wait(full[i % 2], phaseIdx=i // 2)
        tle.gpu.copy(buffer.extract_tile((i % 2, 0), (M, N)), out_desc, [M, N], [(n - 1 - i) * M, 0])
        tle.gpu.barrier_arrive(empty[i % 2], phaseIdx=i // 2)


@triton.jit
def by_barriers(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [n * M, N], [N, 1], [M, N])
    out_desc = tl.make_tensor_descriptor(out_ptr, [n * M, N], [N, 1], [M, N])
    buffer = tle.gpu.alloc([2 * M, N], dtype=tl.float32)
    full = tle.gpu.alloc_barriers(2, expect_bytes=M * N * 4)
    empty = tle.gpu.alloc_barriers(2, init=tle.gpu.READY)
    tle.gpu.warp_specialize(
        [(take, (out_desc, buffer, full, empty, n, M, N)), (bring, (x_desc, buffer, full, empty, n, M, N))],
        [1],
        [24],
    )


def test_copies_with_a_barrier(device):
    n, rows, columns = 5, 16, 32
    x = np.random.default_rng(7).random((n, rows, columns)).astype(np.float32)
    out = device.empty((n, rows, columns), np.float32)
    by_barriers[(1,)](device.array(x), out, n, rows, columns)
    np.testing.assert_array_equal(device.numpy(out), x[::-1])


@triton.jit
def parts_of(x_ptr, out_ptr, flag, N: tl.constexpr):
    """Parts that are whole rows lie side by side: they are reshaped, and other buffers lie there."""
    buffer = tle.gpu.alloc([4 * N, N], dtype=tl.float32)
    buffer.store(tl.load(x_ptr + grid((4 * N, N), N)))
    half = buffer.subslice(2 * N, 2 * N, dim=0)
    rows = half.extract_tile((1, 0), (N, N)).reshape([2, N // 2, N])
    tl.store(out_ptr + grid((N // 2, N), N), rows.slot(flag).load())
    same = tle.gpu.alloc([N * N], dtype=tl.float32, alias=half, alias_offset_bytes=N * N * 4)
    tl.store(out_ptr + N * N + tl.arange(0, N * N), same.load())


@pytest.mark.parametrize("flag", [0, 1])
def test_parts_that_lie_side_by_side(device, flag):
    n = 16
    x = np.random.default_rng(8).random((4, n, n)).astype(np.float32)
    out = device.array(np.zeros((2, n, n), np.float32))
    parts_of[(1,)](device.array(x), out, flag, n)
    found = device.numpy(out)
    np.testing.assert_array_equal(found[0, : n // 2], x[3].reshape(2, n // 2, n)[flag])
    np.testing.assert_array_equal(found[1], x[3])


@triton.jit
def by_matrix_units(x_ptr, out_ptr, which_ptr, LAYOUT: tl.constexpr, N: tl.constexpr):
    """A buffer of a given layout under another shape, and tiles of it."""
    buffer = tle.gpu.alloc([2 * N, N], dtype=tl.float32, layout=LAYOUT)
    buffer.store(tl.load(x_ptr + grid((2 * N, N), N)))
    half = buffer.extract_tile((tl.load(which_ptr), 0), (N, N)).reshape([2, N // 2, N])
    tl.store(out_ptr + grid((N // 2, N), N), half.slot(0).load())
    tl.store(out_ptr + N // 2 * N + grid((N // 2, N), N), buffer.reshape([4, N // 2, N]).slot(3).load())


@pytest.mark.parametrize("layout", ["matrix units", "rows"])
def test_a_given_layout(device, layout):
    n, which = 32, 1
    units = tle.gpu.nv_mma_shared_layout.make_default([2 * n, n], tl.float32)
    layout = units if layout == "matrix units" else tle.gpu.swizzled_shared_layout(1, 1, 1, [1, 0])
    x = np.random.default_rng(9).random((2, n, n)).astype(np.float32)
    out = device.empty((2, n // 2, n), np.float32)
    by_matrix_units[(1,)](device.array(x), out, device.array(np.array([which], np.int32)), layout, n)
    np.testing.assert_array_equal(device.numpy(out), np.stack([x[which, : n // 2], x[1, n // 2 :]]))


@triton.jit
def carried(x_ptr, out_ptr, n, N: tl.constexpr):
    """Parts that a branch gives and a loop exchanges, one of them of columns."""
    buffer = tle.gpu.alloc([2 * N, 2 * N], dtype=tl.float32)
    buffer.store(tl.load(x_ptr + grid((2 * N, 2 * N), 2 * N)))
    one = buffer.subslice(0, N, dim=0)
    other = buffer.subslice(N - 4, N, dim=0)
    if n > 2:
        corner = one.subslice(N, N, dim=1)
    else:
        corner = other.subslice(0, N, dim=1)
    total = corner.load()
    for _ in range(n):
        total += one.subslice(0, N, dim=1).load()
        one, other = other, one
    tl.store(out_ptr + grid((N, N), N), total)


@pytest.mark.parametrize("n", [2, 3])
def test_parts_that_are_carried(device, n):
    m = 32
    x = np.random.default_rng(10).integers(0, 50, (2 * m, 2 * m)).astype(np.float32)
    out = device.empty((m, m), np.float32)
    carried[(1,)](device.array(x), out, n, m)
    one, other = x[:m], x[m - 4 : 2 * m - 4]
    want = one[:, m:] if n > 2 else other[:, :m]
    want = want + sum([one, other][i % 2][:, :m] for i in range(n))
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def product_of_part(a_ptr, b_ptr, out_ptr, which_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    a = tle.gpu.alloc([2 * M, K], dtype=tl.float16)
    a.store(tl.load(a_ptr + grid((2 * M, K), K)))
    b = tle.gpu.alloc([K, N], dtype=tl.float16)
    b.store(tl.load(b_ptr + grid((K, N), N)))
    if tl.load(which_ptr) > 0:
        part = a.subslice(M, M, dim=0)
    else:
        part = a.subslice(0, M, dim=0)
    acc = tle.gpu.wgmma_wait(0, tle.gpu.wgmma(part, b))
    tl.store(out_ptr + grid((M, N), N), acc)


@pytest.mark.parametrize("which", [0, 1])
def test_product_of_a_part_that_a_branch_gives(device, which):
    m, n, k = 64, 32, 64
    rng = np.random.default_rng(11)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((2, m, k), (k, n)))
    out = device.empty((m, n), np.float32)
    which_ptr = device.array(np.array([which], np.int32))
    product_of_part[(1,)](device.array(a), device.array(b), out, which_ptr, m, n, k)
    np.testing.assert_array_equal(device.numpy(out), a[which].astype(np.float32) @ b.astype(np.float32))


CLUSTER = tle.device_mesh({"block_cluster": 2})


@triton.jit
def chosen(out_ptr, which_ptr, mesh: tl.constexpr, N: tl.constexpr):
    """A branch that gives one buffer of two programs."""
    rank = tle.shard_id(mesh, "block_cluster")
    buffer = tle.gpu.alloc([N, N], dtype=tl.int32)
    buffer.store(grid((N, N), N) + 1000 * rank)
    tle.distributed_barrier(mesh)
    which = tl.load(which_ptr)
    if which > 0:
        there = tle.remote(buffer, 1, mesh)
    else:
        there = tle.remote(buffer, 0, mesh)
    tile = there.extract_tile((which, 0), (N // 2, N))
    value = tl.load(tle.gpu.local_ptr(tile, (1, tl.arange(0, N))))
    tl.store(out_ptr + rank * N + tl.arange(0, N), value)
    tle.distributed_barrier(mesh)


@pytest.mark.parametrize("which", [0, 1])
def test_whose_buffer_a_branch_gives(device, which):
    out = device.empty((2, 8), np.int32)
    chosen[(1,)](out, device.array(np.array([which], np.int32)), CLUSTER, 8)
    want = 1000 * which + (4 * which + 1) * 8 + np.arange(8)
    np.testing.assert_array_equal(device.numpy(out), np.stack([want, want]))


@triton.jit
def outside(x_ptr, i):
    buffer = tle.gpu.alloc([8, 8], dtype=tl.int32, init_value=tl.zeros([8, 8], tl.int32))
    tl.store(x_ptr + grid((4, 8), 8), buffer.extract_tile((i, 0), (4, 8)).load())


@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
@pytest.mark.parametrize("i", [2, -1])
def test_outside(monkeypatch, backend, i):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    with pytest.raises(triton.KernelError):
        outside[(1,)](np.zeros((4, 8), np.int32), i)


@triton.jit
def copied_outside(x_ptr, i):
    buffer = tle.gpu.alloc([8, 8], dtype=tl.int32, init_value=tl.zeros([8, 8], tl.int32))
    tle.gpu.copy(x_ptr + grid((4, 4), 8), buffer.extract_tile((0, i), (4, 4)), [4, 4], is_async=True)
    tle.gpu.async_commit_group()
    tle.gpu.async_wait_group(0)


@pytest.mark.parametrize("i", [2, -1])
def test_copies_outside(monkeypatch, i):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.KernelError, match=r"test_buffer_tiles\.py"):
        copied_outside[(1,)](np.zeros((4, 8), np.int32), i)


@triton.jit
def wrong(x_ptr, i, CASE: tl.constexpr):
    buffer = tle.gpu.alloc([8, 8], dtype=tl.int32)
    tile = buffer.extract_tile((0, i), (8, 4))
    if CASE == 0:
        buffer.extract_tile(4, (4, 4))
    elif CASE == 1:
        buffer.extract_tile(0, (3, 4))
    elif CASE == 2:
        buffer.insert_tile(tl.zeros([4, 4], tl.float32), 0)
    elif CASE == 3:
        tle.gpu.alloc([8], dtype=tl.int32, alias=tile)
    elif CASE == 4:
        part = tile.subslice(1, 2, dim=1)
        tle.gpu.copy(x_ptr + grid((8, 2), 8), part, [8, 2], is_async=True)
    elif CASE == 5:
        tle.pipe(capacity=4, x=buffer.extract_tile((i, 0), (4, 8)))
    elif CASE == 6:
        tile.reshape([32])


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (0, "the index of .*extract_tile is 4, but there are 4 tiles"),
        (1, "dimension 0 of the tensor, 8, is no multiple of the tile's, 3"),
        (2, "has elements of fp32, `x` of int32"),
        (3, "a part of a buffer can't have an alias: its elements do not lie side by side"),
        (
            4,
            "not supported yet: this with a part of a buffer that is chosen at run time, and that is no tile",
        ),
        (5, "not supported yet: a field of a pipe that is a tile"),
        (6, "a part of a buffer can't be reshaped: its elements do not lie side by side"),
    ],
)
def test_errors(case, message):
    with pytest.raises(triton.CompilationError, match=message) as error:
        wrong[(1,)](np.zeros((4, 8), np.int32), 2, case)
    assert "test_buffer_tiles.py" in str(error.value) and "^" in str(error.value)


@triton.jit
def slots_of_parts_kernel(out_ptr, k, COLUMN: tl.constexpr):
    rows, columns = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    buffer = tle.gpu.alloc([64, 64], dtype=tl.int32)
    buffer.store(rows * 64 + columns)
    part = buffer.subslice(32, 8, dim=0).subslice(COLUMN, 32, dim=1)
    part.slot(7).store(part.slot(k).load() + 10000)
    tl.store(out_ptr + rows * 64 + columns, buffer.load())


@pytest.mark.parametrize("column", [0, 32])
def test_a_part_counts_its_slots_from_where_it_begins(device, column):
    out = device.empty((64, 64), np.int32)
    slots_of_parts_kernel[(1,)](out, 3, column)
    want = np.arange(4096).reshape(64, 64)
    want[39, column : column + 32] = want[35, column : column + 32] + 10000
    np.testing.assert_array_equal(device.numpy(out), want)
