"""A way to divide a product that there is not."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    x = tl.full((16, 16), 1, tl.float16)
    tl.store(x_ptr + tl.arange(0, 16), tl.sum(tl.dot(x, x, tiling="rows"), axis=1))


def call():
    kernel[(1,)](np.zeros(16, np.float32))
