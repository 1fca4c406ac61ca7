"""The standard library that is written in the language: sorting, scans, random numbers, grid orders, block pointers."""

from typing import NamedTuple

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def tile(M: tl.constexpr, N: tl.constexpr):
    return tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]


@triton.jit
def sort_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, DESCENDING: tl.constexpr):
    tl.store(out_ptr + tile(M, N), tl.sort(tl.load(x_ptr + tile(M, N)), descending=DESCENDING))


@pytest.mark.parametrize(
    "dtype", [np.float32, np.int32, np.int16, np.float16, np.float64, np.int64, np.uint32, np.uint8]
)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("rows", [4, 1, 12])
def test_sort(device, dtype, descending, rows):
    x = (
        (np.random.default_rng(0).standard_normal((rows, 64)) * 1000)
        .astype(np.int64 if np.dtype(dtype).kind == "u" else dtype)
        .astype(dtype)
    )
    out = device.empty((rows, 64), dtype)
    sort_kernel[(1,)](device.array(x), out, rows, 64, descending)
    expected = np.sort(x, 1)
    np.testing.assert_array_equal(device.numpy(out), expected[:, ::-1] if descending else expected)


@pytest.mark.parametrize(
    "dtype, bits", [(np.float16, np.int16), (np.float32, np.int32), (np.float64, np.int64)]
)
def test_sort_keeps_every_element(device, dtype, bits):
    """NaN compares with nothing, and zeros are equal: each stays as often as it was, in the order of the bits, NaN of either sign last."""
    x = np.random.default_rng(3).standard_normal((2, 64)).astype(dtype)
    x[:, ::7], x[:, 1::9], x[:, 2::9], x[:, 3::16], x[:, 4::32] = np.nan, 0.0, -0.0, np.inf, -np.nan
    out = device.empty(x.shape, dtype)
    sort_kernel[(1,)](device.array(x), out, *x.shape, False)
    top = np.iinfo(bits).max
    key = lambda x: np.where(x.view(bits) < 0, x.view(bits) ^ top, x.view(bits))
    np.testing.assert_array_equal(
        key(device.numpy(out)), np.sort(key(np.where(np.isnan(x), np.abs(x), x)), 1)
    )


@triton.jit
def sort_quotients_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tile(1, N))
    tl.store(out_ptr + tile(1, N), tl.sort(x / x))


def test_sort_of_nan_that_arithmetic_makes(device):
    """0 / 0 has the sign bit on an x86 processor and not on a GPU."""
    x = np.array([[0, 1, 0, 2] * 4], np.float32)
    out = device.empty(x.shape, np.float32)
    sort_quotients_kernel[(1,)](device.array(x), out, 16)
    np.testing.assert_array_equal(device.numpy(out), [[1] * 8 + [np.nan] * 8])


def test_a_single_row_is_a_hypercube_by_itself():
    """Tensors have at most 16 dimensions in compiled code: with one for rows 65,536 elements would have 17."""
    zeros = np.zeros((1, 64), np.float32)
    kernel = sort_kernel.warmup(zeros, zeros, 1, 64, False, grid=(1,), target="cuda:90")
    assert f"tensor<{'2x' * 6}i32>" in kernel.asm["ttir"]


@triton.jit
def topk_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    tl.store(out_ptr + tile(M, K), tl.topk(tl.load(x_ptr + tile(M, N)), K))


@pytest.mark.parametrize("k", [1, 8, 32])
@pytest.mark.parametrize("rows", [4, 1, 3])
def test_topk(device, k, rows):
    x = np.random.default_rng(1).standard_normal((rows, 32)).astype(np.float32)
    out = device.empty((rows, k), np.float32)
    topk_kernel[(1,)](device.array(x), out, rows, 32, k)
    np.testing.assert_array_equal(device.numpy(out), np.sort(x, 1)[:, ::-1][:, :k])


@triton.jit
def merge_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    tl.store(out_ptr + tile(M, N), tl.bitonic_merge(tl.load(x_ptr + tile(M, N))))


def test_more_elements_than_ranks(device):
    # Rows are no part of the hypercube, which would have 17 dimensions.
    x = np.random.default_rng(2).integers(-99, 99, (8192, 16)).astype(np.int8)
    out = device.empty(x.shape, np.int8)
    merge_kernel[(1,)](
        device.array(np.concatenate([np.sort(x[:, :8]), np.sort(x[:, 8:])[:, ::-1]], 1)),
        out,
        *x.shape,
        num_warps=16,
    )
    np.testing.assert_array_equal(device.numpy(out), np.sort(x, 1))


