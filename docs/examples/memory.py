"""Memory."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


# %% tl.load, tl.store
@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n  # nothing outside of the arrays is touched
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, 2 * x, mask=mask)


x, out = np.random.rand(1000).astype(np.float32), np.zeros(1000, np.float32)
scale[(triton.cdiv(1000, 256),)](x, out, 1000, BLOCK=256)
np.testing.assert_array_equal(out, 2 * x)


# %% tl.make_block_ptr, tl.advance
@triton.jit
def row_sums(x_ptr, out_ptr, M, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS
    # Of shape (M, N), with strides (N, 1), from (row, 0) on.
    block = tl.make_block_ptr(
        x_ptr, (M, N), (N, 1), (row, 0), (ROWS, COLUMNS), (1, 0)
    )
    total = tl.zeros((ROWS,), tl.float32)
    for _ in range(0, N, COLUMNS):
        x = tl.load(block, boundary_check=(0, 1), padding_option="zero")
        total += tl.sum(x, axis=1)
        block = tl.advance(block, (0, COLUMNS))
    rows = row + tl.arange(0, ROWS)
    tl.store(out_ptr + rows, total, mask=rows < M)


x, out = np.random.rand(10, 100).astype(np.float32), np.zeros(10, np.float32)
row_sums[(2,)](x, out, 10, 100, ROWS=8, COLUMNS=32)
np.testing.assert_allclose(out, x.sum(axis=1), rtol=1e-5)


# %% tl.make_tensor_descriptor
@triton.jit
def add_one(x_ptr, M, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [ROWS, COLUMNS])
    at = [tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS]
    desc.store(at, desc.load(at) + 1)  # blocks may stand out over the edge


x = np.zeros((10, 20), np.float32)
add_one[(2, 2)](x, 10, 20, ROWS=8, COLUMNS=16)
np.testing.assert_array_equal(x, np.ones((10, 20)))


# %% tl.load_tensor_descriptor, tl.store_tensor_descriptor
@triton.jit
def copy_block(x_ptr, out_ptr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [N, N], [N, 1], [N, N])
    target = tl.make_tensor_descriptor(out_ptr, [N, N], [N, 1], [N, N])
    block = tl.load_tensor_descriptor(source, [0, 0])
    tl.store_tensor_descriptor(target, [0, 0], block)


x = np.random.rand(16, 16).astype(np.float32)
out = np.zeros_like(x)
copy_block[(1,)](x, out, N=16)
np.testing.assert_array_equal(out, x)
