"""Functions of elements: ``tl.map_elementwise``."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def collatz(x):
    steps = 0
    while x > 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    return steps, x.to(tl.float32) / 2


@triton.jit
def sign(x, y):
    if x < y:
        return -1
    elif x == y:
        return 0
    else:
        return 1


@triton.jit
def map_kernel(x_ptr, steps_ptr, halves_ptr, signs_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    steps, halves = tl.map_elementwise(collatz, x)
    tl.store(steps_ptr + offsets, steps)
    tl.store(halves_ptr + offsets, halves)
    tl.store(signs_ptr + offsets, tl.map_elementwise(sign, x, 7))


@pytest.mark.parametrize("size", [16, 96, 512])
def test_map_elementwise(device, size):
    x = np.arange(size, dtype=np.int32)
    steps, signs = (device.empty(size, np.int32) for _ in range(2))
    halves = device.empty(size, np.float32)
    map_kernel[(1,)](device.array(x), steps, halves, signs, N=size)

    def count(n):
        steps = 0
        while n > 1:
            n, steps = n // 2 if n % 2 == 0 else 3 * n + 1, steps + 1
        return steps

    np.testing.assert_array_equal(device.numpy(steps), [count(n) for n in range(size)])
    np.testing.assert_array_equal(device.numpy(halves), np.minimum(x, 1) / 2)
    np.testing.assert_array_equal(device.numpy(signs), np.sign(x - 7))


@triton.jit
def packed(a0, a1, b0, b1):
    return a0 // b0, a1 // b1, a0 % b0, a1 % b1


@triton.jit
def pack_kernel(a_ptr, b_ptr, c_ptr, d_ptr, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)
    b = tl.load(b_ptr + tl.arange(0, N))
    c, d = tl.map_elementwise(packed, tl.load(a_ptr + offsets), b[None, :], pack=2)
    tl.store(c_ptr + offsets, c)
    tl.store(d_ptr + offsets, d)


@pytest.mark.parametrize("shape", [(1, 16), (3, 64), (16, 32)])
def test_map_packs(device, shape):
    rng = np.random.default_rng(2)
    a = rng.integers(0, 1000, shape, dtype=np.int32)
    b = rng.integers(1, 30, shape[1], dtype=np.int32)
    c, d = (device.empty(shape, np.int32) for _ in range(2))
    pack_kernel[(1,)](device.array(a), device.array(b), c, d, M=shape[0], N=shape[1])
    np.testing.assert_array_equal(device.numpy(c), a // b)
    np.testing.assert_array_equal(device.numpy(d), a % b)
