"""A run-time value in a shape."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr, n):
    x = tl.zeros([n], tl.float32)
    tl.store(x_ptr, tl.sum(x))


def call():
    kernel[(1,)](np.zeros(64, np.float32), 32)
