"""`extract_tile` and `insert_tile`: tiles of tensors, by numbers known at compile time and at run time."""

from pathlib import Path

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def grid_of(ptr, shape: tl.constexpr):
    # Pointers of a row-major tensor.
    at = tl.zeros((1,) * len(shape), tl.int32)
    for d in tl.static_range(len(shape)):
        line = tl.reshape(tl.arange(0, shape[d]), [shape[d] if k == d else 1 for k in range(len(shape))])
        at = at * shape[d] + line
    return ptr + at


@triton.jit
def extract_kernel(x_ptr, out_ptr, SHAPE: tl.constexpr, TILE: tl.constexpr, INDEX: tl.constexpr):
    x = tl.load(grid_of(x_ptr, SHAPE))
    tl.store(grid_of(out_ptr, TILE), tle.extract_tile(x, INDEX, TILE))


@triton.jit
def extract_at_run_time(x_ptr, out_ptr, linear, SHAPE: tl.constexpr, TILE: tl.constexpr):
    x = tl.load(grid_of(x_ptr, SHAPE))
    tl.store(grid_of(out_ptr, TILE), x.extract_tile(linear, TILE))


@triton.jit
def concat_kernel(
    x_ptr, out_ptr, SHAPE: tl.constexpr, WHOLE: tl.constexpr, COUNT: tl.constexpr, DIM: tl.constexpr
):
    x = tl.load(grid_of(x_ptr, SHAPE))
    pieces = [x + 100 * k for k in tl.static_range(COUNT)]
    tl.store(grid_of(out_ptr, WHOLE), tle.concat_dot_fragments(pieces, dim=DIM))


@pytest.mark.parametrize(
    ("shape", "count", "dim"), [((16, 16), 2, 1), ((16, 32), 4, 0), ((8,), 3, 0), ((4, 6, 8), 2, -2)]
)
def test_concatenated_fragments(device, shape, count, dim):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    want = np.concatenate([x + 100 * k for k in range(count)], axis=dim)
    out = device.empty(want.shape, np.float32)
    concat_kernel[(1,)](device.array(x), out, shape, want.shape, count, dim)
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def fragments_of_a_product(a_ptr, b_ptr, out_ptr):
    rows, half, k = tl.arange(0, 32)[:, None], tl.arange(0, 32)[None, :], tl.arange(0, 64)
    left = tl.load(a_ptr + rows * 64 + half)
    right = tl.load(a_ptr + rows * 64 + 32 + half)
    b = tl.load(b_ptr + k[:, None] * 32 + half)
    tl.store(out_ptr + rows * 32 + half, tl.dot(tle.concat_dot_fragments((left, right), 1), b))


def test_concatenated_operand(device):
    a = (np.arange(32 * 64) % 7 - 3).reshape(32, 64).astype(np.float16)
    b = (np.arange(64 * 32) % 5 - 2).reshape(64, 32).astype(np.float16)
    out = device.empty((32, 32), np.float32)
    fragments_of_a_product[(1,)](device.array(a), device.array(b), out)
    np.testing.assert_array_equal(device.numpy(out), a.astype(np.float32) @ b.astype(np.float32))


@triton.jit
def insert_kernel(x_ptr, tile_ptr, out_ptr, SHAPE: tl.constexpr, TILE: tl.constexpr, INDEX: tl.constexpr):
    x, tile = tl.load(grid_of(x_ptr, SHAPE)), tl.load(grid_of(tile_ptr, TILE))
    tl.store(grid_of(out_ptr, SHAPE), tle.insert_tile(x, tile, INDEX))


@triton.jit
def insert_at_run_time(x_ptr, tile_ptr, out_ptr, linear, SHAPE: tl.constexpr, TILE: tl.constexpr):
    x, tile = tl.load(grid_of(x_ptr, SHAPE)), tl.load(grid_of(tile_ptr, TILE))
    tl.store(grid_of(out_ptr, SHAPE), x.insert_tile(tile, linear))


CASES = [
    ((64,), (16,)),
    ((96,), (32,)),
    ((60,), (5,)),
    ((32, 64), (8, 16)),
    ((48, 80), (12, 20)),
    ((128, 64), (64, 64)),
    ((4, 4), (2, 2)),
    ((6, 8, 20), (3, 2, 10)),
    ((16, 16), (16, 16)),
]


def slices_of(shape, tile, coordinates):
    return tuple(slice(c * t, (c + 1) * t) for c, t in zip(coordinates, tile))


