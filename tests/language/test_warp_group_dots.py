"""Matmul and attention with tiles for warp groups (``wgmma`` on sm_90), of every operand type, order and odd factor."""

import agreement
import flash_attention
import matmul
import ml_dtypes
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl

TILES = [
    # (BLOCK_M, BLOCK_N, BLOCK_K), num_warps, num_stages
    ((64, 64, 64), 4, 3),
    ((128, 128, 64), 8, 3),
    ((128, 64, 32), 4, 4),
    ((64, 128, 32), 8, 2),
    ((128, 256, 64), 8, 3),
    ((256, 128, 64), 8, 3),
    ((64, 96, 64), 4, 3),
    ((64, 160, 32), 4, 3),
    ((128, 192, 32), 8, 3),
    ((192, 40, 64), 4, 3),
]
TYPES = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "fp8": ml_dtypes.float8_e4m3fn}


def check(device, a, b, x, y, block, **options):
    c = device.empty((a.shape[0], b.shape[1]), np.int32 if a.dtype == np.int8 else np.float32)
    matmul.matmul(x, y, c, block, **options)
    if a.dtype == np.int8:
        np.testing.assert_array_equal(device.numpy(c), a.astype(np.int32) @ b.astype(np.int32))
        return
    if a.dtype == np.float32:
        device.rounding = agreement.TF32
    tolerance = 2e-3 if a.dtype == np.float32 else 1e-4
    a, b = a.astype(np.float64), b.astype(np.float64)
    assert np.all(np.abs(device.numpy(c) - a @ b) <= tolerance * (np.abs(a) @ np.abs(b)) + 1e-6)


@pytest.mark.parametrize("block,num_warps,num_stages", TILES)
def test_tiles(device, block, num_warps, num_stages):
    M, N, K = block[0] + 8, block[1], 3 * block[2] + 8
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((M, K), (K, N)))
    check(device, a, b, device.array(a), device.array(b), block, num_warps=num_warps, num_stages=num_stages)


@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
@pytest.mark.parametrize("dtype", ["fp16", "bf16", "tf32", "int8"])
def test_types_and_orders(device, dtype, transposed):
    M, N, K = 128, 64, 256
    rng = np.random.default_rng(1)
    if dtype == "int8":
        a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in ((M, K), (K, N)))
    else:
        a, b = (rng.standard_normal(s).astype(TYPES[dtype]) for s in ((M, K), (K, N)))
    x = device.array(np.ascontiguousarray(a.T)).T if "a" in transposed else device.array(a)
    y = device.array(np.ascontiguousarray(b.T)).T if "b" in transposed else device.array(b)
    check(device, a, b, x, y, (64, 64, 64), num_warps=4)


