"""A chained comparison of tensors."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    i = tl.arange(0, 16)
    tl.store(x_ptr + i, 1.0, mask=0 < i < 3)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
