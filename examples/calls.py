"""A kernel made of other jitted functions: a gated activation with its bias."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def load_row(ptr, row, cols, n_cols):
    return tl.load(ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)


@triton.jit
def silu(x):
    return x / (1 + tl.exp(-x))


@triton.jit
def gate(x, y, limit: tl.constexpr = None):
    if limit is not None:
        x = tl.minimum(x, limit)
    return silu(x) * y


@triton.jit
def swiglu_kernel(x_ptr, y_ptr, out_ptr, n_cols, LIMIT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = load_row(x_ptr, row, cols, n_cols)
    y = load_row(y_ptr, row, cols, n_cols)
    tl.store(out_ptr + row * n_cols + cols, gate(x, y, limit=LIMIT), mask=cols < n_cols)


def swiglu(x, y, out, limit: float | None = None, block: int | None = None) -> None:
    """out = silu(min(x, limit)) * y over contiguous matrices."""
    n_rows, n_cols = x.shape
    swiglu_kernel[(n_rows,)](x, y, out, n_cols, LIMIT=limit, BLOCK=block or n_cols)


def example(device) -> None:
    """SwiGLU, with and without a limit."""
    rng = np.random.default_rng(0)
    for n_cols, limit in ((256, None), (300, 1.5)):
        x, y = (rng.standard_normal((19, n_cols), dtype=np.float32) for _ in range(2))
        out = device.empty(x.shape, np.float32)
        swiglu(device.array(x), device.array(y), out, limit)
        clipped = x.astype(np.float64) if limit is None else np.minimum(x.astype(np.float64), limit)
        np.testing.assert_allclose(
            device.numpy(out), clipped / (1 + np.exp(-clipped)) * y, rtol=1e-5, atol=1e-6
        )


if __name__ == "__main__":
    from common import run

    run(example)
