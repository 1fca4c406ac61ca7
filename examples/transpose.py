"""Matrix transpose by tiles: rows are read and rows are written, the tile turns in between."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def transpose_kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
    x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask)
    mask = (cols[:, None] < n_cols) & (rows[None, :] < n_rows)
    tl.store(out_ptr + cols[:, None] * n_rows + rows[None, :], tl.trans(x), mask=mask)


def transpose(x, out, tile: tuple[int, int] = (64, 64), num_warps: int = 4) -> None:
    """out[j, i] = x[i, j] for contiguous matrices."""
    n_rows, n_cols = x.shape
    rows, cols = tile
    transpose_kernel[(triton.cdiv(n_cols, cols), triton.cdiv(n_rows, rows))](
        x, out, n_rows, n_cols, ROWS=rows, COLS=cols, num_warps=num_warps
    )


def example(device) -> None:
    """Transposes of matrices that tiles do, and do not, divide."""
    rng = np.random.default_rng(0)
    for shape, tile in (((128, 96), (64, 32)), ((100, 70), (32, 64)), ((48, 200), (48, 40))):
        for dtype in (np.float32, np.float16):
            x = rng.standard_normal(shape).astype(dtype)
            out = device.empty(shape[::-1], dtype)
            transpose(device.array(x), out, tile)
            np.testing.assert_array_equal(device.numpy(out), x.T)


if __name__ == "__main__":
    from common import run

    run(example)