@triton.jit
def flip_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, DIM: tl.constexpr):
    tl.store(out_ptr + tile(M, N), tl.flip(tl.load(x_ptr + tile(M, N)), DIM))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_flip(device, dim):
    x = np.arange(4 * 32, dtype=np.int32).reshape(4, 32)
    out = device.empty((4, 32), np.int32)
    flip_kernel[(1,)](device.array(x), out, 4, 32, dim)
    np.testing.assert_array_equal(device.numpy(out), np.flip(x, dim))


@triton.jit
def cumprod_kernel(
    x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr
):
    tl.store(out_ptr + tile(M, N), tl.cumprod(tl.load(x_ptr + tile(M, N)), AXIS, reverse=REVERSE))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumprod(device, axis, reverse):
    x = np.random.default_rng(2).uniform(0.5, 1.5, (4, 24)).astype(np.float32)
    out = device.empty((4, 24), np.float32)
    cumprod_kernel[(1,)](device.array(x), out, 4, 24, axis, reverse)
    expected = np.cumprod(np.flip(x, axis) if reverse else x, axis)
    expected = np.flip(expected, axis) if reverse else expected
    np.testing.assert_allclose(device.numpy(out), expected, rtol=1e-4)


def philox_reference(seed: int, offset: int) -> list[int]:
    """The words of ten rounds of Philox 4x32, straight from the paper."""
    mask = 0xFFFFFFFF
    c = [offset & mask, offset >> 32 & mask, 0, 0]
    k = [seed & mask, seed >> 32 & mask]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k[0], p1 & mask, p0 >> 32 ^ c[3] ^ k[1], p0 & mask]
        k = [k[0] + 0x9E3779B9 & mask, k[1] + 0xBB67AE85 & mask]
    return c


def uniform_reference(bits: np.ndarray) -> np.ndarray:
    """What a random word is as a number from 0 to 1."""
    folded = bits.view(np.int32)
    folded = np.where(folded < 0, -folded - 1, folded).astype(np.float32)
    return folded * np.float32(4.6566127342e-10)


