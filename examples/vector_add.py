"""Adds two vectors: the smallest kernel there is."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x, y, out, block: int = 1024, num_warps: int = 4) -> None:
    """out = x + y for contiguous vectors of one length."""
    n = out.shape[0]
    add_kernel[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block, num_warps=num_warps)


def example(device) -> None:
    """Vector addition."""
    rng = np.random.default_rng(0)
    for n, block in ((98432, 1024), (1000, 96), (1, 16)):
        x, y = (rng.standard_normal(n, dtype=np.float32) for _ in range(2))
        out = device.empty(n, np.float32)
        add(device.array(x), device.array(y), out, block)
        np.testing.assert_array_equal(device.numpy(out), x + y)


if __name__ == "__main__":
    from common import run

    run(example)
