"""RMS norm: a row is one tile, read once."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(y_ptr + row * n_cols + cols, (x * scale * w).to(y_ptr.dtype.element_ty), mask=mask)


def rms_norm(
    x, w, y, eps: float = 1e-6, block: int | None = None, num_warps: int = 4, num_ctas: int = 1
) -> None:
    """y = x / sqrt(mean(x²) + eps) * w over the last dimension of a contiguous matrix."""
    n_rows, n_cols = x.shape
    rms_norm_kernel[(n_rows,)](
        x, w, y, n_cols, eps, BLOCK=block or n_cols, num_warps=num_warps, num_ctas=num_ctas
    )


def example(device) -> None:
    """RMS norm over rows whose width is, and is not, a power of two."""
    rng = np.random.default_rng(0)
    for n_cols, block in ((512, None), (1000, None), (77, 128)):
        x = rng.standard_normal((19, n_cols), dtype=np.float32)
        w = rng.standard_normal(n_cols, dtype=np.float32)
        y = device.empty(x.shape, np.float32)
        rms_norm(device.array(x), device.array(w), y, block=block)
        x64 = x.astype(np.float64)
        want = x64 / np.sqrt((x64 * x64).mean(axis=1, keepdims=True) + 1e-6) * w
        np.testing.assert_allclose(device.numpy(y), want, rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    from common import run

    run(example)