@triton.jit
def random_kernel(bits_ptr, uniform_ptr, normal_ptr, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(bits_ptr + i, tl.randint(seed, i))
    tl.store(uniform_ptr + i, tl.rand(seed, i))
    tl.store(normal_ptr + i, tl.randn(seed, i))


@pytest.mark.parametrize("seed", [1, 42, 1 << 40 | 7])
def test_random(device, seed):
    n = 4096
    bits, uniform, normal = (device.empty(n, d) for d in (np.uint32, np.float32, np.float32))
    random_kernel[(1,)](bits, uniform, normal, seed, n)
    bits, uniform, normal = (device.numpy(a) for a in (bits, uniform, normal))
    np.testing.assert_array_equal(bits[:64], [philox_reference(seed, i)[0] for i in range(64)])
    np.testing.assert_array_equal(uniform, uniform_reference(bits))
    assert 0 <= uniform.min() and uniform.max() < 1
    assert abs(normal.mean()) < 0.1 and abs(normal.std() - 1) < 0.1


@triton.jit
def four_random_kernel(bits_ptr, uniform_ptr, normal_ptr, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c, d = tl.randint4x(seed, i)
    e, f, g, h = tl.rand4x(seed, i)
    j, k, m, n = tl.randn4x(seed, i)
    tl.store(bits_ptr + i, a)
    tl.store(bits_ptr + N + i, b)
    tl.store(bits_ptr + 2 * N + i, c)
    tl.store(bits_ptr + 3 * N + i, d)
    tl.store(uniform_ptr + i, e)
    tl.store(uniform_ptr + N + i, f)
    tl.store(uniform_ptr + 2 * N + i, g)
    tl.store(uniform_ptr + 3 * N + i, h)
    tl.store(normal_ptr + i, j)
    tl.store(normal_ptr + N + i, k)
    tl.store(normal_ptr + 2 * N + i, m)
    tl.store(normal_ptr + 3 * N + i, n)


@pytest.mark.parametrize("seed", [3, 1 << 40 | 7])
def test_four_random_numbers(device, seed):
    n = 256
    bits, uniform, normal = (device.empty((4, n), d) for d in (np.uint32, np.float32, np.float32))
    four_random_kernel[(1,)](bits, uniform, normal, seed, n)
    bits, uniform, normal = (device.numpy(a) for a in (bits, uniform, normal))
    np.testing.assert_array_equal(bits.T, [philox_reference(seed, i) for i in range(n)])
    np.testing.assert_array_equal(uniform, uniform_reference(bits))
    # Each pair of uniform numbers makes a pair of normal ones (Box and Muller): a radius and an angle.
    for u, v, x, y in ((*uniform[:2], *normal[:2]), (*uniform[2:], *normal[2:])):
        radius = np.sqrt(-2 * np.log(np.maximum(u, 1e-7).astype(np.float64)))
        angle = 2 * np.pi * v.astype(np.float64)
        np.testing.assert_allclose(x, radius * np.cos(angle), atol=1e-5)
        np.testing.assert_allclose(y, radius * np.sin(angle), atol=1e-5)


@triton.jit
def bits_kernel(x_ptr, or_ptr, xor_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    x = tl.load(x_ptr + tile(M, N))
    at = tl.arange(0, N if AXIS == 0 else M)
    tl.store(or_ptr + at, tl.reduce_or(x, AXIS))
    tl.store(xor_ptr + at, tl.xor_sum(x, AXIS))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int64])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_of_bits(device, dtype, axis):
    x = np.random.default_rng(4).integers(0, 100, (8, 48)).astype(dtype)
    x <<= np.arange(48, dtype=dtype) % 2
    results = [device.empty(x.shape[1 - axis], dtype) for _ in range(2)]
    bits_kernel[(1,)](device.array(x), *results, *x.shape, axis)
    for result, function in zip(results, (np.bitwise_or, np.bitwise_xor)):
        np.testing.assert_array_equal(device.numpy(result), function.reduce(x, axis))


@triton.jit
def swizzle_kernel(i_ptr, j_ptr, M, N, GROUP):
    i, j = tl.program_id(0), tl.program_id(1)
    new_i, new_j = tl.swizzle2d(i, j, M, N, GROUP)
    tl.store(i_ptr + i * N + j, new_i)
    tl.store(j_ptr + i * N + j, new_j)


@pytest.mark.parametrize("shape", [(4, 4, 2), (5, 3, 2), (7, 2, 3)])
def test_swizzle2d(device, shape):
    M, N, group = shape
    i, j = device.empty((M, N), np.int32), device.empty((M, N), np.int32)
    swizzle_kernel[(M, N)](i, j, M, N, group)
    bands = [range(start, min(M, start + group)) for start in range(0, M, group)]
    expected = [(row, column) for band in bands for column in range(N) for row in band]
    assert list(zip(device.numpy(i).ravel(), device.numpy(j).ravel(), strict=True)) == expected


@triton.jit
def block_pointer_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr):
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    a = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (row, 0), (BLOCK, BLOCK), (1, 0))
    b = tl.make_block_ptr(b_ptr, (K, N), (N, 1), (0, column), (BLOCK, BLOCK), (1, 0))
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(0, K, BLOCK):
        x = tl.load(a, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(b, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(x, y, acc)
        a = tl.advance(a, (0, BLOCK))
        b = tl.advance(b, (BLOCK, 0))
    c = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (row, column), (BLOCK, BLOCK), (1, 0))
    tl.store(c, acc, boundary_check=(0, 1))


@triton.jit
def descriptor_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr):
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK, BLOCK])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK, BLOCK])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
    c.store([row, column], acc)


@pytest.mark.parametrize("kernel", [block_pointer_kernel, descriptor_kernel])
@pytest.mark.parametrize("block", [16, 48])
def test_blocks_of_a_tensor(device, kernel, block):
    M, N, K = 50, 72, 40  # rows of descriptors are multiples of 16 bytes
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((M, K), (K, N)))
    c = device.empty((M, N), np.float32)
    grid = (triton.cdiv(M, block), triton.cdiv(N, block))
    kernel[grid](device.array(a), device.array(b), c, M, N, K, block)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(device.numpy(c), expected, rtol=1e-3, atol=1e-3)


class Tensor(NamedTuple):
    ptr: object
    shape: tuple


class Function(NamedTuple):
    fn: tl.constexpr
    captured: tuple


@triton.jit
def scale(x, factor_ptr):
    return x * tl.load(factor_ptr)


@triton.jit
def tensor_of(ptr, shape):
    return Tensor(ptr=ptr, shape=shape)


@triton.jit
def named_tuple_kernel(function, x, out_ptr, BLOCK: tl.constexpr):
    x = tensor_of(x.ptr, x.shape)
    tl.static_assert(x[0].dtype.is_ptr())
    i = tl.arange(0, BLOCK)
    values = tl.load(x.ptr + i, mask=i < x.shape[0], other=0)
    tl.store(out_ptr + i, function.fn(values, *function.captured), mask=i < x.shape[0])


def test_named_tuples(device):
    x = np.arange(20, dtype=np.float32)
    out = device.zeros(20, np.float32)
    factor = device.array(np.array([2.5], np.float32))
    named_tuple_kernel[(1,)](Function(scale, (factor,)), Tensor(device.array(x), (17,)), out, 32)
    np.testing.assert_array_equal(device.numpy(out), np.where(x < 17, x * 2.5, 0))
