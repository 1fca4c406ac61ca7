"""A name that is defined nowhere."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    i = tl.arange(0, 64)
    tl.store(x_ptr + i, offset)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
