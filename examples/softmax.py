"""Row-wise softmax in one pass: a row is one tile, of any width."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def softmax_kernel(out_ptr, x_ptr, x_stride, out_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_stride + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x, out, block: int | None = None, num_warps: int = 4, num_ctas: int = 1) -> None:
    """out[i, :] = softmax(x[i, :]). ``block`` is the tile's width: by default exactly the row's."""
    n_rows, n_cols = x.shape
    block = block or n_cols
    softmax_kernel[(n_rows,)](
        out, x, n_cols, n_cols, n_cols, BLOCK=block, num_warps=num_warps, num_ctas=num_ctas
    )


def reference(x: np.ndarray) -> np.ndarray:
    """Softmax in float64."""
    x = x.astype(np.float64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def example(device) -> None:
    """Softmax over rows whose width is, and is not, a power of two."""
    rng = np.random.default_rng(0)
    for n_cols, block in ((1024, None), (1000, None), (781, 1024), (96, None), (1, None)):
        x = rng.standard_normal((67, n_cols), dtype=np.float32)
        out = device.empty(x.shape, np.float32)
        softmax(device.array(x), out, block)
        np.testing.assert_allclose(device.numpy(out), reference(x), rtol=1e-5, atol=1e-7)


if __name__ == "__main__":
    from common import run

    run(example)
