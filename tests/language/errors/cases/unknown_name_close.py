"""A name that is nearly one that exists."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    offsets = tl.arange(0, 64)
    tl.store(x_ptr + ofsets, 1.0)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
