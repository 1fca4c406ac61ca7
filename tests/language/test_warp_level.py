"""Kernels that are written for one warp: ``@jit(warp_level=True)``."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
import tilewright.tle as tle

WARPS = [1, 2, 4, 8]


@triton.jit(warp_level=True)
def who(out_ptr):
    warps: tl.constexpr = tl.num_warps()
    at = tl.program_id(0) * warps + tl.warp_id()
    tl.store(out_ptr + at, 10 * tl.program_id(0) + tl.warp_id())


@pytest.mark.parametrize("num_warps", WARPS)
def test_each_warp_is_one_of_the_program(device, num_warps):
    out = device.empty((3, num_warps), np.int32)
    who[(3,)](out, num_warps=num_warps)
    np.testing.assert_array_equal(
        device.numpy(out), 10 * np.arange(3)[:, None] + np.arange(num_warps)[None, :]
    )


@triton.jit
def plain_helper(x, N: tl.constexpr):
    return tl.sum(x) * 2 + N


@triton.jit(noinline=True)
def called_helper(x):
    return tl.sort(x)


@triton.jit(warp_level=True)
def own_values(x_ptr, out_ptr, index_ptr, N: tl.constexpr, M: tl.constexpr):
    """What a warp does with its own block, by way of registers, shuffles and scratch memory."""
    warp = tl.program_id(0) * tl.num_warps() + tl.warp_id()
    at = tl.arange(0, N)
    x = tl.load(x_ptr + warp * N + at)
    out_ptr += warp * 6 * N
    tl.store(out_ptr + at, called_helper(x))
    tl.store(out_ptr + N + at, tl.cumsum(x))
    square = tl.reshape(x, (M, N // M))
    tl.store(out_ptr + 2 * N + tl.arange(0, N // M)[:, None] * M + tl.arange(0, M)[None, :], tl.trans(square))
    index = tl.load(index_ptr + at)
    tl.store(out_ptr + 3 * N + at, tl.gather(x, index, 0))
    rows = tl.sum(square, axis=1)
    tl.store(out_ptr + 4 * N + tl.arange(0, M), rows)
    tl.store(out_ptr + 4 * N + M, plain_helper(x, N))
    tl.store(out_ptr + 5 * N + tl.arange(0, 16), tl.histogram(x & 15, 16))


@pytest.mark.parametrize("n,m", [(64, 8), (256, 4), (96, 3)])
def test_a_warps_own_values(device, n, m):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 100, (2 * 4, n), dtype=np.int32)
    index = rng.permutation(n).astype(np.int32)
    sortable = n & (n - 1) == 0
    out = device.array(np.zeros((8, 6, n), np.int32))
    kernel = own_values if sortable else own_values_of_odd_extents
    kernel[(2,)](device.array(x), out, device.array(index), n, m, num_warps=4)
    found = device.numpy(out)
    if sortable:
        np.testing.assert_array_equal(found[:, 0], np.sort(x, axis=1))
    np.testing.assert_array_equal(found[:, 1], np.cumsum(x, axis=1))
    np.testing.assert_array_equal(found[:, 2], x.reshape(8, m, n // m).transpose(0, 2, 1).reshape(8, n))
    if sortable:
        np.testing.assert_array_equal(found[:, 3], x[:, index])
        np.testing.assert_array_equal(found[:, 5, :16], [np.bincount(row & 15, minlength=16) for row in x])
    np.testing.assert_array_equal(found[:, 4, :m], x.reshape(8, m, -1).sum(2))
    np.testing.assert_array_equal(found[:, 4, m], x.sum(1) * 2 + n)


@triton.jit(warp_level=True)
def own_values_of_odd_extents(x_ptr, out_ptr, index_ptr, N: tl.constexpr, M: tl.constexpr):
    warp = tl.program_id(0) * tl.num_warps() + tl.warp_id()
    at = tl.arange(0, N)
    x = tl.load(x_ptr + warp * N + at)
    out_ptr += warp * 6 * N
    tl.store(out_ptr + N + at, tl.cumsum(x))
    square = tl.reshape(x, (M, N // M))
    tl.store(out_ptr + 2 * N + tl.arange(0, N // M)[:, None] * M + tl.arange(0, M)[None, :], tl.trans(square))
    tl.store(out_ptr + 4 * N + tl.arange(0, M), tl.sum(square, axis=1))
    tl.store(out_ptr + 4 * N + M, plain_helper(x, N))


@triton.jit(warp_level=True)
def rotate(x_ptr, out_ptr, n, N: tl.constexpr):
    """Each warp hands its block on to the next one, n times."""
    warps: tl.constexpr = tl.num_warps()
    at = tl.warp_id() * N + tl.arange(0, N)
    blocks = tl.alloc((warps, N), tl.float32)
    x = tl.load(x_ptr + at)
    for _ in range(n):
        tl.store(blocks.slot(tl.warp_id()), x)
        tl.barrier()
        x = tl.load(blocks.slot((tl.warp_id() + 1) % warps))
        tl.barrier()
    tl.store(out_ptr + at, x)


@pytest.mark.parametrize("num_warps", WARPS)
def test_warps_hand_blocks_to_each_other(device, num_warps):
    x = np.arange(num_warps * 64, dtype=np.float32).reshape(num_warps, 64)
    out = device.empty(x.shape, np.float32)
    rotate[(1,)](device.array(x), out, 3, 64, num_warps=num_warps)
    np.testing.assert_array_equal(device.numpy(out), np.roll(x, -3, axis=0))


@triton.jit(warp_level=True)
def from_the_first(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """One warp loads, and all have it: as queries are in the paged attention of ML-Triton, listing 7."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.alloc(shape=(M, N), dtype=tl.float16)
    if tl.warp_id() == 0:
        tl.store(tile, tl.load(x_ptr + at))
    tl.barrier()
    x = tl.load(tile)
    some = tl.load(tle.gpu.local_ptr(tile, (tl.arange(0, M), tl.zeros((M,), tl.int32) + tl.warp_id())))
    tl.store(out_ptr + tl.warp_id() * M * N + at, x + some[:, None])


