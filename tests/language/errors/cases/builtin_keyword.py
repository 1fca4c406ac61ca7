"""A built-in called with a keyword that it does not have."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    i = tl.arange(0, 64)
    x = tl.load(x_ptr + i, maks=i < 3)
    tl.store(x_ptr + i, x)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
