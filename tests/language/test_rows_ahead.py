"""Loops over rows that run ahead: what a thread copies it reads back itself, so that there is a slot less than stages, and no barrier around it."""

import numpy as np
import pytest
from rms_norm import rms_norm_kernel
from rope import rope_kernel
from softmax import softmax_kernel
from vector_add import add_kernel

import tilewright as triton
import tilewright.language as tl
from tilewright.tools.tensor_descriptor import TensorDescriptor


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


PERSISTENT = [{"persistent": True, "num_stages": n} for n in (1, 2, 3, 5)]


@pytest.mark.parametrize("options", PERSISTENT)
@pytest.mark.parametrize("ctas", [1, 2, 4, 8])
@pytest.mark.parametrize(("columns", "block"), [(1024, 1024), (1000, 1024), (1000, 1000)])
def test_softmax_of_programs_in_a_row(device, columns, block, ctas, options):
    x = np.random.default_rng(3).standard_normal((7, columns)).astype(np.float16)
    out = device.array(np.full(x.shape, np.nan, np.float16))
    softmax_kernel[(7,)](
        out, device.array(x), columns, columns, columns, BLOCK=block, num_ctas=ctas, **options
    )
    np.testing.assert_allclose(device.numpy(out), softmax_of(x), rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("options", PERSISTENT)
@pytest.mark.parametrize("ctas", [1, 2])
def test_rms_norm_of_programs_in_a_row(device, ctas, options):
    rng = np.random.default_rng(4)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((9, 1000), 1000))
    y = device.array(np.full(x.shape, np.nan, np.float32))
    rms_norm_kernel[(9,)](
        device.array(x), device.array(w), y, 1000, 1e-6, BLOCK=1024, num_ctas=ctas, **options
    )
    want = x / np.sqrt((x.astype(np.float64) ** 2).mean(axis=1, keepdims=True) + 1e-6) * w
    np.testing.assert_allclose(device.numpy(y), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", PERSISTENT)
def test_sum_of_programs_in_a_row(device, options):
    x, y = np.random.default_rng(5).standard_normal((2, 5000)).astype(np.float32)
    out = device.array(np.full(5000, np.nan, np.float32))
    add_kernel[(10,)](device.array(x), device.array(y), out, 5000, BLOCK=512, **options)
    np.testing.assert_array_equal(device.numpy(out), x + y)


@pytest.mark.parametrize("options", PERSISTENT[1:])
def test_rope_of_a_grid_of_two_axes(device, options):
    rng = np.random.default_rng(6)
    tokens, heads, half = 5, 8, 32
    x = rng.standard_normal((tokens, heads, 2 * half)).astype(np.float32)
    cos, sin = rng.standard_normal((2, 3, half)).astype(np.float32)
    out = device.array(np.full(x.shape, np.nan, np.float32))
    args = [device.array(v) for v in (x, cos, sin)]
    rope_kernel[(tokens, 2)](*args, out, 3, heads, HALF=half, HEADS=4, num_warps=2, **options)
    c, s = (v[np.arange(tokens) % 3][:, None, :] for v in (cos, sin))
    want = np.concatenate(
        [x[..., :half] * c - x[..., half:] * s, x[..., half:] * c + x[..., :half] * s], axis=-1
    )
    np.testing.assert_allclose(device.numpy(out), want, rtol=1e-5, atol=1e-5)


@triton.jit
def in_place(x, count, total, n, BLOCK: tl.constexpr):
    """A program reads its row, writes it, and reads it once more; atomic operations tell how often."""
    row, batch = tl.program_id(0), tl.program_id(1)
    o = tl.arange(0, BLOCK)
    at = x + (batch * tl.num_programs(0) + row) * BLOCK + o
    tl.store(at, tl.load(at, mask=o < n, other=7.0) * 2)
    tl.atomic_add(count + row, 1)
    again = tl.load(at, mask=o < n, other=-1.0)
    tl.store(at, again + 1, mask=o < n)
    tl.atomic_add(total + o, again)


@pytest.mark.parametrize("options", PERSISTENT)
def test_rows_in_place(device, options):
    """What a later program loads passes what the ones before store; what a program loads behind its own store does not."""
    rows, batches, n, block = 4, 3, 200, 256
    x = np.random.default_rng(7).integers(-9, 10, (batches * rows, block)).astype(np.float32)
    given, count, total = device.array(x), device.zeros(rows, np.int32), device.zeros(block, np.float32)
    in_place[(rows, batches)](given, count, total, n, BLOCK=block, num_warps=2, **options)
    inside = np.arange(block) < n
    np.testing.assert_array_equal(device.numpy(given), np.where(inside, 2 * x + 1, 14))
    np.testing.assert_array_equal(device.numpy(count), np.full(rows, batches))
    np.testing.assert_array_equal(device.numpy(total), np.where(inside, 2 * x, -1).sum(axis=0))


@triton.jit
def turn_in_place(x, SIZE: tl.constexpr):
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    tile = x + tl.program_id(0) * SIZE * SIZE
    tl.store(tile + j * SIZE + i, tl.load(tile + i * SIZE + j))


@pytest.mark.parametrize("options", PERSISTENT)
def test_blocks_that_are_turned_in_place(device, options):
    """Threads store where others have loaded: these have waited for their copies before."""
    x = np.arange(7 * 32 * 32, dtype=np.float32).reshape(7, 32, 32)
    given = device.array(x)
    turn_in_place[(7,)](given, SIZE=32, **options)
    np.testing.assert_array_equal(device.numpy(given), x.swapaxes(1, 2))


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


@pytest.mark.parametrize(
    ("columns", "ctas", "slots"), [(8192, 1, 2), (65536, 1, 1), (65536, 2, 3), (65536, 4, 7)]
)
def test_slots_of_programs_in_a_row(columns, ctas, slots):
    """As many as the launch says, and no more than there is room for; a CTA of a cluster has its part of a row."""
    stages = 3 if ctas == 1 else 8
    kernel = compiled(
        softmax_kernel, tl.float16, tl.float16, columns, columns, columns, BLOCK=columns, num_warps=16, num_ctas=ctas,
        num_stages=stages, persistent=True,
    )  # fmt: skip
    assert f"memdesc<{slots}x{columns // ctas}xf16" in kernel.asm["ttgir"]
    assert kernel.metadata.shared <= 227 << 10


def test_rows_without_room():
    kernel = compiled(
        softmax_kernel,
        tl.float32,
        tl.float32,
        65536,
        65536,
        65536,
        BLOCK=65536,
        num_warps=32,
        persistent=True,
    )
    assert "cp.async" not in kernel.asm["ptx"]


def test_why_a_number_of_stages_is_not_followed():
    (remark,) = softmax_loop(32768, 8, num_warps=16).metadata.remarks
    assert "num_stages=8 of a loop is 4: there is no room for more in shared memory" in remark
    (remark,) = softmax_loop(65536, 2, tl.float32, num_warps=32).metadata.remarks
    assert "does not make this load run ahead: there is no room for it in shared memory" in remark
    assert "test_rows_ahead.py:" in remark


@triton.jit
def chosen_of_a_block(desc, x_ptr, out_ptr, n, rounds, M: tl.constexpr, N: tl.constexpr, BOTH: tl.constexpr):
    rows, cols = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    for i in tl.range(0, rounds, num_stages=2):
        a = desc.load([i * M, 0])
        at = (i * M + rows) * N + cols
        b = tl.load(x_ptr + at, mask=cols < n, other=a)
        tl.store(out_ptr + at, a + b if BOTH else b)


@pytest.mark.parametrize("both", [False, True])
def test_a_block_in_the_place_of_what_a_mask_leaves_out(device, both):
    m, n, rounds = 16, 64, 3
    rng = np.random.default_rng(0)
    a, x = (rng.standard_normal((rounds * m, n), dtype=np.float32) for _ in range(2))
    out = device.empty(a.shape, np.float32)
    desc = TensorDescriptor.from_tensor(device.array(a), [m, n])
    chosen_of_a_block[(1,)](desc, device.array(x), out, 50, rounds, m, n, both)
    want = np.where(np.arange(n) < 50, x, a)
    np.testing.assert_array_equal(device.numpy(out), a + want if both else want)


@triton.jit
def chosen_of_a_load(x_ptr, y_ptr, out_ptr, n, rounds, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    for i in tl.range(0, rounds, num_stages=3):
        a = tl.load(x_ptr + i * BLOCK + cols)
        b = tl.load(y_ptr + i * BLOCK + cols, mask=cols < n, other=a)
        tl.store(out_ptr + i * BLOCK + cols, b)


def test_a_load_that_only_another_chooses_from_runs_ahead(device):
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((5, 1024), dtype=np.float32) for _ in range(2))
    out = device.empty(x.shape, np.float32)
    kernel = chosen_of_a_load[(1,)](device.array(x), device.array(y), out, 700, 5, 1024)
    np.testing.assert_array_equal(device.numpy(out), np.where(np.arange(1024) < 700, y, x))
    if device.backend == "ptxsim":
        assert kernel.asm["ttgir"].count("ttg.async_copy_global_to_local") == 3 * 2
