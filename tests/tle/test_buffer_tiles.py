"""`extract_tile` and `insert_tile` on buffers: views, by numbers known at compile time and at run time."""

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
def wrong(x_ptr, i, CASE: tl.constexpr):
    buffer = tle.gpu.alloc([8, 8], dtype=tl.int32)
    tile = buffer.extract_tile((i, 0), (4, 8))
    if CASE == 0:
        buffer.extract_tile(4, (4, 4))
    elif CASE == 1:
        buffer.extract_tile(0, (3, 4))
    elif CASE == 2:
        buffer.insert_tile(tl.zeros([4, 4], tl.float32), 0)
    elif CASE == 3:
        tle.gpu.alloc([8], dtype=tl.int32, alias=tile)
    elif CASE == 4:
        tle.gpu.copy(x_ptr + grid((4, 8), 8), tile, [4, 8], is_async=True)
    elif CASE == 5:
        tle.pipe(capacity=4, x=tile)
    elif CASE == 6:
        tile.reshape([32])


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (0, "the index of .*extract_tile is 4, but there are 4 tiles"),
        (1, "dimension 0 of the tensor, 8, is no multiple of the tile's, 3"),
        (2, "has elements of fp32, `x` of int32"),
        (3, "not supported yet: this with a tile of a buffer whose number is computed at run time"),
        (4, "not supported yet: this with a tile of a buffer"),
        (5, "not supported yet: this with a tile of a buffer"),
        (6, "not supported yet: this with a tile of a buffer"),
    ],
)
def test_errors(case, message):
    with pytest.raises(triton.CompilationError, match=message) as error:
        wrong[(1,)](np.zeros((4, 8), np.int32), 2, case)
    assert "test_buffer_tiles.py" in str(error.value) and "^" in str(error.value)
