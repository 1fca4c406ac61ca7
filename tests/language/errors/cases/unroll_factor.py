"""An unroll factor of 0."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr, n):
    for i in tl.range(n, loop_unroll_factor=0):
        tl.store(x_ptr + i, i)


def call():
    kernel[(1,)](np.zeros(64, np.float32), 4)
