"""Loops with ``warp_specialize=True``: a result is what it is without, whether a warp of its own loads or not."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.tools.tensor_descriptor import TensorDescriptor


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """Targets without TMA ignore the hint."""
    monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:90")


@triton.jit
def product_kernel(a, b, c_ptr, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=True):
        acc = tl.dot(a.load([i, k]), b.load([k, j]), acc)
    rows, columns = i + tl.arange(0, BM), j + tl.arange(0, BN)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc)


def product(device, m, n, k, block, **options):
    rng = np.random.default_rng(k)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, max(k, 8)), (max(k, 8), n)))
    c = device.empty((m, n), np.float32)
    bm, bn, bk = block
    descs = [
        TensorDescriptor.from_tensor(device.array(x), list(size))
        for x, size in ((a, (bm, bk)), (b, (bk, bn)))
    ]
    product_kernel[(m // bm, n // bn)](*descs, c, k, n, BM=bm, BN=bn, BK=bk, **options)
    want = a[:, :k].astype(np.float64) @ b[:k].astype(np.float64)
    np.testing.assert_allclose(device.numpy(c), want, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("num_stages", [1, 2, 4])
@pytest.mark.parametrize("k", [0, 32, 64, 224])
def test_steps(device, k, num_stages):
    """No iteration, one, and more than there are slots."""
    product(device, 64, 64, k, (64, 32, 32), num_warps=4, num_stages=num_stages)


@pytest.mark.parametrize(
    "block,num_warps",
    [((64, 96, 32), 4), ((128, 64, 64), 8), ((128, 64, 16), 4), ((32, 32, 32), 2), ((16, 64, 32), 1)],
)
def test_tiles(device, block, num_warps):
    """One and two warp groups, N that is no power of two, tiles below a warp group's."""
    product(device, 128, 192, 128, block, num_warps=num_warps)


@triton.jit
def persistent_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    across = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0), warp_specialize=True):
        row, column = tile // across * BM, tile % across * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a.load([row, k]), b.load([column, k]).T, acc)
        c.store([row, column], acc.to(tl.float16))


@pytest.mark.parametrize("programs", [1, 3, 8])
@pytest.mark.parametrize("k,num_stages", [(32, 3), (96, 2), (160, 4)])
def test_persistent(device, programs, k, num_stages):
    """The producer runs on into the next tile: slots and phases go on from one to the next. Descriptors of the kernel."""
    m, n = 128, 96
    rng = np.random.default_rng(programs)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n, k)))
    c = device.empty((m, n), np.float16)
    persistent_kernel[(programs,)](
        device.array(a), device.array(b), c, m, n, k, BM=64, BN=32, BK=32, num_warps=4, num_stages=num_stages
    )  # fmt: skip
    want = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(device.numpy(c), want, rtol=1e-2, atol=2e-2)


@triton.jit
def attend(acc, total, top, q, k, v, lo, hi, rows, BN: tl.constexpr, CAUSAL: tl.constexpr):
    columns = tl.arange(0, BN)
    for start in tl.range(lo, hi, BN, warp_specialize=True):
        s = tl.dot(q, k.load([start, 0]).T)
        if CAUSAL:
            s = tl.where(rows[:, None] >= start + columns[None, :], s, -1.0e6)
        now = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - now[:, None])
        scale = tl.exp2(top - now)
        total = total * scale + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), v.load([start, 0]), acc * scale[:, None])
        top = now
    return acc, total, top