@pytest.mark.parametrize(
    "d,block,num_warps,num_stages,causal",
    [
        (64, (64, 64), 4, 3, False), (64, (64, 64), 4, 3, True), (128, (128, 64), 8, 3, False),
        (128, (128, 64), 8, 3, True), (64, (64, 128), 4, 2, False), (64, (64, 128), 4, 2, True),
    ],
)  # fmt: skip
def test_attention(device, d, block, num_warps, num_stages, causal):
    rng = np.random.default_rng(2)
    n = 256
    q, k, v = (rng.standard_normal((1, n, d)).astype(np.float16) for _ in range(3))
    o = device.empty((1, n, d), np.float16)
    flash_attention.flash_attention(
        device.array(q), device.array(k), device.array(v), o, causal, block, num_warps, num_stages
    )
    s = (q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1)) * d**-0.5
    if causal:
        s = np.where(np.tril(np.ones((n, n), bool)), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    want = (p / p.sum(-1, keepdims=True)) @ v.astype(np.float64)
    np.testing.assert_allclose(device.numpy(o), want, rtol=1e-2, atol=5e-3)


@triton.jit
def sums_kernel(
    a_ptr, b_ptr, c_ptr, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr, IMPRECISE: tl.constexpr,
):  # fmt: skip
    """A tile of a @ b in accumulators of a given type, or of sums of so many products."""
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=ACC)
    for start in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :])
        b = tl.load(b_ptr + n[None, :] * K + (start + k)[:, None])
        acc = tl.dot(a, b, acc, out_dtype=ACC, max_num_imprecise_acc=IMPRECISE)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize(
    "block,num_warps,num_stages", [((64, 64, 32), 4, 3), ((128, 48, 64), 8, 2), ((64, 24, 32), 4, 1)]
)
def test_accumulators_of_halves(device, block, num_warps, num_stages):
    bm, bn, bk = block
    N, K = bn, 3 * bk
    rng = np.random.default_rng(3)
    # Every sum is an integer that fp16 holds.
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((2 * bm, K), (N, K)))
    c = device.empty((2 * bm, N), np.float16)
    kernel = sums_kernel[(2,)](
        device.array(a), device.array(b), c, N, K, BM=bm, BN=bn, BK=bk, ACC=tl.float16, IMPRECISE=None,
        num_warps=num_warps, num_stages=num_stages,
    )  # fmt: skip
    np.testing.assert_array_equal(device.numpy(c), a @ b.T)
    if device.backend in ("ptxsim", "cuda"):
        assert f"wgmma.mma_async.sync.aligned.m64n{bn}k16.f16.f16.f16" in kernel.asm["ptx"]
        # Nothing takes an accumulator apart while its product is under way.
        loop = kernel.asm["ptx"].rpartition("wgmma.mma_async")[2].partition("bra")[0]
        assert "wgmma.wait_group" in loop and "%rs" not in loop  # registers of 16 bits


@pytest.mark.parametrize("imprecise", [None, 0, 64, 100, 128])
@pytest.mark.parametrize("left", ["float8_e4m3fn", "float8_e5m2"])
def test_sums_of_bytes(device, left, imprecise):
    """fp8 products, of which the tensor cores add up only so many."""
    bm, bn, bk = 64, 32, 128
    rng = np.random.default_rng(4)
    a = rng.integers(-3, 4, (bm, 2 * bk)).astype(np.float32)
    a[:, 0] = 448  # a large sum, from which a short one loses what comes after
    b = rng.integers(-3, 4, (bn, 2 * bk)).astype(np.float32)
    b[:, 0] = 448
    a, b = a.astype(getattr(ml_dtypes, left)), b.astype(ml_dtypes.float8_e4m3fn)
    c = device.empty((bm, bn), np.float32)
    kernel = sums_kernel[(1,)](
        device.array(a), device.array(b), c, bn, 2 * bk, BM=bm, BN=bn, BK=bk, ACC=tl.float32, IMPRECISE=imprecise,
        num_warps=4,
    )  # fmt: skip
    want = a.astype(np.float64) @ b.astype(np.float64).T
    # Of each product that is added at reduced precision up to 13 bits below the largest may be lost.
    length = {None: 2 * bk, 0: 32, 64: 64, 100: 128, 128: 128}[imprecise]
    device.rounding = length * 2.0**-13
    np.testing.assert_allclose(device.numpy(c), want, atol=length * 2.0**-13 * 448**2)
    if device.backend in ("ptxsim", "cuda"):
        ptx = kernel.asm["ptx"]
        parts = {None: 0, 0: 4, 64: 2, 100: 1, 128: 1}[imprecise]
        assert ptx.count("wgmma.commit_group") == max(parts, 1)
        assert ptx.count("add.rn.f32") + ptx.count("add.f32") == parts * bm * bn // 128


@pytest.mark.parametrize("dtype", ["fp8", "tf32"])
def test_results_are_stored_whole(dtype, monkeypatch):
    """Operands and results of different widths: each is accessed 16 bytes at a time."""
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    operand = np.empty((128, 128), TYPES[dtype])
    out = np.empty((128, 128), np.float16)
    kernel = matmul.matmul_kernel.warmup(
        operand, operand.T, out, 128, 128, 128, 128, 1, 1, 128, 128, 1, BLOCK_M=64, BLOCK_N=128, BLOCK_K=128,
        GROUP_M=8, ACC=tl.float32, PRECISION="tf32", num_warps=4, num_stages=2, grid=(1,),
    )  # fmt: skip
    stores = [line for line in kernel.asm["ptx"].splitlines() if "st.global" in line]
    assert stores and all(".v4.b32" in line for line in stores)


