"""A run-time value where a constant is needed."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr, n):
    tl.store(x_ptr + tl.arange(0, n), 1.0)


def call():
    kernel[(1,)](np.zeros(64, np.float32), 32)
