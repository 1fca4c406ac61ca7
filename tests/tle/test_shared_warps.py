"""`tle.gpu.warp_specialize(reuse_default_warps=True)`: functions that share out the kernel's own warps."""

import re

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def scaled(tile, out_ptr, factor, WHICH: tl.constexpr, N: tl.constexpr):
    """A tensor and a scalar from outside, and a reduction by the partition's own warps."""
    tl.store(out_ptr + WHICH * 2 * N + tl.arange(0, N), tile * factor)
    tl.store(out_ptr + WHICH * 2 * N + N + tl.arange(0, N), tl.cumsum(tile) + tl.sum(tile))


@triton.jit
def several(x_ptr, out_ptr, n, N: tl.constexpr, WARPS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    y = tl.load(x_ptr + N + tl.arange(0, N))
    tle.gpu.warp_specialize(
        [
            (scaled, (x, out_ptr, n, 0, N)),
            (scaled, (y, out_ptr, n + 1, 1, N)),
            (scaled, (x + y, out_ptr, 2, 2, N)),
        ],
        WARPS,
        reuse_default_warps=True,
    )
    # The kernel's warps, all together again.
    tl.store(out_ptr + 6 * N, tl.sum(x - y))


@pytest.mark.parametrize("warps", [(2, 1, 1), (1, 1, 2), (2, 4, 2), (8, 4, 4)])
def test_tensors_and_scratch(device, warps):
    n, num_warps = 96, sum(warps)
    x = np.random.default_rng(0).integers(-9, 9, (2, n)).astype(np.int32)
    out = device.array(np.zeros(6 * n + 1, np.int32))
    several[(1,)](device.array(x), out, 3, n, warps, num_warps=num_warps)
    tiles = [x[0], x[1], x[0] + x[1]]
    want = [
        w for tile, factor in zip(tiles, (3, 4, 2)) for w in (tile * factor, np.cumsum(tile) + tile.sum())
    ]
    np.testing.assert_array_equal(device.numpy(out), np.append(np.concatenate(want), x[0].sum() - x[1].sum()))


def test_no_warps_are_added():
    x = np.zeros((2, 96), np.int32)
    compiled = several.warmup(x, x, 3, 96, (2, 1, 1), num_warps=4, grid=(1,), target="cuda:90")
    assert compiled.metadata.total_num_warps == 4
    assert re.search(r"\.reqntid 128\b", compiled.asm["ptx"])
    # Each waits for its own warps alone, and a single warp for none.
    assert set(re.findall(r"bar\.sync\s+(\d+(?:, \d+)?);", compiled.asm["ptx"])) == {"0", "2, 64"}


@triton.jit
def count(x_ptr, bins, MINE: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + MINE * N + tl.arange(0, N))
    tl.atomic_add(tle.gpu.local_ptr(bins, (x,)), 1, sem="relaxed")


@triton.jit
def take(bins, ready, out_ptr, BINS: tl.constexpr):
    tle.gpu.barrier_wait(ready, phaseIdx=0)
    tl.store(out_ptr + tl.arange(0, BINS), bins.load())


@triton.jit
def count_and_tell(x_ptr, bins, ready, MINE: tl.constexpr, N: tl.constexpr):
    count(x_ptr, bins, MINE, N)
    tle.gpu.barrier_arrive(ready, phaseIdx=0)


@triton.jit
def counted(x_ptr, out_ptr, N: tl.constexpr, BINS: tl.constexpr):
    bins = tle.gpu.alloc([BINS], dtype=tl.int32, init_value=tl.zeros([BINS], tl.int32))
    ready = tle.gpu.alloc_barrier(arrive_count=2)
    tle.gpu.warp_specialize(
        [
            (count_and_tell, (x_ptr, bins, ready, 0, N)),
            (take, (bins, ready, out_ptr, BINS)),
            (count_and_tell, (x_ptr, bins, ready, 1, N)),
        ],
        [2, 1, 1],
        reuse_default_warps=True,
    )
    tl.store(out_ptr + BINS + tl.arange(0, BINS), bins.load() * 2)


def test_buffers_atomics_and_barriers(device):
    x = np.random.default_rng(0).integers(0, 16, (2, 128)).astype(np.int32)
    out = device.array(np.zeros(32, np.int32))
    counted[(1,)](device.array(x), out, 128, 16)
    bins = np.bincount(x.ravel(), minlength=16)
    np.testing.assert_array_equal(device.numpy(out), np.concatenate([bins, 2 * bins]))


@triton.jit
def nothing():
    pass


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b))


