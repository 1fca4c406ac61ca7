"""Programs that are run by clusters of CTAs (``num_ctas``): what a program computes doesn't depend on how many run it."""

import numpy as np
import pytest
from flash_attention import reference
from flash_attention_descriptors import flash_attention_descriptors

import tilewright as triton
import tilewright.language as tl
from tilewright.tools.tensor_descriptor import TensorDescriptor

CTAS = [1, 2, 4]


def normal(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offsets = tl.max_contiguous(tl.multiple_of(offsets, BLOCK), BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@pytest.mark.parametrize("ctas", [1, 2, 4, 8])
def test_add(device, ctas):
    x, y = normal(3000), normal(3000, seed=1)
    out = device.empty(3000, np.float32)
    add[(3,)](device.array(x), device.array(y), out, 3000, 1024, num_ctas=ctas)
    np.testing.assert_array_equal(device.numpy(out), x + y)


@triton.jit
def softmax_row(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n + columns, e / tl.sum(e, axis=0), mask=columns < n)


@pytest.mark.parametrize("ctas", CTAS)
def test_a_row_of_several_ctas(device, ctas):
    x = normal(3, 700)
    out = device.empty(x.shape, np.float32)
    softmax_row[(3,)](device.array(x), out, 700, 1024, num_ctas=ctas)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(device.numpy(out), e / e.sum(1, keepdims=True), rtol=1e-5)


@triton.jit
def centered(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """The sum along a row never meets the tiles that are stored."""
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n + columns, mask=columns < n, other=0.0)
    mean = tl.sum(total, axis=0) / n
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + columns, mask=columns < n)
        tl.store(out_ptr + row * n + columns, x - mean, mask=columns < n)


@pytest.mark.parametrize("ctas", [1, 2, 4, 8])
@pytest.mark.parametrize("block", [64, 2048])
def test_sums_beside_what_is_split(device, ctas, block):
    """A long row's sum is split, too, and combined; a short one's each CTA has whole."""
    x = normal(2, 3000)
    out = device.empty(x.shape, np.float32)
    kernel = centered[(2,)](device.array(x), out, 3000, block, num_ctas=ctas)
    np.testing.assert_allclose(device.numpy(out), x - x.mean(1, keepdims=True), atol=1e-5)
    if device.backend == "ptxsim":
        long = block > 64
        assert ("ttng.cluster_exchange" in kernel.asm["ttgir"]) == (long and ctas > 1)
        assert (f"tensor<{block}xf32" in kernel.asm["ttgir"]) == (not long or ctas == 1)


@triton.jit
def little_each_turn(x_ptr, y_ptr, out_ptr, n):
    r, b = tl.arange(0, 256), tl.arange(0, 4096)
    for i in range(n):
        s = tl.sum(tl.load(x_ptr + i * 256 + r))
        tl.store(out_ptr + i * 4096 + b, tl.load(y_ptr + i * 4096 + b) + s)


@triton.jit
def many_sums(x_ptr, y_ptr, out_ptr, sums_ptr):
    r, c, b = tl.arange(0, 2)[:, None], tl.arange(0, 32768)[None, :], tl.arange(0, 65536)
    s = tl.sum(tl.load(x_ptr + r * 32768 + c), 0)
    tl.store(sums_ptr + tl.arange(0, 32768), tl.cumsum(s, 0))
    tl.store(out_ptr + b, tl.load(y_ptr + b) + 1)


def test_sums_that_are_not_worth_an_exchange():
    """Two barriers of the cluster in each turn for 128 numbers, or as many numbers through shared memory as are summed up."""
    little = little_each_turn.warmup(*(tl.float32,) * 3, 8, num_ctas=2, target="cuda:90", grid=(1,))
    many = many_sums.warmup(*(tl.float64,) * 4, num_ctas=2, num_warps=16, target="cuda:90", grid=(1,))
    for kernel in little, many:
        assert "ttng.cluster_exchange" not in kernel.asm["ttgir"]


@triton.jit
def rows_and_columns(x_ptr, rows_ptr, columns_ptr, best_ptr, M: tl.constexpr, N: tl.constexpr):
    """One axis is split, so that one of the reductions crosses CTAs; the index of the largest goes along."""
    m, n = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    tl.store(rows_ptr + m, tl.sum(x, axis=1))
    tl.store(columns_ptr + n, tl.max(x, axis=0))
    tl.store(best_ptr + n, tl.argmax(x, axis=0))


@pytest.mark.parametrize("ctas", CTAS)
@pytest.mark.parametrize("shape", [(64, 32), (32, 128), (48, 16)])
def test_rows_and_columns(device, ctas, shape):
    M, N = shape
    x = np.random.default_rng(0).integers(0, 9, shape).astype(np.int32)
    rows, columns, best = (device.empty(k, np.int32) for k in (M, N, N))
    rows_and_columns[(1,)](device.array(x), rows, columns, best, M, N, num_ctas=ctas)
    np.testing.assert_array_equal(device.numpy(rows), x.sum(1))
    np.testing.assert_array_equal(device.numpy(columns), x.max(0))
    np.testing.assert_array_equal(device.numpy(best), x.argmax(0))


@triton.jit
def sums_of_sums(x_ptr, out_ptr, total_ptr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    columns = tl.sum(x, axis=0)
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [1, N])
    out.store([1, 0], tl.expand_dims(columns, 0))
    tl.store(total_ptr, tl.sum(columns, axis=0) + tl.max(tl.sum(x, axis=1), axis=0))


@pytest.mark.parametrize("ctas", CTAS)
@pytest.mark.parametrize("shape", [(64, 16), (16, 64)])
def test_what_was_combined_is_reduced_and_stored(device, ctas, shape):
    x = np.random.default_rng(0).integers(0, 9, shape).astype(np.int32)
    out, total = device.array(np.zeros(shape, np.int32)), device.empty(1, np.int32)
    sums_of_sums[(1,)](device.array(x), out, total, *shape, num_ctas=ctas)
    want = np.zeros(shape, np.int32)
    want[1] = x.sum(0)
    np.testing.assert_array_equal(device.numpy(out), want)
    np.testing.assert_array_equal(device.numpy(total), [x.sum() + x.sum(1).max()])


@triton.jit
def transpose(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    tl.store(out_ptr + n[:, None] * M + m[None, :], tl.trans(x))


@pytest.mark.parametrize("ctas", CTAS)
def test_transpose(device, ctas):
    x = normal(32, 64)
    out = device.empty((64, 32), np.float32)
    transpose[(1,)](device.array(x), out, 32, 64, num_ctas=ctas)
    np.testing.assert_array_equal(device.numpy(out), x.T)


@triton.jit
def outer_difference(x_ptr, out_ptr, N: tl.constexpr):
    """One vector is both the rows and the columns."""
    n = tl.arange(0, N)
    x = tl.load(x_ptr + n)
    tl.store(out_ptr + n[:, None] * N + n[None, :], x[:, None] - x[None, :])


@pytest.mark.parametrize("ctas", CTAS)
def test_one_vector_along_both_axes(device, ctas):
    x = normal(32)
    out = device.empty((32, 32), np.float32)
    outer_difference[(1,)](device.array(x), out, 32, num_ctas=ctas)
    np.testing.assert_array_equal(device.numpy(out), x[:, None] - x[None, :])


@triton.jit
def whole_lines(x_ptr, sums_ptr, counts_ptr, sorted_ptr, picked_ptr, N: tl.constexpr):
    """Operations that need whole lines, or that mix them."""
    n = tl.arange(0, N)
    x = tl.load(x_ptr + n)
    tl.store(sums_ptr + n, tl.cumsum(x, axis=0))
    tl.store(counts_ptr + tl.arange(0, 16), tl.histogram(x, 16))
    tl.store(sorted_ptr + n, tl.sort(x))
    tl.store(picked_ptr + n, tl.gather(x, N - 1 - n, axis=0))


@pytest.mark.parametrize("ctas", CTAS)
def test_whole_lines(device, ctas):
    x = np.random.default_rng(0).integers(0, 16, 256).astype(np.int32)
    sums, counts, ordered, picked = (device.empty(k, np.int32) for k in (256, 16, 256, 256))
    whole_lines[(1,)](device.array(x), sums, counts, ordered, picked, 256, num_ctas=ctas)
    np.testing.assert_array_equal(device.numpy(sums), np.cumsum(x))
    np.testing.assert_array_equal(device.numpy(counts), np.bincount(x, minlength=16))
    np.testing.assert_array_equal(device.numpy(ordered), np.sort(x))
    np.testing.assert_array_equal(device.numpy(picked), x[::-1])


@triton.jit
def counts(x_ptr, counts_ptr, N: tl.constexpr):
    n = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(counts_ptr + tl.program_id(0) * 8 + tl.arange(0, 8), tl.histogram(tl.load(x_ptr + n), 8))


@pytest.mark.parametrize("ctas", CTAS)
def test_histogram(device, ctas):
    x = np.random.default_rng(0).integers(0, 8, (2, 512)).astype(np.int32)
    out = device.empty((2, 8), np.int32)
    counts[(2,)](device.array(x), out, 512, num_ctas=ctas)
    np.testing.assert_array_equal(device.numpy(out), [np.bincount(row, minlength=8) for row in x])


@triton.jit
def numbers(state_ptr, seen_ptr, sums_ptr, N: tl.constexpr):
    """Numbers are the whole program's: each is read, changed and written once."""
    pid = tl.program_id(0) + tl.num_programs(0) * tl.program_id(1)
    ticket = tl.atomic_add(state_ptr, 1)
    tl.store(seen_ptr + ticket, pid)
    old = tl.load(state_ptr + 2 + pid)
    tl.store(state_ptr + 2 + pid, old + 5)
    while tl.atomic_cas(state_ptr + 1, 0, 1) == 1:
        pass
    total = tl.load(sums_ptr, volatile=True)
    tl.store(sums_ptr, total + tl.sum(tl.arange(0, N), axis=0))
    tl.atomic_xchg(state_ptr + 1, 0)
    tl.atomic_add(sums_ptr + 1 + tl.arange(0, N), tl.arange(0, N))


@pytest.mark.parametrize("ctas", CTAS)
def test_numbers(device, ctas):
    state, seen = device.array(np.zeros(8, np.int32)), device.array(np.full(6, -1, np.int32))
    sums = device.array(np.zeros(33, np.int32))
    numbers[(3, 2)](state, seen, sums, 32, num_ctas=ctas)
    np.testing.assert_array_equal(device.numpy(state), [6, 0] + [5] * 6)
    np.testing.assert_array_equal(device.numpy(sums), [6 * 496, *(6 * np.arange(32))])
    # Which program came when is not said.
    assert sorted(unrecorded(device, seen)) == list(range(6))


def unrecorded(device, array):
    """What lies in an array, where it may differ between backends."""
    return super(type(device), device).numpy(array)


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_ptrs = a_ptr + m[:, None] * K + k[None, :]
    b_ptrs = b_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for left in range(K, 0, -BK):
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (k[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(k[:, None] < left) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@pytest.mark.parametrize("ctas", CTAS)
@pytest.mark.parametrize("tile", [(128, 64, 32), (64, 128, 32), (32, 32, 32)])
def test_matmul(device, ctas, tile):
    M, N, K = 136, 144, 80
    a, b = normal(M, K, dtype=np.float16), normal(K, N, dtype=np.float16, seed=1)
    c = device.empty((M, N), np.float32)
    grid = (triton.cdiv(M, tile[0]), triton.cdiv(N, tile[1]))
    matmul[grid](device.array(a), device.array(b), c, M, N, K, *tile, num_ctas=ctas)
    np.testing.assert_allclose(device.numpy(c), a.astype(np.float32) @ b, rtol=1e-3, atol=2e-2)


@triton.jit
def persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr):
    tiles_n = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tiles_n, tl.num_programs(0)):
        m, n = tile // tiles_n * BM, tile % tiles_n * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=WS):
            acc = tl.dot(a.load([m, k * BK]), b.load([k * BK, n]), acc)
        c.store([m, n], acc.to(tl.float16))


@pytest.mark.parametrize("ctas", CTAS)
@pytest.mark.parametrize("specialize", [False, True])
@pytest.mark.parametrize("tile", [(128, 128, 64), (256, 64, 64)])
def test_persistent_matmul_with_descriptors(device, ctas, specialize, tile):
    M, N, K = 272, 264, 200
    a, b = normal(M, K, dtype=np.float16), normal(K, N, dtype=np.float16, seed=1)
    C = device.empty((M, N), np.float16)
    BM, BN, BK = tile
    descs = [
        TensorDescriptor.from_tensor(device.array(a), [BM, BK]),
        TensorDescriptor.from_tensor(device.array(b), [BK, BN]),
        TensorDescriptor.from_tensor(C, [BM, BN]),
    ]
    persistent[(3,)](*descs, M, N, K, *tile, specialize, num_ctas=ctas)
    np.testing.assert_allclose(device.numpy(C), a.astype(np.float32) @ b, rtol=2e-3, atol=5e-2)


@triton.jit
def attention(q, k, v, o, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, WS: tl.constexpr):
    row = tl.program_id(0) * BM
    queries = q.load([row, 0])
    acc = tl.zeros((BM, D), tl.float32)
    for start in tl.range(0, n, BN, warp_specialize=WS):
        p = tl.exp2(tl.dot(queries, k.load([start, 0]).T))
        acc = tl.dot(p.to(tl.float16), v.load([start, 0]), acc * 0.5)
    o.store([row, 0], acc.to(tl.float16))


@pytest.mark.parametrize("num_stages", [2, 3])
@pytest.mark.parametrize("specialize", [False, True])
def test_attention_whose_keys_are_shared(device, specialize, num_stages):
    """Two products an iteration; both CTAs read the same keys and values, in two warp groups each."""
    n, d = 320, 32
    q, k, v = (normal(n_rows, d, dtype=np.float16, seed=i) / 4 for i, n_rows in enumerate((256, n, n)))
    out = device.empty((256, d), np.float16)
    arrays = [(device.array(x.astype(np.float16)), rows) for x, rows in ((q, 256), (k, 64), (v, 64))]
    descs = [TensorDescriptor.from_tensor(x, [rows, d]) for x, rows in (*arrays, (out, 256))]
    attention[(1,)](*descs, n, 256, 64, d, specialize, num_ctas=2, num_warps=8, num_stages=num_stages)
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    want = np.zeros((256, d))
    for start in range(0, n, 64):
        p = np.exp2(q @ k[start : start + 64].T)
        want = want * 0.5 + p @ v[start : start + 64]
    np.testing.assert_allclose(device.numpy(out), want, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("specialize", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_attention(device, specialize, causal):
    """Each CTA has its rows; both have all keys and values."""
    q, k, v = (normal(2, 256, 64, dtype=np.float16, seed=s) for s in range(3))
    o = device.empty(q.shape, np.float16)
    arrays = [device.array(x) for x in (q, k, v)]
    flash_attention_descriptors(
        *arrays, o, causal, block=(128, 64), warp_specialize=specialize, num_warps=4, num_ctas=2
    )
    np.testing.assert_allclose(device.numpy(o), reference(q, k, v, causal), rtol=1e-2, atol=1e-2)


@triton.jit
def early_return(a, x, out, n, stop, B: tl.constexpr):
    acc = tl.zeros((B, B), tl.float32)
    for i in tl.range(n, warp_specialize=True):
        acc += a.load([i * B, 0])
    out.store([0, 0], acc)
    if stop == 1:
        return
    places = x + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tile = tl.load(places)
    # The CTAs wait for each other: what one overwrites the other has loaded.
    tl.store(places, tile.T)


@pytest.mark.parametrize("stop", [0, 1])
def test_ctas_meet_in_a_branch_behind_specialized_warps(device, stop):
    n, B = 3, 64
    a, x = normal(n * B, B), normal(B, B, seed=1)
    X, OUT = device.array(x), device.empty((B, B), np.float32)
    early_return[(1,)](
        TensorDescriptor.from_tensor(device.array(a), [B, B]),
        X,
        TensorDescriptor.from_tensor(OUT, [B, B]),
        n, stop, B, num_ctas=2,
    )  # fmt: skip
    np.testing.assert_allclose(device.numpy(OUT), a.reshape(n, B, B).sum(0), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(device.numpy(X), x if stop else x.T)


@triton.jit
def transpose_in_place(x_ptr, B: tl.constexpr):
    places = x_ptr + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(places, tl.trans(tl.load(places)))


@pytest.mark.parametrize("ctas", CTAS)
def test_stores_stay_behind_loads_of_other_ctas(device, ctas):
    x = normal(64, 64)
    y = device.array(x.copy())
    transpose_in_place[(1,)](y, 64, num_ctas=ctas)
    np.testing.assert_array_equal(device.numpy(y), x.T)


@triton.jit
def products_through_memory(x_ptr, room_ptr, out_ptr, steps, B: tl.constexpr):
    """The sum of xᵀx over blocks x, each of which goes through a room in memory first."""
    i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for step in range(steps):
        tl.store(room_ptr + i * B + j, tl.load(x_ptr + (step * B + i) * B + j))
        tl.debug_barrier()
        acc = tl.dot(tl.load(room_ptr + j * B + i), tl.load(room_ptr + i * B + j), acc)
        tl.debug_barrier()
    tl.store(out_ptr + i * B + j, acc)


@pytest.mark.parametrize("ctas", CTAS)
def test_loads_stay_behind_barriers(device, ctas):
    x = normal(4, 64, 64, dtype=np.float16)
    out = device.empty((64, 64), np.float32)
    products_through_memory[(1,)](
        device.array(x), device.empty((64, 64), np.float16), out, 4, 64, num_ctas=ctas
    )
    wide = x.astype(np.float32)
    np.testing.assert_allclose(device.numpy(out), np.einsum("ski,skj->ij", wide, wide), rtol=1e-3, atol=1e-2)


@triton.jit
def copy_of_planes(x_ptr, out_ptr, P: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [P, M, N], [M * N, N, 1], [P, M, N]).load([0, 0, 0])
    p, m, n = tl.arange(0, P)[:, None, None], tl.arange(0, M)[None, :, None], tl.arange(0, N)[None, None, :]
    tl.store(out_ptr + p * M * N + m * N + n, x)
    # Every CTA has all of it.
    tl.store(out_ptr + P * M * N, tl.sum(x))


@pytest.mark.parametrize("ctas", CTAS)
@pytest.mark.parametrize("shape", [(3, 32, 12), (6, 20, 4), (2, 64, 40)])
def test_blocks_of_planes(device, shape, ctas):
    x = np.random.default_rng(11).integers(-9, 9, shape).astype(np.float32)
    out = device.empty(x.size + 1, np.float32)
    copy_of_planes[(1,)](device.array(x), out, *shape, num_ctas=ctas)
    np.testing.assert_array_equal(device.numpy(out), [*x.reshape(-1), x.sum()])


def test_what_no_cluster_is(device, monkeypatch):
    """A number of CTAs that there is no cluster of, a GPU that has none, and more CTAs than a GPU starts."""
    x, out = device.array(normal(64)), device.empty(64, np.float32)
    for ctas, error in ((3, ValueError), (16, triton.OutOfResources)):
        with pytest.raises(error, match=f"num_ctas is {ctas}"):
            add[(1,)](x, x, out, 64, 64, num_ctas=ctas)
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:80")
    x, out = normal(64), np.empty(64, np.float32)
    with pytest.raises(triton.CompilationError, match="cuda:80 has no clusters of CTAs"):
        add[(1,)](x, x, out, 64, 64, num_ctas=2)
    monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:90")
    with pytest.raises(ValueError, match="4 CTAs, is too large"):
        add[(2**30,)](x, x, out, 64, 64, num_ctas=4)
