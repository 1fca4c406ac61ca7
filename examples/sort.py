"""Rows in order: a row as one tile."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def sort_kernel(x_ptr, out_ptr, N: tl.constexpr, ROWS: tl.constexpr, DESCENDING: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = rows[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.sort(tl.load(x_ptr + at), descending=DESCENDING))


def sort(x, out, descending: bool = False, rows: int = 1, num_warps: int = 4) -> None:
    """out[i] = x[i] in order, for a contiguous matrix whose width is a power of two and whose height a multiple of ``rows``."""
    height, n = x.shape
    sort_kernel[(height // rows,)](x, out, N=n, ROWS=rows, DESCENDING=descending, num_warps=num_warps)


def example(device) -> None:
    """Rows of 64 and of 256, up and down."""
    rng = np.random.default_rng(0)
    for n, rows, descending in ((64, 4, False), (256, 1, True)):
        x = rng.standard_normal((8, n), dtype=np.float32)
        out = device.empty(x.shape, np.float32)
        sort(device.array(x), out, descending, rows)
        want = np.sort(x, axis=1)
        np.testing.assert_array_equal(device.numpy(out), want[:, ::-1] if descending else want)


if __name__ == "__main__":
    from common import run

    run(example)