@triton.jit
def one_multiplies(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    tle.gpu.warp_specialize(
        [(nothing, ()), (product, (a_ptr, b_ptr, c_ptr, M, N, K)), (nothing, ())],
        [2, 4, 2],
        reuse_default_warps=True,
    )


def test_a_warp_group_begins_at_one(device):
    a, b = (
        np.random.default_rng(i).integers(-3, 4, s).astype(np.float16)
        for i, s in enumerate(((64, 32), (32, 64)))
    )
    c = device.array(np.zeros((64, 64), np.float32))
    one_multiplies[(1,)](device.array(a), device.array(b), c, 64, 64, 32, num_warps=8)
    np.testing.assert_array_equal(device.numpy(c), a.astype(np.float32) @ b.astype(np.float32))
    compiled = one_multiplies.warmup(a, b, a, 64, 64, 32, num_warps=8, grid=(1,), target="cuda:90")
    assert (
        "wgmma.mma_async" in compiled.asm["ptx"]
        and "warpGroupStartIds = array<i32: 4, 0, 6>" in compiled.asm["ttgir"]
    )


@triton.jit
def mark(out_ptr, at, value):
    tl.store(out_ptr + at, value)


@triton.jit
def both_kinds(out_ptr):
    tle.gpu.warp_specialize([(mark, (out_ptr, 0, 5)), (mark, (out_ptr, 1, 6))], [4], [24])
    tle.gpu.warp_specialize(
        [(mark, (out_ptr, 2, 7)), (mark, (out_ptr, 3, 8))], [2, 2], reuse_default_warps=True
    )
    tle.gpu.warp_specialize([(mark, (out_ptr, 4, 9)), (mark, (out_ptr, 5, 1))], [4], [24])


def test_beside_workers(device):
    out = device.array(np.zeros(6, np.int32))
    both_kinds[(1,)](out)
    np.testing.assert_array_equal(device.numpy(out), [5, 6, 7, 8, 9, 1])


@triton.jit
def gives():
    return 1


@triton.jit
def wrong(x_ptr, CASE: tl.constexpr):
    if CASE == 0:
        tle.gpu.warp_specialize([(nothing, ()), (nothing, ())], [2], reuse_default_warps=True)
    elif CASE == 1:
        tle.gpu.warp_specialize([(nothing, ()), (nothing, ())], [2, 4], reuse_default_warps=True)
    elif CASE == 2:
        tle.gpu.warp_specialize([(nothing, ()), (nothing, ())], [3, 1], reuse_default_warps=True)
    elif CASE == 3:
        tle.gpu.warp_specialize([(nothing, ()), (nothing, ())], [2, 2], [24, 24], reuse_default_warps=True)
    elif CASE == 4:
        tle.gpu.warp_specialize([(gives, ()), (nothing, ())], [2, 2], reuse_default_warps=True)


WRONG = [
    "with reuse_default_warps=True every entry is one",
    "entries of 6 warps in all, and the kernel has num_warps=4",
    "an entry of 3 warps",
    "has no `worker_num_regs`",
    "but a worker returns nothing",
]


@pytest.mark.parametrize(("case", "message"), list(enumerate(WRONG)))
def test_errors(case, message):
    with pytest.raises(triton.CompilationError, match=message) as error:
        wrong[(1,)](np.zeros(1, np.int32), case)
    assert "test_shared_warps.py" in str(error.value) and "^" in str(error.value)
