"""A variable that changes its type across a loop."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr, n):
    total = 0
    for i in range(n):
        total = total + 0.5
    tl.store(x_ptr, total)


def call():
    kernel[(1,)](np.zeros(64, np.float32), 32)
