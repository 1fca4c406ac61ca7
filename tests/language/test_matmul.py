"""Matmul over dtypes, shapes, strides and tiles."""

import agreement
import matmul
import ml_dtypes
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl

SHAPES = [((128, 128, 64), (64, 64, 32)), ((201, 170, 99), (96, 80, 48)), ((64, 96, 160), (32, 48, 80))]


def operands(shape, dtype):
    M, N, K = shape
    rng = np.random.default_rng(0)
    if dtype == "int8":
        return (rng.integers(-128, 128, s).astype(np.int8) for s in ((M, K), (K, N)))
    np_dtype = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "ieee": np.float32}[dtype]
    return (rng.standard_normal(s).astype(np_dtype) for s in ((M, K), (K, N)))


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "tf32", "ieee", "int8"])
@pytest.mark.parametrize("shape,block", SHAPES)
def test_matmul(device, dtype, shape, block):
    a, b = operands(shape, dtype)
    if dtype == "int8":
        c = device.empty((shape[0], shape[1]), np.int32)
        matmul.matmul(device.array(a), device.array(b), c, block)
        np.testing.assert_array_equal(device.numpy(c), a.astype(np.int32) @ b.astype(np.int32))
        return
    if dtype == "tf32":
        device.rounding = agreement.TF32
    c = device.empty((shape[0], shape[1]), np.float32)
    matmul.matmul(device.array(a), device.array(b), c, block, precision="ieee" if dtype == "ieee" else "tf32")
    want = a.astype(np.float64) @ b.astype(np.float64)
    tolerance = {"ieee": 1e-5, "tf32": 2e-3}.get(dtype, 1e-4)
    scale = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    assert np.all(np.abs(device.numpy(c) - want) <= tolerance * scale)


@pytest.mark.parametrize("transposed", ["a", "b", "ab"])
def test_transposed_operands(device, transposed):
    M, N, K = 130, 94, 75
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((M, K), (K, N)))
    x = device.array(a.T).T if "a" in transposed else device.array(a)
    y = device.array(b.T).T if "b" in transposed else device.array(b)
    c = device.empty((M, N), np.float32)
    matmul.matmul(x, y, c, (64, 48, 32))
    np.testing.assert_allclose(
        device.numpy(c), a.astype(np.float64) @ b.astype(np.float64), rtol=1e-3, atol=1e-2
    )


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8])
@pytest.mark.parametrize("num_stages", [1, 2, 4])
def test_warps_and_stages(device, num_warps, num_stages):
    M, N, K = 128, 160, 200
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((M, K), (K, N)))
    c = device.empty((M, N), np.float32)
    matmul.matmul(
        device.array(a), device.array(b), c, (64, 80, 32), num_warps=num_warps, num_stages=num_stages
    )
    np.testing.assert_allclose(
        device.numpy(c), a.astype(np.float64) @ b.astype(np.float64), rtol=1e-3, atol=1e-2
    )


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, PRECISION: tl.constexpr):
    m, k = tl.arange(0, M)[:, None], tl.arange(0, 32)
    a = tl.load(a_ptr + m * 32 + k[None, :])
    b = tl.load(b_ptr + k[:, None] * 32 + k[None, :])
    tl.store(c_ptr + m * 32 + k[None, :], tl.dot(a, b, input_precision=PRECISION))


@pytest.mark.parametrize("rows", [4, 64])
@pytest.mark.parametrize("precision,tolerance", [("tf32x3", 1e-6), ("bf16x3", 3e-5), ("bf16x6", 1e-6)])
def test_composed_products(device, precision, tolerance, rows):
    """Products of parts are as exact as they promise, and infinities and what is no number come out as in one product."""
    device.rounding = 10 * tolerance
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((rows, 32), (32, 32)))
    a[0, 3], a[1, 4], a[2, 5], b[6, 7] = np.inf, -np.inf, np.nan, np.inf
    a[3, 8] = np.finfo(np.float32).max
    c = device.empty((rows, 32), np.float32)
    product_kernel[(1,)](device.array(a), device.array(b), c, rows, precision)
    with np.errstate(invalid="ignore"):
        want = a.astype(np.float64) @ b
    scale = np.abs(np.where(np.isfinite(a), a, 0)).astype(np.float64) @ np.abs(np.where(np.isfinite(b), b, 0))
    got = device.numpy(c)
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    large = np.abs(want) > 1e30
    assert np.all(np.abs(got - want)[finite & ~large] <= tolerance * scale[finite & ~large])
    np.testing.assert_allclose(got[3], want[3].astype(np.float32), rtol=10 * tolerance)


