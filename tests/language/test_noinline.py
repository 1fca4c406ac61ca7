"""Functions that stay functions: ``noinline``."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit(noinline=True)
def scaled(x, factor):
    return x * factor


@triton.jit(noinline=True)
def both(x, y):
    return x + y, scaled(x, 2) - y


@triton.jit
def tensors_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    for i in range(1, n):
        x, y = both(x, scaled(x, i))
        x = tl.where(x > 1000, x - 1000, x) + y
    tl.store(out_ptr + offsets, x)


@pytest.mark.parametrize("size", [32, 96, 256])
def test_tensors_in_loops(device, size):
    x = np.arange(size, dtype=np.int32)
    out = device.empty(size, np.int32)
    tensors_kernel[(1,)](device.array(x), out, 4, N=size)
    for i in range(1, 4):
        y = x * i
        x, y = x + y, x * 2 - y
        x = np.where(x > 1000, x - 1000, x) + y
    np.testing.assert_array_equal(device.numpy(out), x)


@triton.jit(noinline=True)
def row_sums(x, scale):
    return tl.sum(x * scale, axis=1)


@triton.jit(noinline=True)
def normalized(x):
    return x - tl.expand_dims(row_sums(x, 0.125), 1)


@triton.jit
def shared_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + i * N + j)
    y = tl.load(y_ptr + i * N + j)
    # Shared memory of the kernel's own lives across the calls, and that of calls of different functions is the same.
    product = tl.dot(normalized(x).to(tl.float16), tl.trans(y))
    sums = row_sums(product, 1.0)
    again = tl.dot(x, normalized(product).to(tl.float16))
    tl.store(out_ptr + i * N + j, again + sums[:, None])


@pytest.mark.parametrize("num_warps", [1, 4])
def test_shared_memory(device, num_warps):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-2, 3, (32, 32)).astype(np.float16) for _ in range(2))
    out = device.empty((32, 32), np.float32)
    shared_kernel[(1,)](device.array(x), device.array(y), out, N=32, num_warps=num_warps)

    def norm(a):
        return a - (a.astype(np.float32) * 0.125).sum(axis=1, keepdims=True)

    product = norm(x.astype(np.float32)).astype(np.float16).astype(np.float32) @ y.T.astype(np.float32)
    again = x.astype(np.float32) @ norm(product).astype(np.float16).astype(np.float32)
    expected = again + product.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(device.numpy(out), expected, rtol=1e-2, atol=0.5)


@triton.jit(noinline=True)
def product(a_ptr, b_ptr, K, N: tl.constexpr, BLOCK: tl.constexpr):
    i, j = tl.arange(0, N), tl.arange(0, BLOCK)
    acc = tl.zeros((N, N), tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + i[:, None] * K + k + j[None, :])
        b = tl.load(b_ptr + (k + j[:, None]) * N + i[None, :])
        acc = tl.dot(a, b, acc)
    return acc


@triton.jit
def products_kernel(a_ptr, b_ptr, c_ptr, K, count, N: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros((N, N), tl.float32)
    for n in range(count):
        acc += product(a_ptr + n * N * K, b_ptr + n * N * K, K, N, BLOCK)
    tl.store(c_ptr + i[:, None] * N + i[None, :], acc)


@pytest.mark.parametrize("num_warps", [4, 8])
def test_pipelined_loop_in_a_function(device, num_warps):
    """The callee's copies and products are in groups of their own, whose waits wait for the caller's, too."""
    rng = np.random.default_rng(1)
    count, n, k = 3, 64, 96
    a = rng.integers(-2, 3, (count, n, k)).astype(np.float16)
    b = rng.integers(-2, 3, (count, k, n)).astype(np.float16)
    c = device.empty((n, n), np.float32)
    products_kernel[(1,)](
        device.array(a), device.array(b), c, k, count, N=n, BLOCK=32, num_warps=num_warps, num_stages=3
    )
    expected = np.einsum("nik,nkj->ij", a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_array_equal(device.numpy(c), expected)


@triton.jit(noinline=True)
def bump(ptr, by):
    value = tl.load(ptr)
    tl.store(ptr, value + by)
    tl.debug_barrier()
    return value


@triton.jit
def memory_kernel(ptr, n):
    last = tl.load(ptr)
    for i in range(n):
        last += bump(ptr, i)
        tl.store(ptr, tl.load(ptr) + 1)
        tl.debug_barrier()
    tl.store(ptr + 1, last)


def test_global_memory(device):
    """A scalar that all threads load and one stores, in the function and around it."""
    ptr = device.array(np.array([5, 0], np.int32))
    memory_kernel[(1,)](ptr, 4)
    value = last = 5
    for i in range(4):
        last += value
        value += i + 1
    np.testing.assert_array_equal(device.numpy(ptr), [value, last])


@triton.jit(noinline=True)
def clamped(x, low, high):
    if high < low:
        return x
    return tl.minimum(tl.maximum(x, low), high)


@triton.jit
def branches_kernel(x_ptr, out_ptr, low, high, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    if low < 10:
        x = clamped(x, low, high)
    tl.store(out_ptr + tl.arange(0, N), x)


@pytest.mark.parametrize("low,high", [(2, 9), (9, 2), (10, 20)])
def test_branches(device, low, high):
    x = np.arange(64, dtype=np.float32)
    out = device.empty(64, np.float32)
    branches_kernel[(1,)](device.array(x), out, low, high, N=64)
    expected = np.clip(x, low, high) if low < 10 and low <= high else x
    np.testing.assert_array_equal(device.numpy(out), expected)


@triton.jit(noinline=True)
def described(ptr, N: tl.constexpr):
    return tl.make_tensor_descriptor(ptr, [N, N], [N, 1], [16, 16])


@triton.jit(noinline=True)
def corner(desc, i):
    return desc.load([i, i])


@triton.jit
def descriptors_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x, out = described(x_ptr, N), described(out_ptr, N)
    for i in range(0, N, 16):
        out.store([i, i], corner(x, i) + 1)


def test_descriptors(device):
    """A function with descriptors is inlined, whatever it says."""
    x = np.arange(32 * 32, dtype=np.float32).reshape(32, 32)
    out = device.array(np.zeros((32, 32), np.float32))
    descriptors_kernel[(1,)](device.array(x), out, N=32)
    expected = np.zeros_like(x)
    for i in (0, 16):
        expected[i : i + 16, i : i + 16] = x[i : i + 16, i : i + 16] + 1
    np.testing.assert_array_equal(device.numpy(out), expected)


@triton.jit(noinline=True)
def halves(x):
    if x.shape[0] == 1:
        return tl.max(x)
    left, right = x.reshape((x.shape[0] // 2, 2)).split()
    return halves(left) + halves(right)


@triton.jit
def halves_kernel(x_ptr, out_ptr, SIZE: tl.constexpr):
    tl.store(out_ptr, halves(tl.load(x_ptr + tl.arange(0, SIZE))))


def test_calls_of_itself(device):
    """A function that calls itself with other shapes is one for each of them."""
    x = np.arange(8, dtype=np.int32)
    out = device.empty(1, np.int32)
    halves_kernel[(1,)](device.array(x), out, 8)
    assert device.numpy(out)[0] == x.sum()


@triton.jit(noinline=True)
def weighted(acc, ptr, k, N: tl.constexpr):
    row = tl.load(ptr + k * N + tl.arange(0, N))
    return acc + tl.sum(row)[None, None], tl.max(row)


@triton.jit
def calls_between_products_kernel(a_ptr, b_ptr, c_ptr, K, N: tl.constexpr, BLOCK: tl.constexpr):
    i, j = tl.arange(0, N), tl.arange(0, BLOCK)
    acc = tl.zeros((N, N), tl.float32)
    most = 0.0
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + i[:, None] * K + k + j[None, :])
        b = tl.load(b_ptr + (k + j[:, None]) * N + i[None, :])
        acc = tl.dot(a, b, acc)
        acc, row = weighted(acc, b_ptr, k, N)
        most = tl.maximum(most, row)
    tl.store(c_ptr + i[:, None] * N + i[None, :], acc + most)


@pytest.mark.parametrize("num_warps", [4, 8])
def test_calls_between_products(device, num_warps):
    """The accumulator goes through the function in each iteration."""
    rng = np.random.default_rng(3)
    n, k, block = 64, 160, 32
    a = rng.integers(-2, 3, (n, k)).astype(np.float16)
    b = rng.integers(-2, 3, (k, n)).astype(np.float16)
    c = device.empty((n, n), np.float32)
    calls_between_products_kernel[(1,)](
        device.array(a), device.array(b), c, k, N=n, BLOCK=block, num_warps=num_warps, num_stages=3
    )
    wide = b.astype(np.float32)
    expected = a.astype(np.float32) @ wide + wide[::block].sum() + max(0, wide[::block].max())
    np.testing.assert_array_equal(device.numpy(c), expected)


@triton.jit(noinline=True)
def put_turned(x_ptr, x, N: tl.constexpr):
    tl.store(x_ptr + (N - 1 - tl.arange(0, N)), x)


@triton.jit(noinline=True)
def get_turned(x_ptr, N: tl.constexpr):
    return tl.load(x_ptr + (N - 1 - tl.arange(0, N)))


@triton.jit
def turned_by_calls(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    put_turned(x_ptr, tl.load(x_ptr + i), N)
    tl.store(x_ptr + i, tl.load(x_ptr + i) * 2)
    x = get_turned(x_ptr, N)
    tl.store(x_ptr + i, x)


def test_what_calls_touch_is_in_order(device):
    x = np.arange(256, dtype=np.int32)
    out = device.array(x.copy())
    turned_by_calls[(1,)](out, 256)
    np.testing.assert_array_equal(device.numpy(out), x * 2)


@triton.jit(noinline=True)
def one_of(x_ptr, y_ptr, first):
    if first:
        p = x_ptr
    else:
        p = y_ptr
    return p


@triton.jit(noinline=True)
def turn(from_ptr, to_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(to_ptr + (N - 1 - i), tl.load(from_ptr + i))


@triton.jit
def pointers_kernel(x_ptr, y_ptr, n, GIVEN: tl.constexpr, N: tl.constexpr):
    if GIVEN:
        turn(x_ptr, x_ptr, N)
        tl.debug_barrier()
        turn(x_ptr, x_ptr + N // 2, N)
    else:
        i = tl.arange(0, N)
        p = one_of(x_ptr, y_ptr, n > 0)
        tl.store(p + (N - 1 - i), tl.load(x_ptr + i))


@pytest.mark.parametrize("given", [True, False])
def test_order_through_pointers_of_calls(device, given):
    size = 256
    x = np.random.default_rng(0).integers(0, 100, 2 * size).astype(np.int32)
    y = device.array(x.copy())
    pointers_kernel[(1,)](y, device.array(x.copy()), 1, given, size)
    x[:size] = x[:size][::-1].copy()
    if given:
        x[size // 2 : size // 2 + size] = x[:size][::-1].copy()
    np.testing.assert_array_equal(device.numpy(y), x)
