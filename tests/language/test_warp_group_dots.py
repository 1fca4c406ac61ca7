"""Matmul and attention with tiles for warp groups (``wgmma`` on sm_90), of every operand type, order and odd factor."""

import agreement
import flash_attention
import matmul
import ml_dtypes
import numpy as np
import pytest

TILES = [
    # (BLOCK_M, BLOCK_N, BLOCK_K), num_warps, num_stages
    ((64, 64, 64), 4, 3),
    ((128, 128, 64), 8, 3),
    ((128, 64, 32), 4, 4),
    ((64, 128, 32), 8, 2),
    ((128, 256, 64), 8, 3),
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


# Causal attention needs a first block that is a multiple of the second.
@pytest.mark.parametrize(
    "d,block,num_warps,num_stages,causal",
    [
        (64, (64, 64), 4, 3, False), (64, (64, 64), 4, 3, True), (128, (128, 64), 8, 3, False),
        (128, (128, 64), 8, 3, True), (64, (64, 128), 4, 2, False),
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