@triton.jit
def batches_kernel(a_ptr, b_ptr, c_ptr, RANK: tl.constexpr, ADD: tl.constexpr):
    at = tl.arange(0, 256 << RANK)
    a = tl.load(a_ptr + at).reshape([2] * (RANK - 2) + [32, 32])
    b = tl.load(b_ptr + at).reshape([2] * (RANK - 2) + [32, 32])
    if ADD:
        c = tl.dot(a, b, acc=tl.dot(a, b))
    else:
        c = tl.dot(a, b)
    tl.store(c_ptr + at, c.reshape([256 << RANK]))


@pytest.mark.parametrize("rank", [3, 4, 5])
@pytest.mark.parametrize("add", [False, True])
def test_batches(device, rank, add):
    """Several dimensions of batches are as good as one."""
    shape = (2,) * (rank - 2) + (32, 32)
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for _ in range(2))
    c = device.empty(shape, np.float32)
    batches_kernel[(1,)](device.array(a), device.array(b), c, rank, add)
    np.testing.assert_array_equal(device.numpy(c), (1 + add) * (a.astype(np.float32) @ b.astype(np.float32)))


@triton.jit
def batched_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_ab, stride_am, stride_bb, stride_bk, BLOCK: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    batch = tl.program_id(2)
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BK)
    a_ptrs = a_ptr + batch.to(tl.int64) * stride_ab + rows[:, None] * stride_am + inner[None, :]
    b_ptrs = b_ptr + batch.to(tl.int64) * stride_bb + inner[:, None] * stride_bk + columns[None, :]
    acc = tl.zeros([BLOCK, BLOCK], tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (inner[None, :] < K - k), other=0)
        b = tl.load(b_ptrs, mask=(inner[:, None] < K - k) & (columns[None, :] < N), other=0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * stride_bk
    c_ptrs = c_ptr + batch.to(tl.int64) * M * N + rows[:, None] * N + columns[None, :]
    tl.store(c_ptrs, acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


@pytest.mark.parametrize("shape", [(3, 128, 128, 96), (2, 100, 80, 48)])
@pytest.mark.parametrize("strides", ["rows", "shared", "backwards", "overlapping"])
def test_batched(device, shape, strides):
    """Matrices of a batch begin at multiples of a stride, which may be 0; rows may overlap, or run backwards, which no tensor map can have."""
    B, M, N, K = shape
    rng = np.random.default_rng(2)
    memory = rng.standard_normal(B * M * K).astype(np.float16)
    b = rng.standard_normal((1 if strides == "shared" else B, K, N)).astype(np.float16)
    stride_ab, stride_am, first = {
        "rows": (M * K, K, 0),
        "shared": (M * K, K, 0),
        "backwards": (M * K, -K, (M - 1) * K),
        "overlapping": (M * K, 16, 0),
    }[strides]
    a = np.stack([[memory[i * stride_ab + first + r * stride_am :][:K] for r in range(M)] for i in range(B)])
    c = device.empty((B, M, N), np.float32)
    batched_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64), B)](
        device.array(memory)[first:], device.array(b), c, M, N, K, stride_ab, stride_am,
        0 if strides == "shared" else K * N, N, BLOCK=64, BK=32,
    )  # fmt: skip
    want = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(device.numpy(c), want, rtol=1e-3, atol=1e-2)


@triton.jit
def blocks_of_bytes_kernel(a_ptr, b_ptr, c_ptr, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    c = tl.zeros((M, N), tl.int32)
    b = tl.load(b_ptr + tl.arange(0, K)[:, None] * N + tl.arange(0, N)[None, :])
    for i in range(n):
        rows = i * (M * K) + tl.arange(0, M)[:, None] * K
        c += tl.dot(tl.load(a_ptr + rows + tl.arange(0, K)[None, :]), b)
    tl.store(c_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], c)


