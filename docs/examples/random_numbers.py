"""Random numbers."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


# %% tl.rand
@triton.jit
def dropout(x_ptr, out_ptr, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p  # the same seed keeps the same elements
    tl.store(out_ptr + i, tl.where(keep, tl.load(x_ptr + i) / (1 - p), 0.0))


x, out = np.ones(4096, np.float32), np.zeros(4096, np.float32)
dropout[(4,)](x, out, 0.25, seed=7, BLOCK=1024)
assert abs((out == 0).mean() - 0.25) < 0.03


# %% tl.randn
@triton.jit
def noise(out_ptr, seed, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.randn(seed, i))


out = np.zeros(4096, np.float32)
noise[(1,)](out, 7, BLOCK=4096)
assert abs(out.mean()) < 0.05 and abs(out.std() - 1) < 0.05


# %% tl.randint
@triton.jit
def dice(out_ptr, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, 1 + tl.randint(seed, i) % 6)


out = np.zeros(6000, np.int32)
dice[(1,)](out, 7, N=6000)
counts = np.bincount(out, minlength=7)
assert counts[0] == 0 and np.abs(counts[1:] - 1000).max() < 150


# %% tl.rand4x, tl.randn4x, tl.randint4x
@triton.jit
def four_at_once(out_ptr, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c, d = tl.rand4x(seed, i)  # for the price of one
    n0, n1, n2, n3 = tl.randn4x(seed + 1, i)
    bits, _, _, _ = tl.randint4x(seed + 2, i)
    tl.store(out_ptr + i, (a + b + c + d) / 4)
    tl.store(out_ptr + N + i, (n0 + n1 + n2 + n3) / 2)
    tl.store(out_ptr + 2 * N + i, (bits & 1).to(tl.float32))


out = np.zeros((3, 4096), np.float32)
four_at_once[(1,)](out, 7, N=4096)
np.testing.assert_allclose(out.mean(axis=1), [0.5, 0, 0.5], atol=0.05)


# %% tl.philox, tl.philox_impl
@triton.jit
def counters(out_ptr, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    zero = i * 0
    word, _, _, _ = tl.philox(seed, i, zero, zero, zero)
    # The same from the key's halves.
    i, zero = i.to(tl.uint32), zero.to(tl.uint32)
    same, _, _, _ = tl.philox_impl(i, zero, zero, zero, zero + 7, zero)
    tl.store(out_ptr + tl.arange(0, N), word)
    tl.store(out_ptr + N + tl.arange(0, N), same)


out = np.zeros((2, 16), np.uint32)
counters[(1,)](out, 7, N=16)
np.testing.assert_array_equal(out[0], out[1])
assert len(set(out[0])) == 16


# %% tl.uint_to_uniform_float, tl.pair_uniform_to_normal
@triton.jit
def normal_pairs(out_ptr, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, _, _ = tl.randint4x(seed, i)
    u, v = tl.uint_to_uniform_float(a), tl.uint_to_uniform_float(b)
    x, y = tl.pair_uniform_to_normal(u, v)
    tl.store(out_ptr + i, x)
    tl.store(out_ptr + N + i, y)


out = np.zeros((2, 4096), np.float32)
normal_pairs[(1,)](out, 7, N=4096)
assert abs(np.corrcoef(out)[0, 1]) < 0.05 and abs(out.std() - 1) < 0.05