@triton.jit
def in_registers_kernel(a_ptr, b_ptr, c_ptr, n, HOW: tl.constexpr):
    """Products whose accumulators or left operands are in registers in all kinds of ways."""
    i = tl.arange(0, 64)
    at = i[:, None] * 64 + i[None, :]
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    ACC: tl.constexpr = tl.int32 if a_ptr.dtype.element_ty == tl.int8 else tl.float32
    T: tl.constexpr = a_ptr.dtype.element_ty
    acc = tl.zeros((64, 64), ACC)
    s = tl.dot(a, b, out_dtype=ACC) % 3
    if HOW == "sum of a product and a constant":
        acc = tl.dot(a, b, out_dtype=ACC) + 1
    elif HOW == "constant accumulator":
        acc = tl.dot(a, b, tl.full((64, 64), 2, ACC), out_dtype=ACC)
    elif HOW == "left operand of the iteration":
        for t in range(n):
            acc = tl.dot((s + t).to(T), b, acc, out_dtype=ACC)
    elif HOW == "left operand of one of three iterations":
        for t in range(3):
            acc = tl.dot((s + t).to(T), b, acc, out_dtype=ACC)
    elif HOW == "left operand of a dot that goes on":
        for t in range(n):
            acc = tl.dot(a, b, acc, out_dtype=ACC)
            acc = tl.dot((s + t).to(T), b, acc, out_dtype=ACC)
    elif HOW == "left operand that is carried":
        p = s.to(T)
        for _ in range(n):
            acc = tl.dot(p, b, acc, out_dtype=ACC)
            p = (acc % 3).to(T)
    elif HOW == "one left operand for two dots":
        p = s.to(T)
        x = tl.dot(p, b, out_dtype=ACC)
        y = tl.dot(p, a, tl.full((64, 64), 5, ACC), out_dtype=ACC)
        acc = x - y + p.to(ACC)
    elif HOW == "constant left operand":
        acc = tl.dot((s * 0 + 2).to(T), b, acc, out_dtype=ACC)
    elif HOW == "an accumulator for two dots":
        acc = tl.dot(a, b, s, out_dtype=ACC) - tl.dot(b, a, s, out_dtype=ACC) + s
    elif HOW == "a result that is accumulated on and looked at":
        x = tl.dot(a, b, out_dtype=ACC)
        y = tl.dot(s.to(T), a, x, out_dtype=ACC)
        acc = x * 2 - y
    elif HOW == "a chain":
        x = tl.dot((s + 1).to(T), b, acc, out_dtype=ACC)
        x = tl.dot((s - 1).to(T), (s + 2).to(T), x, out_dtype=ACC)
        acc = tl.dot((s + 2).to(T), (s - 2).to(T), x, out_dtype=ACC)
    elif HOW == "chosen by a condition":
        if n == 3:
            s = tl.full((64, 64), 1, ACC)
        acc = tl.dot(a, b, s, out_dtype=ACC)
    elif HOW == "a loop of one iteration":
        for _ in range(1):
            acc = tl.dot(a, b, acc, out_dtype=ACC)
    elif HOW == "a loop of two iterations":
        for _ in range(2):
            acc = tl.dot(a, b, acc, out_dtype=ACC)
    elif HOW == "one left operand before and in a loop":
        p = s.to(T)
        x = tl.dot(p, a, out_dtype=ACC)
        for t in range(n):
            acc = tl.dot(p, b, (s + t).to(ACC), out_dtype=ACC)
        acc = x - acc
    elif HOW == "one left operand before and in a branch":
        p = s.to(T)
        x = tl.dot(p, b, out_dtype=ACC)
        acc = tl.dot(p, a, out_dtype=ACC) + 1
        if n != 3:
            acc = tl.dot(p, (x % 3).to(T), acc, out_dtype=ACC)
        else:
            acc -= tl.dot(p, (x % 2).to(T), out_dtype=ACC)
    tl.store(c_ptr + at, acc)


