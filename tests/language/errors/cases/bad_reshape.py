"""A reshape that changes the number of elements."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    x = tl.reshape(tl.arange(0, 16), (3, 5))
    tl.store(x_ptr, tl.sum(x))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
