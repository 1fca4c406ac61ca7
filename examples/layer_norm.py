"""Layer norm, forward: mean and variance of a row in a loop over tiles, then the normalized row."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def layer_norm_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, n_cols, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n_cols
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        centered = tl.where(cols < n_cols, x - mean, 0.0)
        squares += centered * centered
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / n_cols + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=mask).to(tl.float32)
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * w + b
        tl.store(y_ptr + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def layer_norm(
    x, w, b, y, mean, rstd, eps: float = 1e-5, block: int = 1024, num_warps: int = 4, num_ctas: int = 1
) -> None:
    """y = (x - mean) / sqrt(var + eps) * w + b over the last dimension of a contiguous matrix."""
    n_rows, n_cols = x.shape
    layer_norm_kernel[(n_rows,)](
        x, y, w, b, mean, rstd, n_cols, n_cols, eps, BLOCK=block, num_warps=num_warps, num_ctas=num_ctas
    )


def example(device) -> None:
    """Layer norm over rows whose width is, and is not, a power of two."""
    rng = np.random.default_rng(0)
    for n_cols, block in ((1024, 256), (1000, 192), (77, 80)):
        x = rng.standard_normal((33, n_cols), dtype=np.float32)
        w, b = (rng.standard_normal(n_cols, dtype=np.float32) for _ in range(2))
        y, mean, rstd = (
            device.empty(x.shape, np.float32),
            device.empty(33, np.float32),
            device.empty(33, np.float32),
        )
        layer_norm(device.array(x), device.array(w), device.array(b), y, mean, rstd, block=block)
        x64 = x.astype(np.float64)
        scale = 1 / np.sqrt(x64.var(axis=1, keepdims=True) + 1e-5)
        want = (x64 - x64.mean(axis=1, keepdims=True)) * scale * w + b
        np.testing.assert_allclose(device.numpy(y), want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(device.numpy(mean), x64.mean(axis=1), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(device.numpy(rstd), scale[:, 0], rtol=1e-5)


if __name__ == "__main__":
    from common import run

    run(example)
