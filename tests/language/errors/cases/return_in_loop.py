"""A return inside a loop."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr, n):
    for i in range(n):
        if i == 3:
            return
        tl.store(x_ptr + i, 1.0)


def call():
    kernel[(1,)](np.zeros(64, np.float32), 32)
