"""A variable that changes its shape across a loop."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr, n):
    total = 0.0
    for i in range(n):
        total += tl.zeros([16], tl.float32)
    tl.store(x_ptr + tl.arange(0, 16), total)


def call():
    kernel[(1,)](np.zeros(64, np.float32), 32)