WAYS = [
    "sum of a product and a constant", "constant accumulator", "left operand of the iteration",
    "left operand of one of three iterations", "left operand of a dot that goes on", "left operand that is carried",
    "one left operand for two dots", "constant left operand", "an accumulator for two dots",
    "a result that is accumulated on and looked at", "a chain", "chosen by a condition", "a loop of one iteration",
    "a loop of two iterations", "one left operand before and in a loop", "one left operand before and in a branch",
]  # fmt: skip


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_registers_of_dots_under_way(device, dtype, how):
    """The simulator refuses registers that are written between fence and dot, or touched between dot and wait."""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-2, 3, (64, 64)).astype(dtype) for _ in range(2))
    acc = np.int32 if dtype == "int8" else np.float32
    out = device.empty((64, 64), acc)
    kernel = in_registers_kernel[(1,)](device.array(a), device.array(b), out, 3, HOW=how, num_warps=4)
    if device.backend in ("ptxsim", "cuda"):
        assert "wgmma.mma_async" in kernel.asm["ptx"]
    x, y = a.astype(acc), b.astype(acc)
    s = np.fmod(x @ y, 3).astype(acc)
    p = s
    carried = np.zeros_like(s)
    for _ in range(3):
        carried = carried + p @ y
        p = np.fmod(carried, 3).astype(acc)
    steps = sum((s + t) @ y for t in range(3))
    want = {
        "sum of a product and a constant": x @ y + 1,
        "constant accumulator": x @ y + 2,
        "left operand of the iteration": steps,
        "left operand of one of three iterations": steps,
        "left operand of a dot that goes on": steps + 3 * x @ y,
        "left operand that is carried": carried,
        "one left operand for two dots": s @ y - s @ x - 5 + s,
        "constant left operand": np.full_like(s, 2) @ y,
        "an accumulator for two dots": x @ y - y @ x + s,
        "a result that is accumulated on and looked at": x @ y - s @ x,
        "a chain": (s + 1) @ y + (s - 1) @ (s + 2) + (s + 2) @ (s - 2),
        "chosen by a condition": x @ y + 1,
        "a loop of one iteration": x @ y,
        "a loop of two iterations": 2 * x @ y,
        "one left operand before and in a loop": s @ x - s @ y - s - 2,
        "one left operand before and in a branch": s @ x + 1 - s @ np.fmod(s @ y, 2),
    }[how]
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def one_after_the_other_kernel(a_ptr, b_ptr, c_ptr, n, HOW: tl.constexpr):
    """Dots and copies that may have each other's shared memory or registers."""
    i = tl.arange(0, 64)
    at = i[:, None] * 64 + i[None, :]
    b_desc = tl.make_tensor_descriptor(b_ptr, [256, 64], [64, 1], [64, 64])
    acc = tl.zeros((64, 64), tl.float32)
    if HOW == "sums of few products":
        for t in tl.static_range(4):
            x = tl.load(a_ptr + t * 4096 + at)
            y = tl.load(b_ptr + t * 4096 + at)
            acc = tl.dot(x, tl.trans(y), acc, max_num_imprecise_acc=32)
    elif HOW == "the last iteration's result":
        for t in tl.range(0, n, num_stages=4):
            x = tl.load(a_ptr + t * 4096 + at)
            y = tl.load(b_ptr + t * 4096 + at)
            acc = tl.dot(x, tl.trans(y), tl.full((64, 64), 2, tl.float32))
    elif HOW == "a copy by TMA behind a loop of others":
        for t in tl.range(0, n, num_stages=2):
            x = tl.load(a_ptr + t * 4096 + at)
            y = tl.load(b_ptr + t * 4096 + at)
            acc = tl.dot(x, tl.trans(y), acc)
        acc += b_desc.load([0, 0]).to(tl.float32)
    tl.store(c_ptr + at, acc)


