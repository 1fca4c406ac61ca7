"""Arithmetic and math."""

import math

import numpy as np

import tilewright as triton
import tilewright.language as tl


# %% tl.abs
@triton.jit
def distance(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.abs(tl.load(x_ptr + i) - tl.load(y_ptr + i)))


x, y, out = np.arange(8), np.full(8, 4), np.zeros(8, np.int64)
distance[(1,)](x, y, out, N=8)
np.testing.assert_array_equal(out, np.abs(x - y))


# %% tl.add, tl.sub, tl.mul
@triton.jit
def hash_of(x_ptr, out_ptr, N: tl.constexpr):
    # The operators as functions: with debug=True these are not to be checked.
    x = tl.load(x_ptr + tl.arange(0, N))
    x = tl.mul(x, 0x9E3779B1, sanitize_overflow=False)
    x = tl.add(x, 12345, sanitize_overflow=False)
    tl.store(out_ptr + tl.arange(0, N), tl.sub(x, 1))


x, out = np.arange(8, dtype=np.uint32), np.zeros(8, np.uint32)
hash_of[(1,)](x, out, N=8)
np.testing.assert_array_equal(out, x * np.uint32(0x9E3779B1) + np.uint32(12344))


# %% tl.cdiv
@triton.jit
def blocks_of(n_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.cdiv(tl.load(n_ptr), BLOCK))


n, out = np.array([1000]), np.array([0])
blocks_of[(1,)](n, out, BLOCK=256)
assert out[0] == 4


# %% tl.ceil, tl.floor
@triton.jit
def bounds(x_ptr, low_ptr, high_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(low_ptr + i, tl.floor(x))
    tl.store(high_ptr + i, tl.ceil(x))


x = np.array([-1.5, 0.0, 2.25, 7.0], np.float32)
low, high = np.zeros(4, np.float32), np.zeros(4, np.float32)
bounds[(1,)](x, low, high, N=4)
np.testing.assert_array_equal([low, high], [np.floor(x), np.ceil(x)])


# %% tl.clamp
@triton.jit
def limit(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, N), tl.clamp(x, -1.0, 1.0))


x, out = np.linspace(-2, 2, 8, dtype=np.float32), np.zeros(8, np.float32)
limit[(1,)](x, out, N=8)
np.testing.assert_array_equal(out, np.clip(x, -1, 1))


# %% tl.maximum, tl.minimum, tl.PropagateNan
@triton.jit
def extremes(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(out_ptr + i, tl.maximum(x, y))
    tl.store(out_ptr + N + i, tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL))


x = np.array([1, 5, np.nan, 2], np.float32)
y = np.array([2, 3, 4, 2], np.float32)
out = np.zeros((2, 4), np.float32)
extremes[(1,)](x, y, out, N=4)
np.testing.assert_array_equal(out, [[2, 5, 4, 2], [1, 3, np.nan, 2]])


# %% tl.cos, tl.sin
@triton.jit
def turn(angle_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    angle = tl.load(angle_ptr + i)
    tl.store(out_ptr + i, tl.cos(angle))
    tl.store(out_ptr + N + i, tl.sin(angle))


angle = np.linspace(0, 6, 8, dtype=np.float32)
out = np.zeros((2, 8), np.float32)
turn[(1,)](angle, out, N=8)
np.testing.assert_allclose(out, [np.cos(angle), np.sin(angle)], atol=1e-6)


# %% tl.exp, tl.exp2, tl.log, tl.log2
@triton.jit
def exponentials(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.exp(x))
    tl.store(out_ptr + N + i, tl.exp2(x))
    tl.store(out_ptr + 2 * N + i, tl.log(x))
    tl.store(out_ptr + 3 * N + i, tl.log2(x))


x, out = np.linspace(0.5, 4, 8, dtype=np.float32), np.zeros((4, 8), np.float32)
exponentials[(1,)](x, out, N=8)
wanted = [np.exp(x), np.exp2(x), np.log(x), np.log2(x)]
np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-6)


# %% tl.div_rn, tl.fdiv
@triton.jit
def quotients(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(out_ptr + i, tl.div_rn(x, y))  # rounded as IEEE 754 says
    tl.store(out_ptr + N + i, tl.fdiv(x, y))  # as fast as the hardware can


x = np.random.rand(8).astype(np.float32)
y = np.random.rand(8).astype(np.float32) + 1
out = np.zeros((2, 8), np.float32)
quotients[(1,)](x, y, out, N=8)
np.testing.assert_array_equal(out[0], x / y)
np.testing.assert_allclose(out[1], x / y, rtol=1e-6)


# %% tl.erf
@triton.jit
def gelu(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    y = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + tl.arange(0, N), y)


x, out = np.linspace(-2, 2, 8, dtype=np.float32), np.zeros(8, np.float32)
gelu[(1,)](x, out, N=8)
wanted = [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x]
np.testing.assert_allclose(out, wanted, atol=1e-6)


# %% tl.fma
@triton.jit
def horner(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    # 3x² + 2x + 1, with one rounding a step.
    tl.store(out_ptr + tl.arange(0, N), tl.fma(tl.fma(x, 3.0, 2.0), x, 1.0))


x, out = np.linspace(0, 1, 8, dtype=np.float32), np.zeros(8, np.float32)
horner[(1,)](x, out, N=8)
np.testing.assert_allclose(out, 3 * x * x + 2 * x + 1, rtol=1e-6)


# %% tl.rsqrt, tl.sqrt, tl.sqrt_rn
@triton.jit
def roots(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.sqrt_rn(x))  # rounded as IEEE 754 says
    tl.store(out_ptr + N + i, tl.sqrt(x))
    tl.store(out_ptr + 2 * N + i, tl.rsqrt(x))


x, out = np.linspace(1, 9, 8, dtype=np.float32), np.zeros((3, 8), np.float32)
roots[(1,)](x, out, N=8)
np.testing.assert_array_equal(out[0], np.sqrt(x))
np.testing.assert_allclose(out[1:], [np.sqrt(x), 1 / np.sqrt(x)], rtol=1e-6)


# %% tl.sigmoid
@triton.jit
def silu(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, N), x * tl.sigmoid(x))


x, out = np.linspace(-4, 4, 8, dtype=np.float32), np.zeros(8, np.float32)
silu[(1,)](x, out, N=8)
np.testing.assert_allclose(out, x / (1 + np.exp(-x)), rtol=1e-5)


# %% tl.softmax
@triton.jit
def attention_weights(x_ptr, out_ptr, N: tl.constexpr):
    row = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + row, tl.softmax(tl.load(x_ptr + row)))


x, out = np.random.rand(4, 16).astype(np.float32), np.zeros((4, 16), np.float32)
attention_weights[(4,)](x, out, N=16)
weights = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
np.testing.assert_allclose(out, weights, rtol=1e-5)


# %% tl.umulhi
@triton.jit
def scale_to(x_ptr, out_ptr, limit, N: tl.constexpr):
    # Random bits to numbers below a limit, without a division.
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, N), tl.umulhi(x, limit.to(tl.uint32)))


x, out = np.random.randint(0, 2**32, 8, dtype=np.uint32), np.zeros(8, np.uint32)
scale_to[(1,)](x, out, 6, N=8)
np.testing.assert_array_equal(out, x.astype(np.uint64) * 6 >> 32)