def test_narrow_blocks_of_bytes(device, monkeypatch):
    # On Hopper each block comes by TMA as one matrix of several, to a buffer that is not swizzled.
    if device.backend == "ptxsim":
        monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:90")
    random = np.random.default_rng(0)
    a, b = (random.integers(-8, 9, shape, dtype=np.int8) for shape in ((3, 64, 16), (16, 32)))
    c = device.empty((64, 32), np.int32)
    kernel = blocks_of_bytes_kernel[(1,)](device.array(a), device.array(b), c, 3, 64, 32, 16, num_stages=1)
    if device.backend == "ptxsim":
        assert "tensor<1x64x16xi8" in kernel.asm["ttgir"]
    np.testing.assert_array_equal(device.numpy(c), a.astype(np.int32).sum(0) @ b.astype(np.int32))


@triton.jit
def divided_kernel(
    a_ptr, b_ptr, out_ptr, M, N, K, divisor, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """The rows of program p are those of the tile `p // divisor`."""
    rows = (tl.program_id(0) // divisor) * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=rows[:, None] < M, other=0.0)
        acc = tl.dot(a, tl.load(b_ptr + ks[:, None] * N + columns[None, :]), acc)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc)


@pytest.mark.parametrize("rows", [40, 0, -1])
def test_a_matrix_without_rows(device, monkeypatch, rows):
    # There is no tensor map of it: the launch takes a kernel whose threads load, under masks of which none holds.
    if device.backend == "ptxsim":
        monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:90")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (64, 64)).astype(np.float16) for _ in range(2))
    out = device.empty((64, 64), np.float32)
    divided_kernel[(1,)](device.array(a), device.array(b), out, rows, 64, 64, 1, BM=64, BN=64, BK=32)
    want = np.where(np.arange(64)[:, None] < rows, a.astype(np.float32) @ b.astype(np.float32), 0)
    np.testing.assert_array_equal(device.numpy(out), want)


@pytest.mark.parametrize("divisor", [1, 2, -1])
def test_tiles_in_front_of_a_pointer_by_a_negative_divisor(device, divisor):
    # Blocks by TMA would read zeros there: the launch sees that the divisor is negative, and takes a kernel that loads by threads.
    rng = np.random.default_rng(0)
    all_rows, b = (rng.standard_normal((n, 64)).astype(np.float16) for n in (256, 64))
    all_rows, b = device.array(all_rows), device.array(b)
    out = device.array(np.zeros((128, 64), np.float32))
    kernel = divided_kernel[(2,)](
        all_rows[128:], b, out, 128, 64, 64, divisor, BM=64, BN=64, BK=32, num_warps=4
    )
    first = [64 * (2 + int(p / divisor)) for p in range(2)]
    a = np.concatenate([device.numpy(all_rows)[at : at + 64] for at in first])
    np.testing.assert_allclose(
        device.numpy(out), a.astype(np.float32) @ device.numpy(b).astype(np.float32), rtol=1e-3, atol=1e-3
    )
    if divisor == 2 and device.backend != "interp":
        with pytest.raises(ValueError, match="divides by a number that is negative here"):
            kernel[(2,)](all_rows[128:], b, out, 128, 64, 64, -1)


@triton.jit
def quotients_kernel(table_ptr, out_ptr, n, divisor):
    """A loop and addresses that begin at a quotient of a program's number."""
    first = tl.program_id(0) // divisor
    i = first * 64 + tl.arange(0, 64)
    tl.store(out_ptr + tl.program_id(0) * 65 + tl.arange(0, 64), tl.load(table_ptr + 32 + i // 16))
    count = 0
    for j in range(first, n, 2):
        count += j
    tl.store(out_ptr + tl.program_id(0) * 65 + 64, count)


@pytest.mark.parametrize("divisor", [1, 3, -1])
def test_what_begins_at_a_negative_quotient(device, divisor):
    out = device.array(np.zeros((6, 65), np.int32))
    quotients_kernel[(6,)](device.array(np.arange(64, dtype=np.int32)), out, 20, divisor, num_warps=1)
    for p, row in enumerate(device.numpy(out)):
        first = int(p / divisor)
        np.testing.assert_array_equal(row[:64], 32 + np.trunc((first * 64 + np.arange(64)) / 16))
        assert row[64] == sum(range(first, 20, 2))