@pytest.mark.parametrize(
    "how", ["sums of few products", "the last iteration's result", "a copy by TMA behind a loop of others"]
)
@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, np.float16])
def test_what_one_has_the_next_gets(device, dtype, how):
    if dtype == np.float16 and how == "sums of few products":
        how = "the last iteration's result"
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-1, 2, (4, 64, 64)).astype(dtype) for _ in range(2))
    out = device.empty((64, 64), np.float32)
    one_after_the_other_kernel[(1,)](
        device.array(a), device.array(b.reshape(256, 64)), out, 4, HOW=how, num_warps=4
    )
    x, y = a.astype(np.float32), b.astype(np.float32).transpose(0, 2, 1)
    products = (x @ y).sum(0)
    want = {
        "sums of few products": products,
        "the last iteration's result": x[3] @ y[3] + 2,
        "a copy by TMA behind a loop of others": products + y[0].T,
    }[how]
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def one_element_through_a_loop(a, b, x, out, rounds):
    m, n, k = tl.arange(0, 64)[:, None], tl.arange(0, 16)[None, :], tl.arange(0, 64)
    right = tl.load(b + k[:, None] * 16 + n)
    step = tl.load(x + tl.arange(0, 1)[:, None] + tl.arange(0, 1)[None, :])
    shift = step
    for _ in range(rounds):
        shift = shift + step
    right = right + shift
    d = tl.dot(tl.load(a + m * 64 + k[None, :]), right) + right.to(tl.float32)
    tl.store(out + m * 16 + n, d)


def test_what_a_loop_makes_of_one_half_is_no_accumulator(device):
    rng = np.random.default_rng(5)
    a, b, x = (rng.integers(-2, 3, s).astype(np.float16) for s in ((64, 64), (64, 16), (1, 1)))
    out = device.empty((64, 16), np.float32)
    one_element_through_a_loop[(1,)](*map(device.array, (a, b, x)), out, 3)
    right = b.astype(np.float32) + 4 * x.astype(np.float32)
    np.testing.assert_array_equal(device.numpy(out), a.astype(np.float32) @ right + right)


@triton.jit
def gathered_from_one_column(a, b, column, at, out):
    m, n, k = tl.arange(0, 64)[:, None], tl.arange(0, 16)[None, :], tl.arange(0, 64)
    first = tl.arange(0, 1)[None, :]
    gathered = tl.gather(tl.load(column + m + first), tl.load(at + m + first), axis=1)
    d = tl.dot(tl.load(a + m * 64 + k[None, :]), tl.load(b + k[:, None] * 16 + n)) + gathered
    tl.store(out + m * 16 + n, d)


def test_gathers_from_columns_of_one_element(device):
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-2, 3, s).astype(np.float16) for s in ((64, 64), (64, 16)))
    column, at = rng.integers(-9, 9, (64, 1)).astype(np.float32), np.zeros((64, 1), np.int32)
    out = device.empty((64, 16), np.float32)
    gathered_from_one_column[(1,)](*map(device.array, (a, b, column, at)), out)
    np.testing.assert_array_equal(device.numpy(out), a.astype(np.float32) @ b.astype(np.float32) + column)


@triton.jit
def products_of_what_a_loop_carries_kernel(a_ptr, b_ptr, c_ptr, n, m, WHERE: tl.constexpr):
    """The left operand is made, in one loop, of what it carries, and read inside of that."""
    i = tl.arange(0, 64)
    at = i[:, None] * 64 + i[None, :]
    acc, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    for t in range(n):
        left = acc + tl.minimum(tl.maximum(acc, -1.0), 1.0)
        product = acc
        if WHERE == "loop":
            for _ in range(m):
                product = tl.dot(left, b, product, input_precision="tf32")
        elif t == 1:
            product = tl.dot(left, b, product, input_precision="tf32")
        if WHERE == "branch behind another product":
            product += tl.dot(left, b, input_precision="tf32")
        acc = tl.minimum(tl.maximum(product, -8.0), 8.0)
    tl.store(c_ptr + at, acc)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("where", ["loop", "branch", "branch behind another product"])
