"""Linear algebra."""

import ml_dtypes
import numpy as np

import tilewright as triton
import tilewright.language as tl


# %% tl.dot
@triton.jit
def matmul(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BLOCK_K):
        left = tl.load(a + i * K + (start + k)[None, :])
        right = tl.load(b + (start + k)[:, None] * N + j)
        acc = tl.dot(left, right, acc)
    tl.store(c + i * N + j, acc)


a = np.random.rand(16, 64).astype(np.float16)
b = np.random.rand(64, 32).astype(np.float16)
c = np.zeros((16, 32), np.float32)
matmul[(1,)](a, b, c, 64, M=16, N=32, BLOCK_K=16)
wanted = a.astype(np.float32) @ b.astype(np.float32)
np.testing.assert_allclose(c, wanted, rtol=1e-5)


# %% tl.dot_scaled
@triton.jit
def scaled(a, scales, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    left = tl.load(a + i * K + tl.arange(0, K)[None, :])
    right = tl.load(b + tl.arange(0, K)[:, None] * N + j)
    # One exponent for 32 elements of a row.
    scale = tl.load(scales + i * (K // 32) + tl.arange(0, K // 32)[None, :])
    tl.store(c + i * N + j, tl.dot_scaled(left, scale, "e4m3", right, None, "bf16"))


a = np.random.rand(16, 64).astype(ml_dtypes.float8_e4m3fn)
exponents = np.random.randint(-2, 3, (16, 2))
b = np.random.rand(64, 16).astype(ml_dtypes.bfloat16)
c = np.zeros((16, 16), np.float32)
scaled[(1,)](a, (exponents + 127).astype(np.uint8), b, c, M=16, N=16, K=64)
a = a.astype(np.float32) * np.exp2(exponents).repeat(32, axis=1)
np.testing.assert_allclose(c, a @ b.astype(np.float32), rtol=1e-4)
