"""A load outside its array."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    i = tl.arange(0, 64)
    tl.store(x_ptr + i, tl.load(x_ptr + i + 1))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
