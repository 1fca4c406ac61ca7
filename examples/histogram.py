"""A histogram by atomic additions, each element by itself or each tile's counts."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def histogram_kernel(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0)
    tl.atomic_add(bins_ptr + x, 1, mask=mask)


@triton.jit
def histogram_by_tiles_kernel(x_ptr, bins_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    counts = tl.zeros([BINS], tl.int32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        counts += tl.histogram(tl.load(x_ptr + offsets, mask=mask, other=0), BINS, mask=mask)
    tl.atomic_add(bins_ptr + tl.arange(0, BINS), counts)


def histogram(x, bins, block: int = 512, num_warps: int = 4) -> None:
    """bins[v] += how often v occurs in x."""
    n = x.shape[0]
    histogram_kernel[(triton.cdiv(n, block),)](x, bins, n, BLOCK=block, num_warps=num_warps)


def histogram_by_tiles(x, bins, programs: int, block: int = 1024, num_warps: int = 4) -> None:
    """The same by ``programs`` programs that count by themselves first; as many bins as a power of two."""
    histogram_by_tiles_kernel[(programs,)](x, bins, x.shape[0], BINS=bins.shape[0], BLOCK=block, num_warps=num_warps)  # fmt: skip


def example(device) -> None:
    """Histogram of 20000 values in 37 bins, both ways."""
    x = np.random.default_rng(0).integers(0, 37, 20_000).astype(np.int32)
    for block in (512, 480):
        bins = device.zeros(37, np.int32)
        histogram(device.array(x), bins, block)
        np.testing.assert_array_equal(device.numpy(bins), np.bincount(x, minlength=37))
    bins = device.zeros(64, np.int32)
    histogram_by_tiles(device.array(x), bins, 3)
    np.testing.assert_array_equal(device.numpy(bins), np.bincount(x, minlength=64))


if __name__ == "__main__":
    from common import run

    run(example)
