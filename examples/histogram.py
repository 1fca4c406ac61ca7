"""A histogram by atomic additions."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def histogram_kernel(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0)
    tl.atomic_add(bins_ptr + x, 1, mask=mask)


def histogram(x, bins, block: int = 512) -> None:
    """bins[v] += how often v occurs in x."""
    n = x.shape[0]
    histogram_kernel[(triton.cdiv(n, block),)](x, bins, n, BLOCK=block)


def example(device) -> None:
    """Histogram of 20000 values in 37 bins."""
    x = np.random.default_rng(0).integers(0, 37, 20_000).astype(np.int32)
    for block in (512, 480):
        bins = device.zeros(37, np.int32)
        histogram(device.array(x), bins, block)
        np.testing.assert_array_equal(device.numpy(bins), np.bincount(x, minlength=37))


if __name__ == "__main__":
    from common import run

    run(example)
