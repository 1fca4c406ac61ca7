"""Matmul over dtypes, shapes, strides and tiles."""

import agreement
import matmul
import ml_dtypes
import numpy as np
import pytest

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
