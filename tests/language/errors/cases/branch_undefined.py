"""A variable that only one branch defines."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr, n):
    if n > 3:
        y = 1.0
    tl.store(x_ptr, y)


def call():
    kernel[(1,)](np.zeros(64, np.float32), 32)
