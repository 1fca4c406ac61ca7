"""Cumulative sum along rows: a scan of each tile, and what came before it."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * n_cols
    out_ptr += row * n_cols
    before = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, (before + tl.cumsum(x, axis=0)).to(out_ptr.dtype.element_ty), mask=mask)
        before += tl.sum(x, axis=0)


def cumsum(x, out, block: int = 1024, num_warps: int = 4) -> None:
    """out[i, j] = sum(x[i, : j + 1]) for a contiguous matrix."""
    n_rows, n_cols = x.shape
    cumsum_kernel[(n_rows,)](x, out, n_cols, BLOCK=block, num_warps=num_warps)


def example(device) -> None:
    """Cumulative sums over rows whose width is, and is not, a power of two."""
    rng = np.random.default_rng(0)
    for n_cols, block in ((512, 512), (1000, 256), (200, 200)):
        x = rng.standard_normal((9, n_cols), dtype=np.float32)
        out = device.empty(x.shape, np.float32)
        cumsum(device.array(x), out, block)
        np.testing.assert_allclose(
            device.numpy(out), x.astype(np.float64).cumsum(axis=1), rtol=1e-4, atol=1e-4
        )


if __name__ == "__main__":
    from common import run

    run(example)