@triton.jit
def attention_kernel(
    q, k, v, o, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr
):
    first = tl.program_id(0) * BM
    rows = first + tl.arange(0, BM)
    x = q.load([first, 0])
    acc = tl.zeros((BM, D), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    top = tl.full((BM,), -float("inf"), tl.float32)
    if CAUSAL:
        acc, total, top = attend(acc, total, top, x, k, v, 0, first, rows, BN, False)
        acc, total, top = attend(acc, total, top, x, k, v, first, first + BM, rows, BN, True)
    else:
        acc, total, top = attend(acc, total, top, x, k, v, 0, n, rows, BN, False)
    o.store([first, 0], (acc / total[:, None]).to(tl.float16))


@pytest.mark.parametrize("block,num_warps", [((64, 32), 4), ((128, 32), 8), ((256, 32), 16), ((32, 32), 2)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("num_stages,d", [(2, 64), (3, 64), (2, 128), (3, 128)])
def test_attention(device, block, num_warps, causal, num_stages, d):
    """Two channels in a loop; two loops, the first of which may run no iteration, that share them."""
    n = 256
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((n, d)).astype(np.float16) * np.float16(0.5) for _ in range(3))
    o = device.empty((n, d), np.float16)
    bm, bn = block
    descs = [
        TensorDescriptor.from_tensor(x, [size, d])
        for x, size in ((device.array(q), bm), (device.array(k), bn), (device.array(v), bn), (o, bm))
    ]
    attention_kernel[(n // bm,)](
        *descs, n, D=d, BM=bm, BN=bn, CAUSAL=causal, num_warps=num_warps, num_stages=num_stages
    )
    s = q.astype(np.float64) @ k.astype(np.float64).T
    if causal:
        s = np.where(np.tril(np.ones((n, n), bool)), s, -np.inf)
    p = np.exp2(s - s.max(1, keepdims=True))
    np.testing.assert_allclose(
        device.numpy(o), (p / p.sum(1, keepdims=True)) @ v.astype(np.float64), rtol=1e-2, atol=1e-2
    )


@triton.jit
def sums_kernel(x, y, out, tiles, BM: tl.constexpr, BN: tl.constexpr):
    total = tl.zeros((BM,), tl.float32)
    most = tl.zeros((BM,), tl.float32)
    for i in tl.range(tiles, warp_specialize=True):
        block = x.load([0, i * BN]).to(tl.float32)
        total += tl.sum(block * y.load([0, i * BN]).to(tl.float32), 1)
        most = tl.maximum(most, tl.max(block, 1))
    at = tl.arange(0, BM)
    tl.store(out + at, total)
    tl.store(out + BM + at, most)


def test_without_dots(device):
    """Blocks that come to registers, one of them read twice."""
    rng = np.random.default_rng(4)
    x, y = (rng.standard_normal((32, 160)).astype(np.float16) for _ in range(2))
    out = device.empty((2, 32), np.float32)
    descs = [TensorDescriptor.from_tensor(device.array(v), [32, 32]) for v in (x, y)]
    sums_kernel[(1,)](*descs, out, 5, BM=32, BN=32, num_warps=4)
    want = np.stack([(x.astype(np.float64) * y).sum(1), np.maximum(x.max(1), 0)])
    np.testing.assert_allclose(device.numpy(out), want, rtol=1e-3, atol=1e-2)


@triton.jit
def indexed_kernel(x, index, out, count, BN: tl.constexpr, WRITES: tl.constexpr):
    acc = tl.zeros((16, BN), tl.float32)
    for i in tl.range(count, warp_specialize=True):
        row = tl.load(index + i)
        acc += x.load([row * 16, 0]).to(tl.float32)
        if WRITES:
            tl.store(index + i, row + 1)
    rows, columns = tl.arange(0, 16), tl.arange(0, BN)
    tl.store(out + rows[:, None] * BN + columns[None, :], acc)


@pytest.mark.parametrize("writes", [False, True])
def test_indices_from_memory(device, writes):
    """The producer loads the indices, unless the loop writes them as well."""
    x = np.random.default_rng(5).standard_normal((96, 32)).astype(np.float16)
    index = np.array([3, 0, 5, 1, 3], np.int32)
    at, out = device.array(index.copy()), device.empty((16, 32), np.float32)
    given = TensorDescriptor.from_tensor(device.array(x), [16, 32])
    indexed_kernel[(1,)](given, at, out, len(index), BN=32, WRITES=writes, num_warps=4)
    want = sum(x[16 * i : 16 * i + 16].astype(np.float64) for i in index)
    np.testing.assert_allclose(device.numpy(out), want, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(device.numpy(at), index + writes)


@triton.jit
def following_kernel(x, out, steps, BN: tl.constexpr):
    row = 0
    acc = tl.zeros((16, BN), tl.float32)
    for _ in tl.range(steps, warp_specialize=True):
        block = x.load([row * 16, 0]).to(tl.float32)
        row = tl.max(block).to(tl.int32)
        acc += block
    rows, columns = tl.arange(0, 16), tl.arange(0, BN)
    tl.store(out + rows[:, None] * BN + columns[None, :], acc)


def test_blocks_that_name_the_next(device):
    """Where a load goes depends on what the one before brought: one warp can't run ahead."""
    order = [0, 2, 3, 1]
    x = np.zeros((64, 32), np.float16)
    for i, row in enumerate(order):
        x[16 * row : 16 * row + 16] = np.random.default_rng(i).uniform(0, 0.5, (16, 32))
        x[16 * row + 7, 11] = order[(i + 1) % 4] + 0.5
    out = device.empty((16, 32), np.float32)
    following_kernel[(1,)](
        TensorDescriptor.from_tensor(device.array(x), [16, 32]), out, 3, BN=32, num_warps=4
    )
    want = sum(x[16 * row : 16 * row + 16].astype(np.float64) for row in order[:3])
    np.testing.assert_allclose(device.numpy(out), want, rtol=1e-3, atol=1e-3)


@triton.jit
def pointers_kernel(x, y, n, BLOCK: tl.constexpr):
    for start in tl.range(0, n, BLOCK, warp_specialize=True):
        at = start + tl.arange(0, BLOCK)
        tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def test_without_products(device):
    """Loads through pointers that no product needs stay with the warps that compute: the hint says nothing."""
    x = np.arange(300, dtype=np.float32)
    y = device.empty(300, np.float32)
    pointers_kernel[(1,)](device.array(x), y, 300, BLOCK=128, num_warps=4)
    np.testing.assert_array_equal(device.numpy(y), 2 * x)


@triton.jit
def pointer_product_kernel(
    a, b, c, M, N, K, stride, tiles, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TILES: tl.constexpr
):  # fmt: skip
    across = tl.cdiv(N, BN)
    inner = tl.arange(0, BK)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), warp_specialize=TILES):
        rows, columns = tile // across * BM + tl.arange(0, BM), tile % across * BN + tl.arange(0, BN)
        a_ptrs = a + rows[:, None] * stride + inner[None, :]
        b_ptrs = b + inner[:, None] * N + columns[None, :]
        acc = tl.zeros((BM, BN), tl.float32)
        for k in tl.range(0, K, BK, warp_specialize=not TILES):
            x = tl.load(a_ptrs, mask=inner[None, :] < K - k, other=0.0)
            acc = tl.dot(x, tl.load(b_ptrs, mask=inner[:, None] < K - k, other=0.0), acc)
            a_ptrs += BK
            b_ptrs += BK * N
        tl.store(c + rows[:, None] * N + columns[None, :], acc)


@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("block,num_warps", [((64, 48, 32), 4), ((128, 64, 32), 8), ((64, 32, 32), 16)])
def test_pointers(device, block, num_warps, tiles):
    """Operands through pointers: a warp group copies them, along K and on into the next tile; the last step is partial."""
    m, n, k = 256, 96 if block[1] == 48 else 128, 104
    rng = np.random.default_rng(num_warps)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = device.empty((m, n), np.float32)
    bm, bn, bk = block
    count = triton.cdiv(m, bm) * triton.cdiv(n, bn)
    args = device.array(a), device.array(b), c, m, n, k, k, count
    pointer_product_kernel[(2 if tiles else count,)](
        *args, BM=bm, BN=bn, BK=bk, TILES=tiles, num_warps=num_warps
    )
    np.testing.assert_allclose(
        device.numpy(c), a.astype(np.float64) @ b.astype(np.float64), rtol=1e-2, atol=1e-2
    )


@triton.jit
def sometimes_kernel(x, y, tiles, BN: tl.constexpr):
    for i in tl.range(tiles, warp_specialize=True):
        first = x.load([0, i * BN])
        if i % 2 == 1:
            y.store([0, i * BN], first + x.load([16, i * BN]))
        else:
            y.store([0, i * BN], first)


def test_loads_in_branches(device):
    """A load in a branch stays with the warps that compute; what is stored leaves from there too."""
    x = np.random.default_rng(6).standard_normal((32, 160)).astype(np.float16)
    y = device.empty((16, 160), np.float16)
    descs = [TensorDescriptor.from_tensor(v, [16, 32]) for v in (device.array(x), y)]
    sometimes_kernel[(1,)](*descs, 5, BN=32, num_warps=4)
    odd = (np.arange(160) // 32 % 2 == 1).astype(np.float16)
    np.testing.assert_allclose(device.numpy(y), x[:16] + odd * x[16:], rtol=1e-3)


@triton.jit
def added(acc, x, n):
    for i in tl.range(n, warp_specialize=True):
        acc += x.load([i * 16, 0]).to(tl.float32)
    return acc


@triton.jit
def branches_kernel(x, y, out, n, how, BN: tl.constexpr):
    acc = tl.zeros((16, BN), tl.float32)
    if how > 0:
        acc = added(acc, x, n)
    else:
        acc = added(acc, y, n - 1)
    if how > 1:
        acc = added(acc * 2, x, n - 2)
    rows, columns = tl.arange(0, 16), tl.arange(0, BN)
    tl.store(out + rows[:, None] * BN + columns[None, :], acc)


@triton.jit
def rounds_kernel(x, y, out, n, how, BN: tl.constexpr):
    acc = tl.zeros((16, BN), tl.float32)
    for turn in range(how):
        if turn % 2 == 1:
            acc = added(acc * 2, x, n)
        acc += 1
        if turn > 2:
            acc = added(acc, y, turn)
    rows, columns = tl.arange(0, 16), tl.arange(0, BN)
    tl.store(out + rows[:, None] * BN + columns[None, :], acc)


@pytest.mark.parametrize("kernel", [branches_kernel, rounds_kernel])
def test_branches_around_loops(device, kernel):
    """Slots and phases go on where a loop was left out; both sides take the same branch."""
    x, y = (np.random.default_rng(i).integers(-4, 5, (80, 32)).astype(np.float16) for i in (1, 2))
    a, b = (v.reshape(5, 16, 32).astype(np.float64).cumsum(0) for v in (x, y))
    descs = [TensorDescriptor.from_tensor(device.array(v), [16, 32]) for v in (x, y)]
    for how in (0, 1, 2, 5):
        out = device.empty((16, 32), np.float32)
        kernel[(1,)](*descs, out, 5, how, BN=32, num_warps=4)
        if kernel is branches_kernel:
            want = [b[3], a[4], a[4] * 2 + a[2]][min(how, 2)]
        else:
            want = np.zeros((16, 32))
            for turn in range(how):
                want = (want * 2 + a[4] if turn % 2 else want) + 1
                want = want + b[turn - 1] if turn > 2 else want
        np.testing.assert_array_equal(device.numpy(out), want)
    compiled = kernel.warmup(*descs, out, 5, 2, BN=32, num_warps=4, grid=(1,), target="cuda:90")
    assert "ttg.warp_specialize" in compiled.asm["ttgir"]


@pytest.mark.parametrize("num_warps", [4, 8])
def test_who_loads(num_warps):
    """Where it applies, a CTA has a warp more, and a whole warp group, which gives up registers, if these are scarce."""
    desc = TensorDescriptor.from_tensor(np.empty((128, 64), np.float16), [128, 32])
    other = TensorDescriptor.from_tensor(np.empty((64, 64), np.float16), [32, 64])
    out = np.empty((128, 64), np.float32)
    kernel = product_kernel.warmup(
        desc, other, out, 64, 64, BM=128, BN=64, BK=32, num_warps=num_warps, grid=(1,)
    )
    assert kernel.metadata.total_num_warps == num_warps + (4 if num_warps == 8 else 1)
    assert "ttg.warp_specialize" in kernel.asm["ttgir"]
    assert ("setmaxnreg.dec" in kernel.asm["ptx"]) == (num_warps == 8)
    pointers = pointers_kernel.warmup(out, out, 300, BLOCK=128, num_warps=num_warps, grid=(1,))
    assert "ttg.warp_specialize" not in pointers.asm["ttgir"]


@pytest.mark.parametrize("columns,specialized", [(64, True), (160, False)])
def test_registers_of_many_warps(columns, specialized):
    """With 16 warps a producer would take registers that a large accumulator needs."""
    a = TensorDescriptor.from_tensor(np.empty((512, 64), np.float16), [256, 64])
    b = TensorDescriptor.from_tensor(np.empty((64, 320), np.float16), [64, columns])
    kernel = product_kernel.warmup(
        a, b, np.empty((512, 320), np.float32), 64, 320, BM=256, BN=columns, BK=64, num_warps=16, grid=(1,)
    )
    assert kernel.metadata.total_num_warps == (20 if specialized else 16)


@pytest.mark.parametrize("num_warps", [4, 8, 16])
def test_who_copies(num_warps):
    """What goes through pointers takes four warps, to each of which a part of every tile belongs."""
    half, out = np.empty((256, 256), np.float16), np.empty((256, 256), np.float32)
    for tiles in (False, True):
        kernel = pointer_product_kernel.warmup(
            half, half, out, 256, 256, 256, 256, 4, BM=128, BN=64, BK=32, TILES=tiles, num_warps=num_warps, raise_pointers=False,
            grid=(1,),
        )  # fmt: skip
        text = kernel.asm["ttgir"]
        assert "num_warps(4)" in text[text.index("partition0") :], text
        inside = text[text.index("partition0") :].count("ttg.async_copy_global_to_local")
        assert inside == 2 == text.count("ttg.async_copy_global_to_local")
        assert kernel.metadata.total_num_warps == num_warps + 4


@triton.jit
def outlets_kernel(x, y, z, count, BN: tl.constexpr):
    for i in tl.range(tl.program_id(0), count, tl.num_programs(0), warp_specialize=True):
        v = x.load([0, i * BN])
        y.store([0, i * BN], v + v)
        z.store([0, i * BN], v * v)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("num_warps,programs", [(1, 1), (4, 2), (8, 1)])
def test_stores(device, num_warps, programs, dtype):
    """Two stores of an iteration leave through buffers of their own, which a warp empties while the next tile is computed."""
    x = np.random.default_rng(7).standard_normal((32, 224)).astype(dtype)
    y, z = (device.empty((32, 224), dtype) for _ in range(2))
    descs = [TensorDescriptor.from_tensor(v, [32, 32]) for v in (device.array(x), y, z)]
    outlets_kernel[(programs,)](*descs, 7, BN=32, num_warps=num_warps)
    np.testing.assert_array_equal(device.numpy(y), x + x)
    np.testing.assert_array_equal(device.numpy(z), x * x)


def test_who_stores():
    """Buffers that find room leave through a warp of their own; else the warps that compute store."""
    x = TensorDescriptor.from_tensor(np.empty((32, 224), np.float16), [32, 32])
    kernel = outlets_kernel.warmup(x, x, x, 7, BN=32, num_warps=4, grid=(1,))
    text = kernel.asm["ttgir"]
    assert text.count("async_tma_copy_local_to_global") == 2
    assert text.index("partition1") < text.index("async_tma_copy_local_to_global")
    assert kernel.metadata.total_num_warps == 6
    large = TensorDescriptor.from_tensor(np.empty((256, 1024), np.float16), [256, 128])
    text = outlets_kernel.warmup(large, large, large, 7, BN=128, num_warps=8, num_stages=2, grid=(1,)).asm[
        "ttgir"
    ]
    assert "partition1" not in text
    assert text.index("async_tma_copy_local_to_global") < text.index("partition0")


@pytest.mark.parametrize("d,num_warps", [(128, 8), (64, 8), (128, 4)])
def test_turns(d, num_warps):
    """Where products take about as long as the arithmetic between them, warp groups use the tensor cores in turns."""
    descs = [
        TensorDescriptor.from_tensor(np.empty((512, d), np.float16), [size, d])
        for size in (16 * num_warps, 128, 128, 16 * num_warps)
    ]
    kernel = attention_kernel.warmup(
        *descs,
        512,
        D=d,
        BM=16 * num_warps,
        BN=128,
        CAUSAL=False,
        num_warps=num_warps,
        num_stages=2,
        grid=(4,),
    )
    ttgir = kernel.asm["ttgir"]
    assert ("ttng.wait_order_barrier" in ttgir) == (d == 128 and num_warps == 8)
    # The first product of an iteration and the second of the one before are under way together.
    loop = ttgir[ttgir.index("scf.for") :]
    together = "pendings = 1" in loop[: loop.index("scf.yield")]
    assert together == (d == 128)


@triton.jit
def a_loop_beside_kernel(a_ptr, b_ptr, x_ptr, y_ptr, c_ptr, d_ptr, n):
    """The loop of the product is not innermost: its rings have one slot."""
    i = tl.arange(0, 64)
    at = i[:, None] * 64 + i[None, :]
    total, acc = tl.load(y_ptr + at), tl.load(x_ptr + at)
    for _ in tl.range(0, n, num_stages=3, warp_specialize=True):
        x = tl.load(x_ptr + at)
        for _ in tl.range(0, 2):
            total = tl.minimum(total + x, 8.0)
        a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + at, acc)
    tl.store(d_ptr + at, total)


def test_rings_of_one_slot(device):
    """A product is waited for before the next one's operands are: the producer has no other slot for them."""
    rng = np.random.default_rng(8)
    a, b = (rng.integers(-2, 3, (64, 64)).astype(np.float16) for _ in range(2))
    x, y = (rng.integers(-2, 3, (64, 64)).astype(np.float32) for _ in range(2))
    acc, total = device.empty((64, 64), np.float32), device.empty((64, 64), np.float32)
    arrays = (device.array(v) for v in (a, b, x, y))
    kernel = a_loop_beside_kernel[(1,)](*arrays, acc, total, 3, num_warps=4, raise_pointers=False)
    if device.backend in ("ptxsim", "cuda"):
        assert "num_warps(4)" in kernel.asm["ttgir"] and "ttng.warp_group_dot" in kernel.asm["ttgir"]
    np.testing.assert_array_equal(device.numpy(acc), x + 3 * (a.astype(np.float32) @ b.astype(np.float32)))
    want = y
    for _ in range(6):
        want = np.minimum(want + x, 8)
    np.testing.assert_array_equal(device.numpy(total), want)


@triton.jit
def copies_and_then_a_block_kernel(a_ptr, b, c_ptr, n):
    i, j, k = tl.arange(0, 32), tl.arange(0, 16), tl.arange(0, 64)
    acc = tl.zeros((32, 16), tl.float32)
    at = i[:, None] * 64 + k[None, :]
    for t in tl.range(0, n, num_stages=4, warp_specialize=True):
        acc = tl.dot(tl.load(a_ptr + t * 2048 + at), b.load([t * 64, 0]), acc)
    # Products by single warps: nothing in the loop needs a proxy fence.
    acc = tl.dot(tl.load(a_ptr + at), b.load([64, 0]), acc)
    tl.store(c_ptr + i[:, None] * 16 + j[None, :], acc)


def test_a_block_where_another_warp_has_copied_to(device):
    """What TMA copies behind the loop comes to lie where `cp.async` of the producer has written."""
    rng = np.random.default_rng(9)
    a, b = (rng.integers(-1, 2, (4, rows, 64)).astype(np.float16) for rows in (32, 64))
    b = b[:, :, :16].copy()
    out = device.empty((32, 16), np.float32)
    desc = TensorDescriptor.from_tensor(device.array(b.reshape(256, 16)), [64, 16])
    copies_and_then_a_block_kernel[(1,)](device.array(a), desc, out, 4, num_warps=4)
    x, y = a.astype(np.float32), b.astype(np.float32)
    np.testing.assert_array_equal(device.numpy(out), (x @ y).sum(0) + x[0] @ y[1])


@triton.jit
def largest_kernel(d, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    most = tl.full([M, N], -100, tl.float16)
    for i in tl.range(n, warp_specialize=True):
        most = tl.maximum(most, d.load([i * M, 0]))
    tl.store(out_ptr + tl.arange(0, M)[:, None] + tl.arange(0, N)[None, :] * M, most)


def test_what_is_loaded_is_there_before_its_slot_is_filled_again(device):
    """Loads with many bank conflicts, still under way when their warp has passed them: on a GPU the next copy came first."""
    x = np.random.default_rng(6).integers(-8, 9, (12 * 128, 48)).astype(np.float16)
    out = device.empty((48, 128), np.float16)
    given = TensorDescriptor.from_tensor(device.array(x), [128, 48])
    largest_kernel[(1,)](given, out, 12, 128, 48, num_warps=8, num_stages=1)
    np.testing.assert_array_equal(device.numpy(out), x.reshape(12, 128, 48).max(0).T)


@triton.jit
def chain_kernel(x, b, n, M: tl.constexpr, K: tl.constexpr, WS: tl.constexpr):
    rows = tl.make_tensor_descriptor(x, [(n + 1) * M, M], [M, 1], [M, K])
    halves = tl.make_tensor_descriptor(x, [(n + 1) * M, M], [M, 1], [M, M // 2])
    right = tl.make_tensor_descriptor(b, [M, M], [M, 1], [K, M])
    for t in tl.range(n, warp_specialize=WS, flatten=True):
        acc = tl.zeros([M, M], tl.float32)
        for k in range(M // K):
            acc = tl.dot(rows.load([t * M, k * K]), right.load([k * K, 0]), acc)
        low, high = tl.split(tl.permute(tl.reshape(acc, [M, 2, M // 2]), [0, 2, 1]))
        halves.store([(t + 1) * M, 0], low.to(tl.float16))
        halves.store([(t + 1) * M, M // 2], high.to(tl.float16))


@pytest.mark.parametrize("specialize", [False, True])
def test_what_is_stored_in_parts_is_loaded_again(device, specialize):
    """An iteration multiplies what the one before it has stored."""
    m, n = 64, 4
    rng = np.random.default_rng(0)
    x = np.zeros((n + 1, m, m), np.float16)
    x[0] = rng.integers(-3, 4, (m, m))
    b = np.eye(m, dtype=np.float16)[rng.permutation(m)]
    want = [x[0]]
    for _ in range(n):
        want.append(want[-1] @ b)
    out = device.array(x)
    chain_kernel[(1,)](out, device.array(b), n, m, 32, specialize, num_warps=4)
    np.testing.assert_array_equal(device.numpy(out), np.stack(want))


@triton.jit
def one_for_many_kernel(a, b, c, tiles, n, K: tl.constexpr):
    """What the outer loop loads has one slot, since there is no room for two; all products of the inner loop read it, and one is under way when the next begins."""
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), warp_specialize=True):
        x = a.load([tile * 128, 0])
        acc = tl.zeros((128, 128), tl.float32)
        for j in range(0, n, K):
            acc = tl.dot(x, b.load([j, 0]), acc)
        c.store([tile * 128, 0], acc.to(tl.float16))


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_one_slot_for_many_products(device, steps):
    rng = np.random.default_rng(4)
    tiles, k = 3, 256
    a = rng.integers(-2, 3, (tiles * 128, k)).astype(np.float16)
    b = rng.integers(-2, 3, (3 * k, 128)).astype(np.float16)
    c = device.array(np.full((tiles * 128, 128), np.nan, np.float16))
    descs = [
        TensorDescriptor.from_tensor(x, block)
        for x, block in ((device.array(a), [128, k]), (device.array(b), [k, 128]), (c, [128, 128]))
    ]
    kernel = one_for_many_kernel[(1,)](*descs, tiles, steps * k, K=k, num_warps=8, num_stages=2)
    if hasattr(kernel, "asm") and "ttgir" in kernel.asm:
        assert "1x128x256xf16" in kernel.asm["ttgir"]
    want = a.astype(np.float32) @ b[: steps * k].reshape(steps, k, 128).sum(0, dtype=np.float32)
    np.testing.assert_array_equal(device.numpy(c), want.astype(np.float16))
