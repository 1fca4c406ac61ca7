"""Row-wise argmax: the first of the largest elements."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def argmax_kernel(x_ptr, index_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    tl.store(index_ptr + row, tl.argmax(x, axis=0))


def argmax(x, index, block: int | None = None, num_warps: int = 4, num_ctas: int = 1) -> None:
    """index[i] = the first j with the largest x[i, j]."""
    n_rows, n_cols = x.shape
    argmax_kernel[(n_rows,)](x, index, n_cols, BLOCK=block or n_cols, num_warps=num_warps, num_ctas=num_ctas)


def example(device) -> None:
    """Argmax, with ties."""
    rng = np.random.default_rng(0)
    for n_cols, block in ((512, None), (1000, None), (77, 128)):
        x = rng.integers(0, 50, (41, n_cols)).astype(np.float32)
        index = device.empty(41, np.int32)
        argmax(device.array(x), index, block)
        np.testing.assert_array_equal(device.numpy(index), x.argmax(axis=1))


if __name__ == "__main__":
    from common import run

    run(example)
