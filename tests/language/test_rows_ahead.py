"""Loops over rows that run ahead: what a thread copies it reads back itself, so that there is a slot less than stages, and no barrier around it."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def softmax_rows(out_ptr, x_ptr, n_rows, n_cols, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        y = numerator / tl.sum(numerator, axis=0)
        tl.store(out_ptr + row * n_cols + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


def softmax_of(x):
    e = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize(
    ("columns", "block", "dtype", "warps"),
    [
        (1000, 1024, np.float16, 4),
        (600, 640, np.float32, 2),
        (1024, 1024, np.float32, 8),
        (40, 64, np.float16, 4),
    ],
)
def test_softmax(device, columns, block, dtype, warps, rows, stages):
    """Rows of several widths, also ones of which several threads hold an element."""
    x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(dtype)
    out = device.array(np.full(x.shape, np.nan, dtype))
    softmax_rows[(2,)](out, device.array(x), rows, columns, BLOCK=block, STAGES=stages, num_warps=warps)
    np.testing.assert_allclose(
        device.numpy(out), softmax_of(x), rtol=2e-3 if dtype == np.float16 else 1e-5, atol=1e-6
    )


@triton.jit
def several(out, x, y, index, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Rows that are gathered, with elements in the place of masked-off ones that the iteration computes, and a load behind arithmetic."""
    o = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.range(0, n, num_stages=STAGES):
        row = tl.load(index + i)
        a = tl.load(x + row * BLOCK + o, mask=o % 4 < i * 4, other=i + 0.5)
        highest = tl.max(a, axis=0)
        b = tl.load(y + i * BLOCK + o, mask=o < BLOCK - 4 * i, other=highest)
        total += a * 2 + b
        tl.store(out + i * BLOCK + o, total)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("block", [256, 384, 192])
def test_several_loads(device, block, stages):
    n = 5
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-8, 9, (n, block)).astype(np.float32) for _ in range(2))
    index = rng.permutation(n).astype(np.int32)
    out = device.array(np.full((n, block), np.nan, np.float32))
    several[(1,)](out, *(device.array(v) for v in (x, y, index)), n, BLOCK=block, STAGES=stages, num_warps=2)
    o, i = np.arange(block)[None, :], np.arange(n)[:, None]
    a = np.where(o % 4 < i * 4, x[index], i + np.float32(0.5))
    b = np.where(o < block - 4 * i, y, a.max(axis=1, keepdims=True))
    np.testing.assert_array_equal(device.numpy(out), np.cumsum(a * 2 + b, axis=0))


@triton.jit
def padded_product(a, b, out, K, M: tl.constexpr, BK: tl.constexpr):
    i, k = tl.arange(0, M), tl.arange(0, BK)
    acc = tl.zeros((M, M), tl.float32)
    for at in tl.range(0, K, BK, num_stages=3):
        inside = at + k < K
        x = tl.load(a + i[:, None] * K + (at + k)[None, :], mask=inside[None, :], other=1.0)
        y = tl.load(b + (at + k)[:, None] * M + i[None, :], mask=inside[:, None], other=2.0)
        acc = tl.dot(x, y, acc)
    tl.store(out + i[:, None] * M + i[None, :], acc)


@pytest.mark.parametrize("warps", [4, 8])
def test_operands_that_are_padded_with_numbers(device, warps):
    m, k, bk = 64, 72, 32
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, m)))
    out = device.empty((m, m), np.float32)
    padded_product[(1,)](device.array(a), device.array(b), out, k, M=m, BK=bk, num_warps=warps)
    want = a.astype(np.float32) @ b.astype(np.float32) + 2 * (-k % bk)
    np.testing.assert_array_equal(device.numpy(out), want)


def compiled(kernel, *args, **options):
    return kernel.warmup(*args, grid=(132,), target="cuda:90", **options)


def softmax_loop(columns, stages, dtype=tl.float16, **options):
    return compiled(softmax_rows, dtype, dtype, 4096, columns, BLOCK=columns, STAGES=stages, **options)


@pytest.mark.parametrize(("stages", "slots"), [(2, 1), (3, 2), (4, 3)])
@pytest.mark.parametrize("columns", [4096, 8192])
def test_slots_and_barriers(columns, stages, slots):
    """As many barriers as without copies, a slot less than stages, each of which a thread fills by copies of 16 bytes."""
    plain, ahead = (softmax_loop(columns, s, num_warps=8) for s in (1, stages))
    assert ahead.asm["ptx"].count("bar.sync") == plain.asm["ptx"].count("bar.sync")
    assert ahead.metadata.shared - plain.metadata.shared == slots * columns * 2
    assert f"memdesc<{slots}x{columns}xf16" in ahead.asm["ttgir"]
    copies = ahead.asm["ptx"].count("cp.async.cg.shared.global")
    assert copies == stages * columns * 2 // (16 * 8 * 32)
    assert not ahead.metadata.remarks


def test_why_a_number_of_stages_is_not_followed():
    (remark,) = softmax_loop(32768, 8, num_warps=16).metadata.remarks
    assert "num_stages=8 of a loop is 4: there is no room for more in shared memory" in remark
    (remark,) = softmax_loop(65536, 2, tl.float32, num_warps=32).metadata.remarks
    assert "does not make this load run ahead: there is no room for it in shared memory" in remark
    assert "test_rows_ahead.py:" in remark
