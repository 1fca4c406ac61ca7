"""A value that does not fit its pointers."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr + tl.arange(0, 32), tl.zeros([64], tl.float32))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
