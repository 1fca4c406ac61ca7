"""Products of what pipes bring, with a softmax between: what the compiler may do later, and what it may not."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def block(M: tl.constexpr, N: tl.constexpr):
    return tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]


@triton.jit
def fill(pipe, x_ptr, t):
    slot = pipe.acquire(t)
    ROWS: tl.constexpr = slot.x.shape[0]
    slot.x.store(tl.load(x_ptr + t * ROWS * 64 + block(ROWS, 64)))
    pipe.commit(t)


@triton.jit
def write(keys, values, side, k_ptr, v_ptr, n, ORDER: tl.constexpr):
    if ORDER == "values ahead":
        fill(values, v_ptr, 0)
    for t in range(n):
        if ORDER == "values first":
            fill(values, v_ptr, t)
            fill(keys, k_ptr, t)
        elif ORDER == "values ahead":
            if t + 1 < n:
                fill(values, v_ptr, t + 1)
            fill(keys, k_ptr, t)
        else:
            fill(keys, k_ptr, t)
            slot = values.acquire(t)
            slot.x.store(tl.load(v_ptr + t * 128 * 64 + block(128, 64)))
            side.slot(t % 2).store(tl.arange(0, 64) * (t + 1))
            values.commit(t)


@triton.jit
def read(keys, values, side, q_ptr, out_ptr, sums_ptr, n, M: tl.constexpr, BESIDE: tl.constexpr):
    q = tl.load(q_ptr + block(M, 64))
    acc = tl.zeros([M, 64], tl.float32)
    sums = tl.zeros([64], tl.int32)
    for t in range(n):
        s = tl.dot(q, tl.trans(keys.wait(t).slot.x.load()))
        keys.release(t)
        p = tl.maximum(s, 0.0).to(tl.float16)
        v = values.wait(t).slot
        if BESIDE:
            sums += side.slot(t % 2).load()
        acc = tl.dot(p, v.x.load(), acc)
        values.release(t)
    tl.store(out_ptr + block(M, 64), acc)
    tl.store(sums_ptr + tl.arange(0, 64), sums)


@triton.jit
def attend(
    q, k, v, out, sums, n, M: tl.constexpr, KEYS: tl.constexpr, VALUES: tl.constexpr, ORDER: tl.constexpr, BESIDE: tl.constexpr,
):  # fmt: skip
    side = tle.gpu.alloc([2, 64], dtype=tl.int32)
    keys = tle.pipe(capacity=KEYS, name="keys", x=tle.gpu.alloc([KEYS, 128, 64], dtype=tl.float16))
    values = tle.pipe(capacity=VALUES, name="values", x=tle.gpu.alloc([VALUES, 128, 64], dtype=tl.float16))
    tle.gpu.warp_specialize(
        [
            (read, (keys.reader(), values.reader(), side, q, out, sums, n, M, BESIDE)),
            (write, (keys.writer(), values.writer(), side, k, v, n, ORDER)),
        ],
        [4],
        [56],
    )


CASES = [
    (1, 1, "values first", False),
    (1, 2, "values first", False),
    (2, 2, "values ahead", False),
    (1, 1, "keys first", False),
    (2, 2, "keys first", True),
]


@pytest.mark.parametrize(("keys", "values", "order", "beside"), CASES)
def test_chained_products(device, keys, values, order, beside):
    """The second product may end in the next iteration, where the writer needs its slot no earlier, and nothing else is behind its wait."""
    rng, n = np.random.default_rng(0), 4
    q, k, v = (rng.integers(-1, 2, (rows, 64)).astype(np.float16) for rows in (64, 128 * n, 128 * n))
    out, sums = device.empty((64, 64), np.float32), device.empty(64, np.int32)
    attend[(1,)](*map(device.array, (q, k, v)), out, sums, n, 64, keys, values, order, beside)
    p = np.maximum(q.astype(np.float32) @ k.T.astype(np.float32), 0)
    want = p @ v.astype(np.float32)
    np.testing.assert_array_equal(device.numpy(out), want)
    np.testing.assert_array_equal(device.numpy(sums), np.arange(64) * (sum(range(1, n + 1)) if beside else 0))


def test_a_product_ends_late():
    """Where it may: the first iteration, and the last product, stand outside of the loop then."""
    products = {}
    for case in CASES:
        args = [np.zeros((128, 64), np.float16)] * 3 + [
            np.zeros((64, 64), np.float32),
            np.zeros(64, np.int32),
        ]
        compiled = attend.warmup(*args, 4, 64, *case, grid=(1,), target="cuda:90")
        products[case] = compiled.asm["ttgir"].count("ttng.warp_group_dot ")
    keys_first = CASES[3]
    assert products.pop(keys_first) > 2 and set(products.values()) == {2}


@triton.jit
def read_two(first, second, q_ptr, out_ptr, n):
    q = tl.load(q_ptr + block(64, 64))
    acc = tl.zeros([64, 64], tl.float32)
    for t in range(n):
        x = first.wait(t).slot.x.load()
        first.release(t)
        acc = tl.dot(q, x, acc)
        y = second.wait(t).slot.x.load()
        acc = tl.maximum(acc, tl.dot(q, y))
        second.release(t)
    tl.store(out_ptr + block(64, 64), acc)


@triton.jit
def write_two(first, second, x_ptr, y_ptr, n):
    fill(first, x_ptr, 0)
    for t in range(n):
        if t + 1 < n:
            fill(first, x_ptr, t + 1)
        fill(second, y_ptr, t)


@triton.jit
def two(x, y, q, out, n):
    first = tle.pipe(capacity=1, name="first", x=tle.gpu.alloc([1, 64, 64], dtype=tl.float16))
    second = tle.pipe(capacity=1, name="second", x=tle.gpu.alloc([1, 64, 64], dtype=tl.float16))
    tle.gpu.warp_specialize(
        [
            (read_two, (first.reader(), second.reader(), q, out, n)),
            (write_two, (first.writer(), second.writer(), x, y, n)),
        ],
        [4],
        [56],
    )


def test_a_release_before_its_product(device):
    """A slot that is released before the product of what was loaded from it is free before another pipe is waited for."""
    rng, n = np.random.default_rng(1), 3
    x, y = (rng.integers(-1, 2, (n, 64, 64)).astype(np.float16) for _ in range(2))
    q = rng.integers(-1, 2, (64, 64)).astype(np.float16)
    out = device.empty((64, 64), np.float32)
    two[(1,)](*map(device.array, (x, y, q)), out, n)
    want = np.zeros((64, 64), np.float32)
    for t in range(n):
        want = np.maximum(want + q.astype(np.float32) @ x[t], q.astype(np.float32) @ y[t].astype(np.float32))
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def fill_with_weights_ahead(rows, weights, a_ptr, b_ptr, n, AHEAD: tl.constexpr):
    """Weights are there as far ahead as there are slots."""
    for t in range(AHEAD):
        fill(weights, b_ptr, t)
    fill(rows, a_ptr, 0)
    for t in range(n):
        if t + AHEAD < n:
            fill(weights, b_ptr, t + AHEAD)
        if t + 1 < n:
            fill(rows, a_ptr, t + 1)


@triton.jit
def add_products(rows, weights, out_ptr, n, M: tl.constexpr):
    total = tl.zeros([M, 64], tl.float32)
    for t in range(n):
        x, y = rows.wait(t).slot.x, weights.wait(t).slot.x
        total = tl.dot(x.load(), y.load(), total)
        rows.release(t)
        weights.release(t)
    tl.store(out_ptr + block(M, 64), total)


@triton.jit
def weights_ahead(a_ptr, b_ptr, out_ptr, n, SLOTS: tl.constexpr, M: tl.constexpr):
    rows = tle.pipe(capacity=2, name="rows", x=tle.gpu.alloc([2, M, 64], dtype=tl.float16))
    weights = tle.pipe(capacity=SLOTS, name="weights", x=tle.gpu.alloc([SLOTS, 64, 64], dtype=tl.float16))
    tle.gpu.warp_specialize(
        [
            (add_products, (rows.reader(), weights.reader(), out_ptr, n, M)),
            (fill_with_weights_ahead, (rows.writer(), weights.writer(), a_ptr, b_ptr, n, SLOTS)),
        ],
        [4],
        [40],
    )


@pytest.mark.parametrize("slots", [2, 3])
def test_weights_that_are_ahead(device, slots):
    # Rows are filled when the next weights are, whose slot the product under way still reads.
    n, m = 5, 64
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (n, m, 64)).astype(np.float16) for _ in range(2))
    out = device.zeros((m, 64), np.float32)
    weights_ahead[(1,)](device.array(a), device.array(b), out, n, slots, m, num_warps=4)
    want = sum(x.astype(np.float32) @ y.astype(np.float32) for x, y in zip(a, b, strict=True))
    np.testing.assert_array_equal(device.numpy(out), want)
