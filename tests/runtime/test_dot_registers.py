"""Products by multiply-adds read their operands as they need them."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def products(x, y, out, BATCH: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    b, n, k = tl.arange(0, BATCH)[:, None, None], tl.arange(0, N), tl.arange(0, K)
    left = tl.load(x + b * N * K + n[None, :, None] * K + k[None, None, :])
    right = tl.load(y + b * N * K + k[None, :, None] * N + n[None, None, :])
    tl.store(
        out + b * N * N + n[None, :, None] * N + n[None, None, :], tl.dot(left, right, input_precision="ieee")
    )


def test_one_warp_has_registers_for_a_long_product_of_doubles():
    kernel = products.warmup(
        np.float64, np.float64, np.float64, BATCH=2, N=32, K=64, num_warps=1, grid=(1,), target="cuda:90"
    )
    lines = kernel.asm["ptx"].splitlines()
    reads = [i for i, line in enumerate(lines) if "ld.shared" in line]
    first = next(i for i, line in enumerate(lines) if "fma.rn.f64" in line)
    # Nearly all of them come after the arithmetic began.
    assert sum(i < first for i in reads) * 20 < len(reads)