def test_products_of_what_a_loop_carries(device, where, num_warps):
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-2, 3, (64, 64)).astype(np.float32) for _ in range(2))
    out = device.empty((64, 64), np.float32)
    products_of_what_a_loop_carries_kernel[(1,)](
        device.array(a), device.array(b), out, 3, 1, WHERE=where, num_warps=num_warps
    )
    acc = a
    for t in range(3):
        left = acc + np.clip(acc, -1, 1)
        times = (where == "loop" or t == 1) + (where == "branch behind another product")
        acc = np.clip(acc + times * (left @ b), -8, 8)
    np.testing.assert_array_equal(device.numpy(out), acc)


@triton.jit
def looked_at_behind_the_loop(a_ptr, b_ptr, out_ptr, two):
    """What the loop makes of the product, and (by a comparison that LLVM takes from it) the product itself."""
    i, j = tl.arange(0, 64), tl.arange(0, 128)
    at = i[:, None] * 128 + j[None, :]
    acc, b = tl.load(out_ptr + at), tl.load(b_ptr + j[:, None] * 128 + j[None, :])
    for _ in tl.range(0, 3):
        left = tl.load(a_ptr + i[:, None] * 64 + i[None, :])
        right = tl.minimum(tl.maximum(tl.where(acc > 1, acc, 1), -1), 1).to(tl.int8)
        acc = tl.minimum(tl.maximum(tl.dot(left, right, acc), -8), 8)
    left = tl.minimum(tl.maximum(tl.where(acc > 2, acc, 1), -1), 1).to(tl.int8)
    tl.store(out_ptr + at, tl.dot(left, b, tl.full([64, 128], two, tl.int32)))


def test_products_looked_at_behind_the_loop(device):
    rng = np.random.default_rng(8)
    a, b = (rng.integers(-1, 2, (n, n)).astype(np.int8) for n in (64, 128))
    acc = rng.integers(-1, 2, (64, 128)).astype(np.int32)
    out = device.array(acc)
    looked_at_behind_the_loop[(1,)](device.array(a), device.array(b), out, 2, num_stages=1)
    for _ in range(3):
        acc = np.clip(a.astype(np.int32) @ np.clip(np.where(acc > 1, acc, 1), -1, 1) + acc, -8, 8)
    acc = np.clip(np.where(acc > 2, acc, 1), -1, 1) @ b.astype(np.int32) + 2
    np.testing.assert_array_equal(device.numpy(out), acc)


@triton.jit
def constant_in_each_iteration(a_ptr, b_ptr, out_ptr):
    i, j = tl.arange(0, 128), tl.arange(0, 16)
    at = i[:, None] * 128 + i[None, :]
    b = tl.load(b_ptr + j[:, None] * 128 + i[None, :])
    out = tl.load(out_ptr + at)
    for _ in tl.range(0, 2, num_stages=2):
        product = tl.dot(tl.load(a_ptr + at), tl.trans(b), tl.full([128, 16], 1, tl.float32))
        left = tl.minimum(tl.maximum(product, -1.0), 1.0).to(tl.float16)
        out = tl.dot(left, tl.full([16, 128], 1, tl.float16), tl.full([128, 128], 1, tl.float32))
    tl.store(out_ptr + at, out)


def test_accumulators_that_begin_as_a_constant_in_each_iteration(device):
    rng = np.random.default_rng(9)
    a, b = (rng.integers(-1, 2, (n, 128)).astype(np.float16) for n in (128, 16))
    out = device.array(np.zeros((128, 128), np.float32))
    constant_in_each_iteration[(1,)](device.array(a), device.array(b), out, num_stages=1)
    left = np.clip(a.astype(np.float32) @ b.astype(np.float32).T + 1, -1, 1)
    np.testing.assert_array_equal(device.numpy(out), (left.sum(1, keepdims=True) + 1).repeat(128, 1))


@triton.jit
def left_operand_through_two_waits(out_ptr, two):
    i = tl.arange(0, 128)
    at = i[:, None] * 128 + i[None, :]
    out = tl.load(out_ptr + at)
    first = tl.dot(tl.full([128, 128], 1, tl.float16), tl.full([128, 64], 1, tl.float16))
    for t in tl.range(0, 4):
        left = tl.minimum(tl.maximum(first + two, -1.0), 1.0).to(tl.float16)
        out = tl.dot(left, tl.trans(left), out)
        out = tl.dot(
            tl.minimum(tl.maximum(out + t, -1.0), 1.0).to(tl.float16), tl.full([128, 128], 1, tl.float16), out
        )
    tl.store(out_ptr + at, out)


