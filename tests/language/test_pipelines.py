"""Loops whose loads run ahead: addresses that are loaded themselves, dots in branches, the number of stages by loop."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl

STAGES = [1, 2, 3, 5]


@triton.jit
def paged_kernel(q, cache, table, out, pages, D: tl.constexpr, M: tl.constexpr, PAGE: tl.constexpr):
    om, od, on = tl.arange(0, M), tl.arange(0, D), tl.arange(0, PAGE)
    x = tl.load(q + om[:, None] * D + od[None, :])
    acc = tl.zeros((M, D), tl.float32)
    for i in range(pages):
        page = tl.load(table + i)
        tile = cache + page * PAGE * D
        k = tl.load(tile + on[None, :] * D + od[:, None])
        s = tl.dot(x, k)
        v = tl.load(tile + on[:, None] * D + od[None, :])
        acc += tl.dot(s.to(tl.float16), v)
    tl.store(out + om[:, None] * D + od[None, :], acc)


@pytest.mark.parametrize("num_stages", STAGES)
@pytest.mark.parametrize("m,num_warps", [(16, 4), (64, 4)])
@pytest.mark.parametrize("pages", [0, 1, 2, 7])
def test_pages(device, m, num_warps, num_stages, pages):
    d, page = 64, 32
    rng = np.random.default_rng(pages)
    # Small integers: the scores are exact in fp16 and the sums in fp32, in any order.
    q = rng.integers(-2, 3, (m, d)).astype(np.float16)
    cache = rng.integers(-2, 3, (9, page, d)).astype(np.float16)
    table = rng.permutation(9)[:pages].astype(np.int32)
    out = device.zeros((m, d), np.float32)
    # The table is as long as it is used: nothing past its end is read.
    args = [device.array(x) for x in (q, cache, table if pages else np.zeros(1, np.int32))]
    paged_kernel[(1,)](*args, out, pages, D=d, M=m, PAGE=page, num_warps=num_warps, num_stages=num_stages)
    keys = cache[table].reshape(-1, d).astype(np.float64)
    want = (q.astype(np.float64) @ keys.T) @ keys
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def gather_kernel(a, b, index, shuffle, out, K, DEPTH: tl.constexpr, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    om, on, ok = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BK):
        at = k + ok
        inside = at < K
        if DEPTH == 3:
            at = tl.load(shuffle + tl.load(shuffle + at, mask=inside, other=0), mask=inside, other=0)
        elif DEPTH == 2:
            at = tl.load(shuffle + at, mask=inside, other=0)
        row = tl.load(index + at, mask=inside, other=-1)
        x = tl.load(a + om[:, None] * K + (k + ok)[None, :], mask=inside[None, :], other=0.0)
        y = tl.load(b + row[:, None] * N + on[None, :], mask=(row >= 0)[:, None], other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(out + om[:, None] * N + on[None, :], acc)


@pytest.mark.parametrize("num_stages", STAGES)
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("k", [24, 32, 136])
def test_gathered_rows(device, depth, k, num_stages):
    m, n, bk = 64, 32, 32
    rng = np.random.default_rng(k)
    a = rng.standard_normal((m, k)).astype(np.float16)
    b = rng.standard_normal((50, n)).astype(np.float16)
    index = rng.integers(-1, 50, k).astype(np.int32)
    shuffle = rng.permutation(k).astype(np.int32)
    out = device.empty((m, n), np.float32)
    args = [device.array(x) for x in (a, b, index, shuffle)]
    gather_kernel[(1,)](*args, out, k, DEPTH=depth, M=m, N=n, BK=bk, num_warps=4, num_stages=num_stages)
    at = np.arange(k)
    for _ in range(depth - 1):
        at = shuffle[at]
    row = index[at]
    rows = np.where((row >= 0)[:, None], b[row].astype(np.float64), 0)
    np.testing.assert_allclose(device.numpy(out), a.astype(np.float64) @ rows, rtol=1e-2, atol=1e-2)


@triton.jit
def list_kernel(first, following, b, a, out, n, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    om, on, ok = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    x = tl.load(a + om[:, None] * BK + ok[None, :])
    acc = tl.zeros((M, N), tl.float32)
    at = tl.load(first)
    for _ in range(n):
        acc = tl.dot(x, tl.load(b + at * BK * N + ok[:, None] * N + on[None, :]), acc)
        at = tl.load(following + at)
    tl.store(out + om[:, None] * N + on[None, :], acc)


@pytest.mark.parametrize("num_stages", STAGES)
def test_linked_list(device, num_stages):
    m, n, bk, length = 64, 32, 32, 5
    rng = np.random.default_rng(3)
    order = rng.permutation(8)
    following = np.full(8, -(1 << 20), np.int32)  # what follows the last is nowhere
    following[order[: length - 1]] = order[1:length]
    following[order[length - 1]] = 0
    a = rng.standard_normal((m, bk)).astype(np.float16)
    b = rng.standard_normal((8, bk, n)).astype(np.float16)
    out = device.empty((m, n), np.float32)
    args = [device.array(x) for x in (order[:1].astype(np.int32), following, b, a)]
    list_kernel[(1,)](*args, out, length, M=m, N=n, BK=bk, num_warps=4, num_stages=num_stages)
    want = a.astype(np.float64) @ b[order[:length]].astype(np.float64).sum(0)
    np.testing.assert_allclose(device.numpy(out), want, rtol=1e-2, atol=2e-2)


@triton.jit
def branch_kernel(a, b, keep, out, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    om, on, ok = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + om[:, None] * K + (k + ok)[None, :])
        y = tl.load(b + (k + ok)[:, None] * N + on[None, :])
        if tl.load(keep + k // BK) > 0:
            acc = tl.dot(x, y, acc)
    tl.store(out + om[:, None] * N + on[None, :], acc)


@pytest.mark.parametrize("num_stages", STAGES)
def test_dot_in_a_branch(device, num_stages):
    m, n, k, bk = 64, 32, 160, 32
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    keep = np.array([1, 0, 0, 1, 1], np.int32)
    out = device.empty((m, n), np.float32)
    args = [device.array(x) for x in (a, b, keep)]
    branch_kernel[(1,)](*args, out, k, M=m, N=n, BK=bk, num_warps=4, num_stages=num_stages)
    mask = np.repeat(keep, bk)[:, None]
    want = a.astype(np.float64) @ (b.astype(np.float64) * mask)
    np.testing.assert_allclose(device.numpy(out), want, rtol=1e-2, atol=1e-2)


@triton.jit
def asked_kernel(x, index, out, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    o = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.range(0, n, num_stages=STAGES):
        row = tl.load(index + i)
        total += tl.load(x + row * BLOCK + o)
    tl.store(out + o, total)


@pytest.mark.parametrize("stages", STAGES)
def test_stages_asked_for_without_a_dot(device, stages):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((6, 256)).astype(np.float32)
    index = rng.permutation(6)[:4].astype(np.int32)
    out = device.empty(256, np.float32)
    asked_kernel[(1,)](device.array(x), device.array(index), out, 4, BLOCK=256, STAGES=stages)
    np.testing.assert_allclose(device.numpy(out), x[index].sum(0), rtol=1e-5)


@triton.jit
def sorted_kernel(a, b, x, out, n, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    om, on, o = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK)
    product = tl.dot(tl.load(a + om[:, None] * N + on[None, :]), tl.load(b + on[:, None] * N + on[None, :]))
    tl.store(out + BLOCK + om[:, None] * N + on[None, :], tl.sort(product))
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.range(0, n, num_stages=3):
        total += tl.load(x + i * BLOCK + o)
    tl.store(out + o, total)


def test_a_sorted_product_before_a_loop(device):
    """Its values come together again and again: whether one is used behind it is asked once of each."""
    m, n, block = 16, 32, 128
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-4, 4, s).astype(np.float16) for s in ((m, n), (n, n)))
    x = rng.integers(-4, 4, (5, block)).astype(np.float32)
    out = device.empty(block + m * n, np.float32)
    sorted_kernel[(1,)](*(device.array(v) for v in (a, b, x)), out, 5, M=m, N=n, BLOCK=block)
    want = np.sort(a.astype(np.float32) @ b.astype(np.float32), axis=1)
    np.testing.assert_array_equal(device.numpy(out), np.concatenate([x.sum(0), want.ravel()]))


@triton.jit(noinline=True)
def wait_until_set(flag):
    while tl.atomic_cas(flag, 1, 1) == 0:
        pass


@triton.jit
def product_of_another(flag, a, b, c, n, CALL: tl.constexpr, M: tl.constexpr):
    """Program 1 stores tiles, and sets a flag behind each; program 0 waits for each flag, and multiplies the tile."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    if tl.program_id(0) == 1:
        for t in range(n):
            tl.store(a + t * M * M + i * M + j, (i + j + t).to(tl.float16))
            tl.debug_barrier()
            tl.atomic_xchg(flag + t, 1, sem="release")
    else:
        acc = tl.zeros([M, M], tl.float32)
        for t in range(n):
            if CALL:
                wait_until_set(flag + t)
            else:
                one = 0
                while one == 0:
                    one = tl.inline_asm_elementwise(
                        "ld.acquire.gpu.global.b32 $0, [$1];", "=r,l", [flag + t], tl.int32, False, 1
                    )
            x = tl.load(a + t * M * M + i * M + j)
            y = tl.load(b + i * M + j)
            acc = tl.dot(x, y, acc)
        tl.store(c + i * M + j, acc)


@pytest.mark.parametrize("num_stages", [1, 3])
@pytest.mark.parametrize("call", [False, True])
def test_no_load_runs_ahead_of_a_wait(device, call, num_stages):
    n, m = 5, 32
    b = np.random.default_rng(0).integers(-2, 3, (m, m)).astype(np.float16)
    flag, c = device.zeros(n, np.int32), device.zeros((m, m), np.float32)
    a = device.array(np.full((n, m, m), -9, np.float16))
    product_of_another[(2,)](flag, a, device.array(b), c, n, call, m, num_stages=num_stages)
    at = np.arange(m)
    tiles = [(at[:, None] + at + t).astype(np.float32) for t in range(n)]
    np.testing.assert_array_equal(device.numpy(c), sum(tile @ b.astype(np.float32) for tile in tiles))