def test_one_warp_loads_for_all(device):
    x = np.arange(16 * 32).reshape(16, 32).astype(np.float16)
    out = device.empty((4, 16, 32), np.float16)
    from_the_first[(1,)](device.array(x), out, 16, 32, num_warps=4)
    np.testing.assert_array_equal(device.numpy(out), x[None] + x[:, :4].T[:, :, None])


@triton.jit
def maximum_and_sign(a, b):
    return tl.where(tl.abs(a) > tl.abs(b), a, b)


@triton.jit(warp_level=True)
def over_warps(x_ptr, out_ptr, N: tl.constexpr, DST: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + tl.warp_id() * N + at)
    out_ptr += tl.warp_id() * 5 * N
    tl.store(out_ptr + at, tl.sum(x, cross_warp=True, dst_warps=DST))
    tl.store(out_ptr + N + at, tl.max(x, cross_warp=True, dst_warps=DST))
    tl.store(out_ptr + 2 * N + at, x.min(cross_warp=True, dst_warps=DST))
    tl.store(out_ptr + 3 * N + at, tl.reduce(x, None, maximum_and_sign, cross_warp=True, dst_warps=DST))
    tl.store(out_ptr + 4 * N, tl.sum(x, axis=0, cross_warp=True, dst_warps=DST))


@pytest.mark.parametrize("num_warps,dst", [(4, None), (4, 0), (4, (1, 3)), (8, (0,)), (1, None), (2, 1)])
def test_reductions_over_warps(device, num_warps, dst):
    rng = np.random.default_rng(1)
    # Integers of no common magnitude, so that no order of additions shows.
    x = rng.permutation(num_warps * 64).reshape(num_warps, 64).astype(np.float32) - 100.25
    out = device.array(np.zeros((num_warps, 5, 64), np.float32))
    over_warps[(1,)](device.array(x), out, 64, dst, num_warps=num_warps)
    found = device.numpy(out)
    named = range(num_warps) if dst is None else (dst,) if isinstance(dst, int) else dst
    largest = x[np.argmax(np.abs(x), axis=0), np.arange(64)]
    for warp in range(num_warps):
        there = warp in named
        np.testing.assert_array_equal(found[warp, 0], x.sum(0) if there else x[warp])
        np.testing.assert_array_equal(found[warp, 1], x.max(0) if there else x[warp])
        np.testing.assert_array_equal(found[warp, 2], x.min(0) if there else x[warp])
        np.testing.assert_array_equal(found[warp, 3], largest if there else x[warp])
        assert found[warp, 4, 0] == (x.sum() if there else x[warp].sum())