def test_a_left_operand_that_two_waits_have(device):
    acc = np.random.default_rng(10).integers(-99, 9, (128, 128)).astype(np.float32)
    out = device.array(acc)
    left_operand_through_two_waits[(1,)](out, 2, num_stages=1)
    for t in range(4):
        acc = acc + 64
        acc = acc + np.clip(acc + t, -1, 1).sum(1, keepdims=True)
    np.testing.assert_array_equal(device.numpy(out), acc)


@triton.jit
def short_loop_kernel(a_ptr, out_ptr):
    i, j = tl.arange(0, 64), tl.arange(0, 16)
    acc = tl.full([64, 16], 2, tl.float16)
    for _ in tl.range(0, 2, num_stages=4):
        a = tl.load(a_ptr + i[:, None] * 64 + i[None, :])
        acc = tl.dot(a, tl.minimum(tl.maximum(acc, -1.0), 1.0).to(tl.float16), acc, out_dtype=tl.float16)
    tl.store(out_ptr + i[:, None] * 16 + j[None, :], acc)


def test_products_of_results_in_loops_that_could_be_unrolled(device):
    """``ptxas`` took what the second product has of the first one's result for what the first product had."""
    a = np.random.default_rng(12).integers(-1, 2, (64, 64)).astype(np.float16)
    out = device.empty((64, 16), np.float16)
    short_loop_kernel[(1,)](device.array(a), out, num_warps=8)
    acc = np.full((64, 16), 2, np.float16)
    for _ in range(2):
        acc = a @ np.clip(acc, -1, 1) + acc
    np.testing.assert_array_equal(device.numpy(out), acc)


@triton.jit
def read_between_products_kernel(a_ptr, out_ptr):
    i = tl.arange(0, 64)
    at = i[:, None] * 64 + i[None, :]
    a, b = tl.load(a_ptr + at), tl.load(a_ptr + 4096 + at)
    acc = tl.dot(a, b)
    first = tl.minimum(tl.maximum(acc, -1.0), 1.0).to(tl.float16)
    acc = tl.dot(b, a, acc)
    second = tl.minimum(tl.maximum(acc, -1.0), 1.0).to(tl.float16)
    tl.store(out_ptr + at, tl.dot(first, second))


def test_what_is_computed_of_a_result_before_and_behind_another_product(device):
    """``ptxas`` took the second for the first."""
    a, b = np.random.default_rng(13).integers(-1, 2, (2, 64, 64)).astype(np.float32)
    out = device.empty((64, 64), np.float32)
    read_between_products_kernel[(1,)](device.array(np.stack([a, b]).astype(np.float16)), out)
    first = a @ b
    np.testing.assert_array_equal(device.numpy(out), np.clip(first, -1, 1) @ np.clip(first + b @ a, -1, 1))


@triton.jit
def partial_sums_kernel(a_ptr, b_ptr, c_ptr):
    i = tl.arange(0, 64)
    at = i[:, None] * 64 + i[None, :]
    acc = tl.load(a_ptr + at)
    for t in tl.range(0, 2):
        left = tl.minimum(tl.maximum(acc, -1.0), 1.0).to(tl.float8e4nv)
        acc = tl.dot(left, tl.load(b_ptr + t * 4096 + at), max_num_imprecise_acc=32)
    tl.store(c_ptr + at, acc)


def test_products_without_accumulators_in_unrolled_loops():
    """``ptxas`` took those of later iterations for the first one's, and left instructions on nothing in their place."""
    a, b = np.empty((64, 64), np.float32), np.empty((128, 64), ml_dtypes.float8_e4m3fn)
    kernel = partial_sums_kernel.warmup(a, b, a, num_warps=8, num_stages=1, grid=(1,), target="cuda:90")
    products = [line for line in kernel.asm["sass"].splitlines() if "GMMA" in line]
    assert len(products) >= 2 and not any("gdesc[URZ]" in line for line in products), products