def some_tiles(shape, tile):
    """The linear numbers of the first, the last and one in the middle."""
    counts = tuple(n // t for n, t in zip(shape, tile))
    total = int(np.prod(counts))
    return counts, sorted({0, total // 2, total - 1})


@pytest.mark.parametrize(("shape", "tile"), CASES)
def test_extract(device, shape, tile):
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    given = device.array(x)
    counts, numbers = some_tiles(shape, tile)
    for number in numbers:
        coordinates = tuple(int(c) for c in np.unravel_index(number, counts))
        want = x[slices_of(shape, tile, coordinates)]
        for index in (number, coordinates):
            out = device.empty(tile, np.float32)
            extract_kernel[(1,)](given, out, shape, tile, index)
            np.testing.assert_array_equal(device.numpy(out), want)
        out = device.empty(tile, np.float32)
        extract_at_run_time[(1,)](given, out, number, shape, tile)
        np.testing.assert_array_equal(device.numpy(out), want)


@pytest.mark.parametrize(("shape", "tile"), CASES)
def test_insert(device, shape, tile):
    random = np.random.default_rng(2)
    x, new = random.standard_normal(shape).astype(np.float32), random.standard_normal(tile).astype(np.float32)
    given = device.array(x), device.array(new)
    counts, numbers = some_tiles(shape, tile)
    for number in numbers:
        coordinates = tuple(int(c) for c in np.unravel_index(number, counts))
        want = x.copy()
        want[slices_of(shape, tile, coordinates)] = new
        for index in (number, coordinates):
            out = device.empty(shape, np.float32)
            insert_kernel[(1,)](*given, out, shape, tile, index)
            np.testing.assert_array_equal(device.numpy(out), want)
        out = device.empty(shape, np.float32)
        insert_at_run_time[(1,)](*given, out, number, shape, tile)
        np.testing.assert_array_equal(device.numpy(out), want)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.int64])
def test_dtypes(device, dtype):
    x = np.random.default_rng(3).integers(-100, 100, (32, 48)).astype(dtype)
    tile = device.empty((8, 12), dtype)
    extract_at_run_time[(1,)](device.array(x), tile, 6, x.shape, (8, 12))
    np.testing.assert_array_equal(device.numpy(tile), x[8:16, 24:36])
    out = device.empty(x.shape, dtype)
    insert_at_run_time[(1,)](device.array(x), tile, out, 1, x.shape, (8, 12))
    want = x.copy()
    want[:8, 12:24] = x[8:16, 24:36]
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def every_spelling(x_ptr, out_ptr, row, wide):
    x = tl.load(grid_of(x_ptr, (16, 32)))
    column = wide + 1
    tile = x.extract_tile(index=[1, column], shape=[4, 8])
    tile += tle.extract_tile(x, (row, 2), tile_shape=(4, 8))
    tile += tle.extract_tile(x, index=row * 4 + 2, shape=(4, 8))
    tile += x.extract_tile((row, column), (4, 8))
    above = tile > 0
    kept = (x > 1e9).insert_tile(above, (row, 0))
    x = x.insert_tile(tile, index=[2, column])
    x = tle.insert_tile(x, tile=tile, index=(row, 3))
    tl.store(grid_of(out_ptr, (16, 32)), tl.where(kept, -x, x))


def test_every_spelling(device):
    x = np.random.default_rng(4).integers(-100, 100, (16, 32)).astype(np.float32)
    out = device.empty(x.shape, np.float32)
    every_spelling[(1,)](device.array(x), out, 3, 1)
    at = lambda i, j: x[4 * i : 4 * i + 4, 8 * j : 8 * j + 8]
    tile = at(1, 2) + 3 * at(3, 2)
    want = x.copy()
    want[8:12, 16:24] = tile
    want[12:16, 24:32] = tile
    want[12:16, 0:8] = np.where(tile > 0, -want[12:16, 0:8], want[12:16, 0:8])
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def swap_kernel(x_ptr, out_ptr, n):
    x = tl.load(grid_of(x_ptr, (8, 64)))
    for i in range(n):
        first, second = x.extract_tile((0, i), (8, 16)), x.extract_tile((0, 3 - i), (8, 16))
        x = x.insert_tile(first * 2, (0, 3 - i)).insert_tile(second, (0, i))
    tl.store(grid_of(out_ptr, (8, 64)), x)


def test_in_a_loop(device):
    x = np.random.default_rng(5).standard_normal((8, 64)).astype(np.float32)
    out = device.empty(x.shape, np.float32)
    swap_kernel[(1,)](device.array(x), out, 2)
    columns = [x[:, 16 * i : 16 * i + 16] for i in range(4)]
    want = np.hstack([columns[3], columns[2], 2 * columns[1], 2 * columns[0]])
    np.testing.assert_array_equal(device.numpy(out), want)


@pytest.mark.parametrize(("shape", "tile"), [((32, 64), (8, 16)), ((128, 64), (64, 64)), ((96,), (32,))])
def test_in_a_cluster(device, shape, tile):
    x = np.random.default_rng(6).standard_normal(shape).astype(np.float32)
    part, out = device.empty(tile, np.float32), device.empty(shape, np.float32)
    extract_at_run_time[(1,)](device.array(x), part, 0, shape, tile, num_ctas=2)
    np.testing.assert_array_equal(device.numpy(part), x[slices_of(shape, tile, [0] * len(shape))])
    counts = tuple(n // t for n, t in zip(shape, tile))
    insert_kernel[(1,)](device.array(x), part, out, shape, tile, int(np.prod(counts)) - 1, num_ctas=2)
    want = x.copy()
    want[slices_of(shape, tile, [n - 1 for n in counts])] = device.numpy(part)
    np.testing.assert_array_equal(device.numpy(out), want)


def test_whole_cta_tiles_stay_in_registers(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    x = np.zeros((128, 64), np.float32)
    compiled = extract_kernel[(1,)](x, np.zeros((64, 64), np.float32), x.shape, (64, 64), 1)
    assert compiled.metadata.shared == 0 and "bar.sync" not in compiled.asm["ptx"]
    assert "shfl" not in compiled.asm["ptx"]
    compiled = insert_kernel[(1,)](x, np.zeros((64, 64), np.float32), x.copy(), x.shape, (64, 64), (1, 0))
    assert compiled.metadata.shared == 0 and "bar.sync" not in compiled.asm["ptx"]
    compiled = extract_at_run_time[(1,)](x, np.zeros((64, 64), np.float32), 0, x.shape, (64, 64))
    assert compiled.metadata.shared > 0


def line_of(text):
    lines = Path(__file__).read_text().splitlines()
    return 1 + next(i for i, line in enumerate(lines) if text in line)


@pytest.mark.parametrize("number", [-1, 16, 2**31 - 1])
@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
def test_an_index_out_of_range_at_run_time(backend, number, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    message = "is outside the 4 tiles along dimension" if backend == "interp" else "outside of 0 to 3"
    x = np.zeros((32, 64), np.float32)
    with pytest.raises(triton.KernelError, match=message) as caught:
        extract_at_run_time[(1,)](x, np.zeros((8, 16), np.float32), number, x.shape, (8, 16))
    assert f"test_tiles.py:{line_of('x.extract_tile(linear, TILE)')}:" in str(caught.value)
    with pytest.raises(triton.KernelError, match=message) as caught:
        insert_at_run_time[(1,)](x, np.zeros((8, 16), np.float32), x.copy(), number, x.shape, (8, 16))
    assert f"test_tiles.py:{line_of('x.insert_tile(tile, linear)')}:" in str(caught.value)


@triton.jit
def wrong_kernel(x_ptr, n, CASE: tl.constexpr):
    x = tl.load(grid_of(x_ptr, (8, 16)))
    tile = tl.zeros((4, 4), tl.float32)
    if CASE == 0:
        tle.extract_tile(n, 0, (4, 4))
    elif CASE == 1:
        x.extract_tile(0, (4,))
    elif CASE == 2:
        x.extract_tile(0, (4, 5))
    elif CASE == 3:
        x.extract_tile(0, (4, 0))
    elif CASE == 4:
        x.extract_tile(8, (4, 4))
    elif CASE == 5:
        x.extract_tile(-1, (4, 4))
    elif CASE == 6:
        x.extract_tile((0, 0, 0), (4, 4))
    elif CASE == 7:
        x.extract_tile((2, 0), (4, 4))
    elif CASE == 8:
        x.extract_tile((0, 1.5), (4, 4))
    elif CASE == 9:
        x.extract_tile(tl.arange(0, 2), (4, 4))
    elif CASE == 10:
        x.extract_tile(0, (n, 4))
    elif CASE == 11:
        x.insert_tile(1.0, 0)
    elif CASE == 12:
        x.insert_tile(tile.to(tl.float16), 0)
    elif CASE == 13:
        x.insert_tile(tl.zeros((4,), tl.float32), 0)
    elif CASE == 14:
        x.insert_tile(tile, (n, -1))
    elif CASE == 15:
        x.extract_tile(True, (4, 4))


@pytest.mark.parametrize(
    ("case", "message"),
    list(
        enumerate(
            [
                "`x` of tle.extract_tile must be a tensor with a shape, not int32",
                "a tile of shape [4] has 1 dimensions, the tensor of shape [8, 16] has 2",
                "dimension 1 of the tensor, 16, is no multiple of the tile's, 5",
                "positive integers are",
                "the index of tle.extract_tile is 8, but there are 8 tiles",
                "the index of tle.extract_tile is -1",
                "the index of tle.extract_tile has 3 elements, the tensor 2 dimensions",
                "index[0] of tle.extract_tile is 2, but there are 2 tiles along dimension 0",
                "`index` of tle.extract_tile must be an integer, a scalar tensor of integers",
                "`index` of tle.extract_tile must be an integer, a scalar tensor of integers",
                "must be known at compile time",
                "`tile` of tle.insert_tile must be a tensor with a shape, not constexpr 1.0",
                "has elements of fp16, `x` of fp32",
                "a tile of shape [4] has 1 dimensions",
                "index[1] of tle.insert_tile is -1",
                "`index` of tle.extract_tile must be an integer, a scalar tensor of integers",
            ]
        )
    ),
)
def test_errors(case, message, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.CompilationError) as caught:
        wrong_kernel[(1,)](np.zeros((8, 16), np.float32), 2, case)
    assert message in str(caught.value) and "^" in str(caught.value)
