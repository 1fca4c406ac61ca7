"""A variable with a different type in each branch."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr, n):
    if n > 3:
        y = tl.zeros([16], tl.float32)
    else:
        y = tl.zeros([32], tl.float32)
    tl.store(x_ptr, tl.sum(y))


def call():
    kernel[(1,)](np.zeros(64, np.float32), 32)