@triton.jit(warp_level=True)
def products(a_ptr, b_ptr, c_ptr, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    """Warps share out the steps of K; their sums are added up in the first."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(tl.warp_id() * BLOCK, K, tl.num_warps() * BLOCK):
        inside = start + k < K
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :], mask=inside[None, :], other=0.0)
        b = tl.load(b_ptr + (start + k)[:, None] * N + n[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
    acc = tl.sum(acc, cross_warp=True, dst_warps=0)
    if tl.warp_id() == 0:
        tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize("shape,block,stages", [((16, 32), 32, 3), ((48, 16), 16, 2), ((32, 32), 64, 1)])
@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_products_within_warps(device, shape, block, stages, num_warps, dtype):
    m, n = shape
    k = 5 * 32 + 8
    rng = np.random.default_rng(2)
    a, b = rng.integers(-3, 4, (m, k)).astype(dtype), rng.integers(-3, 4, (k, n)).astype(dtype)
    c = device.empty((m, n), np.float32)
    products[(1,)](
        device.array(a), device.array(b), c, k, m, n, block, num_warps=num_warps, num_stages=stages
    )
    np.testing.assert_array_equal(device.numpy(c), a.astype(np.float64) @ b.astype(np.float64))


@triton.jit(warp_level=True)
def counting(x_ptr, out_ptr, n, N: tl.constexpr):
    """A loop whose count, and a branch whose way, is a warp's own; atomics on global and on shared memory."""
    counts = tl.alloc((16,), tl.int32)
    if tl.warp_id() == 0:
        tl.store(counts, tl.zeros((16,), tl.int32))
    tl.barrier()
    for i in range(tl.warp_id(), n, tl.num_warps()):
        x = tl.load(x_ptr + i * N + tl.arange(0, N))
        if tl.sum(x) % 2 == 0:
            tl.atomic_add(tle.gpu.local_ptr(counts, (x,)), 1, sem="relaxed")
        else:
            tl.atomic_add(out_ptr + 16, 1)
    tl.barrier()
    if tl.warp_id() == tl.num_warps() - 1:
        tl.store(out_ptr + tl.arange(0, 16), tl.load(counts))


def test_control_flow_and_atomics(device):
    x = np.random.default_rng(3).integers(0, 16, (11, 64), dtype=np.int32)
    out = device.array(np.zeros(17, np.int32))
    counting[(1,)](device.array(x), out, 11, 64, num_warps=4)
    even = x[x.sum(1) % 2 == 0]
    want = [*np.bincount(even.reshape(-1), minlength=16), len(x) - len(even)]
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def swapped(x_ptr, out_ptr, N: tl.constexpr):
    """Buffers and barriers of ``tl`` in a kernel for all warps together."""
    at = tl.arange(0, N)
    block = tl.alloc((N,), tl.int32)
    tl.store(block, tl.load(x_ptr + at))
    tl.barrier()
    tl.store(out_ptr + at, tl.load(tle.gpu.local_ptr(block, (N - 1 - at,))) + tl.num_warps())


def test_buffers_of_kernels_for_all_warps(device):
    x = np.arange(128, dtype=np.int32)
    out = device.empty(128, np.int32)
    swapped[(1,)](device.array(x), out, 128, num_warps=2)
    np.testing.assert_array_equal(device.numpy(out), x[::-1] + 2)


def test_layouts_are_those_of_one_warp():
    args = (np.float16, np.float16, np.float32, 168, 16, 32, 32)
    for target in ("cuda:80", "cuda:90"):
        kernel = products.warmup(*args, num_warps=4, grid=(1,), target=target)
        text = kernel.asm["ttgir"]
        assert "warpsPerCTA = [1, 1]" in text and "warpsPerCTA = [4" not in text and "wgmma" not in text
        assert kernel.metadata.total_num_warps == 4
        ptx = kernel.asm["ptx"]
        assert "mma.sync" in ptx and "bar.warp.sync" in ptx and ptx.count("bar.sync") == 2
