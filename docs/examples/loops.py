"""Iteration."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


# %% tl.range
@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    # Python's range does, too; tl.range takes advice: a pipeline of three stages.
    for start in tl.range(0, n, BLOCK, num_stages=3):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0))


x, out = np.random.rand(1000).astype(np.float32), np.zeros(1, np.float32)
total[(1,)](x, out, 1000, BLOCK=64)
np.testing.assert_allclose(out[0], x.sum(), rtol=1e-5)


# %% tl.static_range
@triton.jit
def polynomial(x_ptr, out_ptr, coefficients, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    y = tl.zeros((N,), tl.float32)
    for k in tl.static_range(len(coefficients)):  # unrolled: k may index a tuple
        y = y * x + coefficients[k]
    tl.store(out_ptr + tl.arange(0, N), y)


x, out = np.linspace(0, 1, 8, dtype=np.float32), np.zeros(8, np.float32)
polynomial[(1,)](x, out, (3.0, 2.0, 1.0), N=8)
np.testing.assert_allclose(out, np.polyval([3, 2, 1], x), rtol=1e-6)


# %% tl.condition
@triton.jit
def collatz(n_ptr, steps_ptr):
    n, steps = tl.load(n_ptr), 0
    while tl.condition(n != 1, disable_licm=True):
        n = tl.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps += 1
    tl.store(steps_ptr, steps)


n, steps = np.array([27]), np.array([0])
collatz[(1,)](n, steps)
assert steps[0] == 111
