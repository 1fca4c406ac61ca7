"""What the scalar unit of Ascend's cores does element by element: loads and stores anywhere, elements of buffers, reductions and scans of several tensors. On
the CPU executor and in the simulator, against NumPy."""

import math
import os

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle

UB = tle.dsa.ascend.UB


@pytest.fixture(params=["interp", "npusim"], autouse=True)
def everywhere(request, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", request.param)


def some(*shape, low=-5, high=6, dtype="float32", seed=0):
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


@triton.jit
def anywhere_kernel(x, index, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    j = tl.load(index + i)
    v = tl.load(x + j, (j % 3 != 0) & (i < n), other=-1.0)
    tl.store(out + (i * 7) % N, v, i != 5)


def test_loads_and_stores_anywhere():
    x, index, out = some(100), some(64, low=0, high=100, dtype="int32"), np.zeros(64, np.float32)
    anywhere_kernel[(1,)](x, index, out, 60, 64)
    i = np.arange(64)
    v = np.where((index % 3 != 0) & (i < 60), x[index], -1)
    want = np.zeros(64, np.float32)
    want[i[i != 5] * 7 % 64] = v[i != 5]
    np.testing.assert_array_equal(out, want)


@triton.jit
def rows_kernel(x, index, out, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    row = tl.load(index + tl.program_id(0) * M + i)
    mask = (row >= 0)[:, None] & (j < n)[None, :]
    v = tl.load(x + row[:, None] * n + j[None, :], mask, other=0.0)
    tl.store(out + (tl.program_id(0) * M + i)[:, None] * N + j[None, :], v * 2)


def test_rows_by_their_numbers():
    x, index = some(10, 13), some(24, low=-1, high=10, dtype="int32")
    out = np.zeros((24, 16), np.float32)
    rows_kernel[(3,)](x, index, out, 13, 8, 16)
    want = np.zeros((24, 16), np.float32)
    want[:, :13] = np.where(index[:, None] < 0, 0, x[index] * 2)
    np.testing.assert_array_equal(out, want)


@triton.jit
def histogram_kernel(counts, most, x, N: tl.constexpr):
    at = tl.load(x + tl.program_id(0) * N + tl.arange(0, N))
    tl.atomic_add(counts + at, 1.0, mask=at != 3)
    tl.atomic_max(most + at, tl.arange(0, N))


def test_atomics_anywhere():
    x, counts, most = some(64, low=0, high=8, dtype="int32"), np.zeros(8, np.float32), np.zeros(8, np.int32)
    histogram_kernel[(2,)](counts, most, x, 32)
    want, last = np.bincount(x, minlength=8).astype(np.float32), np.zeros(8, np.int32)
    want[3] = 0
    np.maximum.at(last, x, np.arange(64) % 32)
    np.testing.assert_array_equal(counts, want)
    np.testing.assert_array_equal(most, last)


@triton.jit
def one_number_kernel(x, out, n):
    a = tl.load(x + 3, n > 3, other=7)
    b = tl.load(x + a, a < 2, other=5)
    tl.store(out, a, a > 0)
    tl.store(out + 1, b, a > 100)


@pytest.mark.parametrize("n", [3, 4])
def test_one_number_with_a_mask(n):
    x, out = np.array([10, 20, 30, 1], np.int32), np.zeros(2, np.int32)
    one_number_kernel[(1,)](x, out, n)
    np.testing.assert_array_equal(out, [1 if n > 3 else 7, 0])


@triton.jit
def extremes_kernel(x, at, values, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + j[None, :])
    tl.store(at + i, tl.argmax(v, 1))
    tl.store(at + M + i, tl.argmin(v, 1))
    most, where = tl.max(v, 0, return_indices=True)
    tl.store(values + j, most)
    tl.store(at + 2 * M + j, where)


def test_argmax():
    x, at, values = some(8, 12), np.zeros(28, np.int32), np.zeros(12, np.float32)
    extremes_kernel[(1,)](x, at, values, 8, 12)
    np.testing.assert_array_equal(at, np.concatenate([x.argmax(1), x.argmin(1), x.argmax(0)]))
    np.testing.assert_array_equal(values, x.max(0))


@triton.jit
def _linear(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def _times(a, b):
    return a * b


@triton.jit
def scans_kernel(a, b, out, REVERSE: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x, y = tl.load(a + i), tl.load(b + i)
    p, q = tl.associative_scan((x, y), 0, _linear, reverse=REVERSE)
    tl.store(out + i, p)
    tl.store(out + M * N + i, q)
    tl.store(out + 2 * M * N + tl.arange(0, M), tl.reduce(x, 1, _times))
    tl.store(out + 2 * M * N + M, tl.xor_sum(tl.load(a + tl.arange(0, N)).to(tl.int32), 0).to(tl.float32))


@pytest.mark.parametrize("reverse", [False, True])
def test_scans_of_several_tensors(reverse):
    a, b, out = some(8, 4, low=1, high=3), some(8, 4, seed=1), np.zeros(73, np.float32)
    scans_kernel[(1,)](a, b, out, reverse, 8, 4)
    p, q = (a[::-1].copy(), b[::-1].copy()) if reverse else (a.copy(), b.copy())
    for k in range(1, 8):
        q[k] += q[k - 1] * p[k]
        p[k] *= p[k - 1]
    if reverse:
        p, q = p[::-1], q[::-1]
    last = [np.bitwise_xor.reduce(a[0].astype(np.int32))]
    np.testing.assert_array_equal(out, np.concatenate([p.ravel(), q.ravel(), a.prod(1), last]))


@triton.jit
def elements_kernel(x, index, out, N: tl.constexpr):
    i, r = tl.arange(0, N), tl.arange(0, 4)[:, None]
    buffer = tle.dsa.alloc([4, N], tl.float32, UB)
    tle.dsa.copy(x + r * N + i[None, :], buffer, [4, N])
    j = tl.load(index + i)
    v = tl.load(tle.dsa.local_ptr(buffer, (j % 4, i)))
    tl.store(tle.dsa.local_ptr(buffer, (i * 0 + 1, (i + 1) % N)), v, j > 2)
    one = tl.load(tle.dsa.local_ptr(buffer, (1, 3)))
    tl.store(tle.dsa.local_ptr(buffer, (2, 0)), one * 2)
    tle.dsa.copy(buffer, out + r * N + i[None, :], [4, N])
    tl.store(out + 4 * N + i, v)


def test_elements_of_a_buffer():
    x, index, out = some(4, 16), some(16, low=0, high=9, dtype="int32"), np.zeros((5, 16), np.float32)
    elements_kernel[(1,)](x, index, out, 16)
    i, want = np.arange(16), x.copy()
    v = want[index % 4, i]
    want[1, (i[index > 2] + 1) % 16] = v[index > 2]
    want[2, 0] = want[1, 3] * 2
    np.testing.assert_array_equal(out, np.concatenate([want, v[None]]))


@triton.jit
def halves_kernel(x, out, N: tl.constexpr):
    i, h = tl.arange(0, N), tl.arange(0, N // 2)
    a, b = tl.split(tl.reshape(tl.load(x + i), (N // 2, 2)))
    tl.store(out + i, tl.reshape(tl.join(b, a * 2), (N,)))
    tl.store(out + N + h, a - b)


def test_split_and_join():
    x, out = some(32), np.zeros(48, np.float32)
    halves_kernel[(1,)](x, out, 32)
    a, b = x[::2], x[1::2]
    np.testing.assert_array_equal(out, np.concatenate([np.stack([b, a * 2], 1).ravel(), a - b]))


@triton.jit
def bits_kernel(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i, i < n)
    tl.store(out + i, (v << 2) ^ (v >> 1), i < n)
    tl.store(out + N + i, v % 7, i < n)


def test_arithmetic_without_instructions_of_vectors():
    x, out = some(32, low=-100, high=100, dtype="int32"), np.zeros(64, np.int32)
    bits_kernel[(1,)](x, out, 20, 32)
    want = np.zeros(64, np.int32)
    want[:20], want[32:52] = (x << 2 ^ x >> 1)[:20], np.fmod(x, 7)[:20]
    np.testing.assert_array_equal(out, want)


@triton.jit
def batches_kernel(a, b, c, out, B: tl.constexpr, M: tl.constexpr):
    i = tl.arange(0, B)[:, None, None] * M * M
    at = i + tl.arange(0, M)[None, :, None] * M + tl.arange(0, M)[None, None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at), tl.load(c + at)))


def test_products_of_several_matrices():
    a, b = (some(2, 16, 16, low=-3, high=4, dtype="float16", seed=k) for k in (0, 1))
    c, out = some(2, 16, 16), np.zeros((2, 16, 16), np.float32)
    batches_kernel[(1,)](a, b, c, out, 2, 16)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32) + c)


@triton.jit
def gathered_product_kernel(x, index, w, lengths, out, N: tl.constexpr):
    i, k = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    # How many blocks there are the vectors say.
    blocks = tl.max(tl.load(lengths + tl.arange(0, 8)), 0)
    acc = tl.zeros((N, N), tl.float32)
    for block in range(blocks):
        row = tl.load(index + block * N + tl.arange(0, N))
        a = tl.load(x + row[:, None] * N + k)
        acc = tl.dot(a, tl.load(w + (block * N + i) * N + k), acc)
    tl.store(out + i * N + k, acc)


@pytest.mark.parametrize("blocks", [0, 1, 3])
def test_numbers_of_vectors_that_products_need(blocks):
    x, w = (
        some(40, 16, low=-3, high=4, dtype="float16"),
        some(64, 16, low=-3, high=4, dtype="float16", seed=1),
    )
    index = some(64, low=0, high=40, dtype="int32")
    lengths, out = np.array([0, blocks, 0, 0, 0, 0, 0, 0], np.int32), np.zeros((16, 16), np.float32)
    gathered_product_kernel[(1,)](x, index, w, lengths, out, 16)
    want = np.zeros((16, 16), np.float32)
    for k in range(blocks):
        rows = slice(16 * k, 16 * k + 16)
        want += x[index[rows]].astype(np.float32) @ w[rows].astype(np.float32)
    np.testing.assert_array_equal(out, want)


@triton.jit
def chain_kernel(x, w, out, N: tl.constexpr, STEPS: tl.constexpr):
    i, k = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a = tl.load(x + i * N + k)
    b = tl.load(w + i * N + k)
    for _ in tl.static_range(STEPS):
        s = tl.dot(a, b)
        a = tl.minimum(tl.maximum(s, -4.0), 4.0).to(tl.float16)
    tl.store(out + i * N + k, a)


def test_more_than_all_flags_between_cores():
    x, w = (some(16, 16, low=-1, high=2, dtype="float16", seed=k) for k in (0, 1))
    out = np.zeros((16, 16), np.float16)
    chain_kernel[(1,)](x, w, out, 16, 20)
    a = x
    for _ in range(20):
        a = np.clip(a.astype(np.float32) @ w.astype(np.float32), -4, 4).astype(np.float16)
    np.testing.assert_array_equal(out, a)


@triton.jit
def places_kernel(x, index, out, counter, flags, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    # Each program has a row of the result, in the order in which they come.
    row = tl.atomic_add(counter, 1)
    tl.store(out + row * N + tl.arange(0, N), tl.load(x + i))
    at = tl.load(index + i)
    old = tl.atomic_add(counter + 1 + at, 10, mask=at != 2)
    tl.store(flags + i, old)
    tl.atomic_or(counter + 9, 1 << tl.program_id(0))
    swapped = tl.atomic_cas(counter + 10, row, row + 1)
    tl.store(flags + 64 + row, swapped)
    tl.store(flags + 70 + row, tl.atomic_xchg(counter + 11, row))


def test_what_lay_there_before():
    x, index = some(64), some(64, low=0, high=8, dtype="int32")
    out, counter, flags = np.zeros((4, 16), np.float32), np.zeros(12, np.int32), np.full(76, -1, np.int32)
    counter[11] = 99
    places_kernel[(4,)](x, index, out, counter, flags, 16)
    order = np.argsort([np.flatnonzero((out == row).all(1))[0] for row in x.reshape(4, 16)])
    np.testing.assert_array_equal(out, x.reshape(4, 16)[order])
    counts = np.bincount(index, minlength=8) * 10
    counts[2] = 0
    np.testing.assert_array_equal(counter[:10], [4, *counts, 15])
    # Each of those with the same index got another number.
    for k in set(range(8)) - {2}:
        np.testing.assert_array_equal(np.sort(flags[:64][index == k]), np.arange(0, counts[k], 10))
    # Programs of the executor may overtake each other between two atomic operations.
    if os.environ["TILEWRIGHT_BACKEND"] == "npusim":
        np.testing.assert_array_equal(counter[10:], [4, 3])
        np.testing.assert_array_equal(flags[64:68], np.arange(4))
        np.testing.assert_array_equal(flags[70:74], [99, 0, 1, 2])


@triton.jit
def queued_products_kernel(x, w, out, counter, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    # Which block it is to do, the cube core must know, too.
    block = tl.atomic_add(counter, 1)
    tl.store(out + block * N * N + at, tl.dot(tl.load(x + block * N * N + at), tl.load(w + at)))


def test_a_queue_of_products():
    x, w = (
        some(3, 16, 16, low=-3, high=4, dtype="float16"),
        some(16, 16, low=-3, high=4, dtype="float16", seed=1),
    )
    out, counter = np.zeros((3, 16, 16), np.float32), np.zeros(1, np.int32)
    queued_products_kernel[(3,)](x, w, out, counter, 16)
    np.testing.assert_array_equal(out, x.astype(np.float32) @ w.astype(np.float32))
    assert counter[0] == 3


@triton.jit
def more_kernel(x, out, bits, counts, halves, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, tl.floor(v) + tl.ceil(v) * 100)
    tl.store(out + N + i, tl.clamp(v, -1.5, 2.0))
    tl.store(bits + i, v.to(tl.int32, bitcast=True) ^ 1)
    tl.store(counts + tl.arange(0, 8), tl.histogram(v.to(tl.int32), 8, mask=v >= 0))
    tl.store(halves + i, tl.umulhi((v * 1e8).to(tl.int64).to(tl.uint32), 3000000001))
    tl.store(out + 2 * N + i, v.to(tl.float16, fp_downcast_rounding="rtz").to(tl.float32))


def test_what_vectors_and_numbers_may_be_made_of():
    x = np.random.default_rng(3).uniform(-7, 7, 64).astype("float32")
    out, bits = np.zeros((3, 64), "float32"), np.zeros(64, "int32")
    counts, halves = np.zeros(8, "int32"), np.zeros(64, "uint32")
    more_kernel[(1,)](x, out, bits, counts, halves, 64)
    np.testing.assert_array_equal(out[0], np.floor(x) + np.ceil(x) * 100)
    np.testing.assert_array_equal(out[1], np.clip(x, -1.5, 2))
    np.testing.assert_array_equal(bits, x.view("int32") ^ 1)
    np.testing.assert_array_equal(counts, np.bincount(x[x >= 0].astype(int), minlength=8))
    factors = (x * np.float32(1e8)).astype(np.int64).astype(np.uint32).astype(np.uint64)
    np.testing.assert_array_equal(halves, (factors * 3000000001 >> 32).astype(np.uint32))
    nearest = x.astype("float16").astype("float32")
    towards_zero = np.where(abs(nearest) > abs(x), np.nextafter(x.astype("float16"), np.float16(0)), nearest)
    np.testing.assert_array_equal(out[2], towards_zero)


@triton.jit
def swapped_kernel(x, out):
    # Zeros of both signs are not the same bits.
    tl.store(out, tl.atomic_cas(x, 0.0, 5.0))
    tl.store(out + 1, tl.atomic_cas(x + 1, 0.0, 5.0))


def test_floats_are_compared_by_their_bits():
    x, out = np.array([0.0, -0.0], "float32"), np.ones(2, "float32")
    swapped_kernel[(1,)](x, out)
    np.testing.assert_array_equal(x, [5, -0.0])
    np.testing.assert_array_equal(np.signbit(out), [False, True])


@triton.jit(noinline=True)
def twice(v):
    return v * 2


@triton.jit
def counted_kernel(x, out, limit, N: tl.constexpr):
    steps = 0
    most = tl.max(tl.load(x + tl.arange(0, N)), 0)
    while most > limit:
        v = tl.load(x + tl.arange(0, N)) * 0.5
        tl.store(x + tl.arange(0, N), v)
        most = tl.max(v, 0)
        steps += 1
    tl.store(out, steps)
    tl.store(x + tl.arange(0, N), twice(tl.load(x + tl.arange(0, N))))


@pytest.mark.parametrize("limit", [1.0, 100.0])
def test_loops_with_a_condition(limit):
    x, out = some(32, low=1, high=40), np.full(1, -1, np.int32)
    want, steps = x.copy(), 0
    while want.max() > limit:
        want, steps = want * 0.5, steps + 1
    counted_kernel[(1,)](x, out, limit, 32)
    assert out[0] == steps
    np.testing.assert_array_equal(x, want * 2)


@triton.jit
def growing_kernel(x, out, limit, rounds, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(x + N + i)
    while tl.max(a, 0) < limit:
        a, b = b, a + b
    step = 0
    while step < rounds:
        b = b * 2 + step
        step += 1
    tl.store(out + i, a)
    tl.store(out + N + i, b)


@pytest.mark.parametrize(("limit", "rounds"), [(0.0, 0), (50.0, 1), (500.0, 3)])
def test_tensors_that_a_loop_with_a_condition_carries(limit, rounds):
    x, out = some(64, low=1, high=9), np.zeros(64, np.float32)
    growing_kernel[(1,)](x, out, limit, rounds, 32)
    a, b = x[:32], x[32:]
    while a.max() < limit:
        a, b = b, a + b
    for step in range(rounds):
        b = b * 2 + step
    np.testing.assert_array_equal(out, np.concatenate([a, b]))


@triton.jit
def same_number_kernel(x, out, s, bits, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.full((N,), 1.0, tl.float32) * s
    same = (tl.zeros((N,), tl.int32) + bits).to(tl.float32, bitcast=True)
    total = tl.exp(v) + tl.floor(v) + tl.clamp(v, 0.0, 2.0) + tl.fma(v, v, v) + tl.erf(v) + same
    tl.store(out + i, tl.load(x + i) + total)


def test_functions_of_a_tensor_that_is_one_number():
    x, out, s = some(32), np.zeros(32, np.float32), np.float32(2.25)
    same_number_kernel[(1,)](x, out, s, 0x3F800000, 32)
    want = x + np.exp(s) + 2 + 2 + (s * s + s) + math.erf(s) + 1
    np.testing.assert_allclose(out, want, rtol=1e-6)


@triton.jit
def growing_product_kernel(a, x, out, steps, limit):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    left = tl.load(a + i * 16 + j).to(tl.float16)
    v = tl.load(x + i * 16 + j)
    n = 0
    while tl.max(tl.max(v, 1), 0) < limit:
        v = tl.dot(left, v.to(tl.float16)) + v
        n += 1
    tl.store(out + i * 16 + j, v)
    tl.store(steps, n)


@pytest.mark.parametrize("limit", [0.0, 30.0, 900.0])
def test_products_as_long_as_vectors_say(limit):
    a, x = some(16, 16, low=0, high=3), some(16, 16, low=1, high=3, seed=1)
    out, steps = np.zeros_like(x), np.zeros(1, np.int32)
    growing_product_kernel[(1,)](a, x, out, steps, limit)
    want, n = x, 0
    while want.max() < limit:
        want, n = a @ want + want, n + 1
    np.testing.assert_array_equal(out, want)
    assert steps[0] == n


@triton.jit
def counted_products_kernel(a, b, out, n, m):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    for r in tl.range(0, m, num_stages=2):
        total = tl.zeros((16, 16), tl.float32)
        k = 0
        while k < n:
            for q in range(2):
                left = tl.load(a + (r * 2 + q) * 256 + i * 16 + j)
                total += tl.dot(left, tl.load(b + k * 256 + i * 16 + j))
            k += 1
        tl.store(out + r * 256 + i * 16 + j, total)


@pytest.mark.parametrize(("n", "m"), [(0, 2), (2, 0), (3, 2)])
def test_products_in_a_loop_with_a_condition(n, m):
    a, b = (some(4, 16, 16, low=-3, high=4, dtype="float16", seed=seed) for seed in range(2))
    out = np.ones((2, 16, 16), np.float32)
    counted_products_kernel[(1,)](a, b, out, n, m)
    pairs = a.astype(np.float32).reshape(2, 2, 16, 16).sum(1)
    want = pairs[:m] @ b[:n].astype(np.float32).sum(0)
    np.testing.assert_array_equal(out, np.concatenate([want, np.ones((2 - m, 16, 16), np.float32)]))


@triton.jit
def other_type_kernel(x, out, most, n, N: tl.constexpr):
    i = tl.arange(0, N)
    whole = x.to(tl.pointer_type(tl.int32))
    v = tl.load(whole + i, mask=i < n, other=-1)
    tl.store((out + i).to(tl.pointer_type(tl.int32), bitcast=True), v ^ -2147483648, mask=i != 3)
    tl.atomic_max(most + i % 2, tl.load(x + i))
    tl.store(most + 2, tl.load(whole + 1).to(tl.float32, bitcast=True))


def test_pointers_of_another_type():
    x, out, most = some(32, low=-9), np.zeros(32, np.float32), np.full(3, -5.0, np.float32)
    other_type_kernel[(1,)](x, out, most, 20, 32)
    want = np.where(np.arange(32) < 20, x, np.full(32, -1, np.int32).view(np.float32)).astype(np.float32)
    want = -want
    want[3] = 0
    np.testing.assert_array_equal(out.view(np.int32), want.view(np.int32))
    np.testing.assert_array_equal(most, [max(-5, x[::2].max()), max(-5, x[1::2].max()), x[1]])


@triton.jit
def rounded_sum_kernel(a, b, out, n):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    total = tl.zeros((16, 16), tl.float32)
    for k in range(n):
        left = tl.load(a + k * 256 + i * 16 + j).to(tl.float16)
        total = tl.dot(left, tl.load(b + k * 256 + i * 16 + j).to(tl.float16), total)
    tl.store(out + i * 16 + j, total)


@pytest.mark.parametrize("n", [0, 2])
def test_a_sum_of_products_of_a_type_that_no_pointer_has(n):
    a, b = (some(512, low=-4, high=5, dtype="int32").reshape(2, 16, 16) for _ in range(2))
    out = np.full((16, 16), 7, np.float32)
    rounded_sum_kernel[(1,)](a, b, out, n)
    np.testing.assert_array_equal(out, (a[:n] @ b[:n]).sum(0))


@triton.jit
def doubles_kernel(x, out):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    v = tl.load(x + i * 16 + j)
    tl.store(out + i * 16 + j, tl.dot(v, v))


def test_products_that_the_cube_core_has_not(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "npusim")
    x = np.zeros((16, 16), "float64")
    with pytest.raises(
        triton.CompilationError, match=r"products of f64 on ascend:910b(.|\n)*fp16, bf16, fp32 and int8"
    ):
        doubles_kernel[(1,)](x, x)


@triton.jit
def walking_kernel(x, index, out, rounds, stride, N: tl.constexpr):
    i = tl.arange(0, N)
    p = x + tl.load(index + i)
    total = tl.zeros((N,), tl.float32)
    for r in range(rounds):
        total += tl.load(p, mask=i != r, other=100.0)
        p += stride + i % 2
    tl.store(out + i, total * 2 + tl.load(p))


@pytest.mark.parametrize("rounds", [0, 3])
def test_pointers_to_anywhere_that_a_loop_moves(rounds):
    x, index, out = some(200), some(32, low=0, high=150, dtype="int32"), np.zeros(32, np.float32)
    walking_kernel[(1,)](x, index, out, rounds, 7, 32)
    i, want = np.arange(32), np.zeros(32, np.float32)
    for r in range(rounds):
        want += np.where(i == r, 100, x[index + r * (7 + i % 2)])
    np.testing.assert_array_equal(out, want * 2 + x[index + rounds * (7 + i % 2)])


@triton.jit
def exchanged_kernel(x, index, out, N: tl.constexpr):
    i = tl.arange(0, N)
    p, q = x + tl.load(index + i), x + tl.load(index + N + i)
    for _ in range(3):
        p, q = q, p + 1
    tl.store(out + i, tl.load(p) + tl.load(q))


def test_pointers_that_change_places(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "npusim")
    x, index = some(64), some(64, low=0, high=40, dtype="int32")
    with pytest.raises(triton.CompilationError, match="pointers that a loop carries and that change places"):
        exchanged_kernel[(1,)](x, index, np.zeros(32, np.float32), 32)


@triton.jit
def truths_kernel(x, flags, out, N: tl.constexpr):
    i = tl.arange(0, N)
    taken = tl.load(flags + i)
    tl.store(out + i, tl.where(taken, tl.load(x + i), -1.0))
    tl.store(flags + i, tl.load(x + i) > 0)


def test_truth_values_in_memory():
    x, flags, out = some(32), some(32, low=0, high=2, dtype="bool"), np.zeros(32, np.float32)
    before = flags.copy()
    truths_kernel[(1,)](x, flags, out, 32)
    np.testing.assert_array_equal(out, np.where(before, x, -1))
    np.testing.assert_array_equal(flags, x > 0)


@triton.jit
def shared_kernel(x, out, N: tl.constexpr, BY_POINTERS: tl.constexpr):
    i = tl.arange(0, N)
    held = tle.gpu.alloc([N], tl.float32)
    if BY_POINTERS:
        tl.store(tle.gpu.local_ptr(held), tl.load(x + i))
        tl.store(out + i, tl.load(tle.gpu.local_ptr(held)))
    else:
        held.store(tl.load(x + i))
        tl.store(out + i, held.load())


@pytest.mark.parametrize("by_pointers", [True, False])
def test_the_shared_memory_of_gpus(monkeypatch, by_pointers):
    """There is none: the code had operations that are not of AscendNPU-IR."""
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "npusim")
    with pytest.raises(triton.CompilationError, match="not supported yet: a buffer in the shared memory of"):
        shared_kernel[(1,)](some(64), np.zeros(64, np.float32), 64, by_pointers)
