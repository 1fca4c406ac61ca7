"""A store through something that is no pointer."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    x = tl.load(x_ptr)
    tl.store(x, 1.0)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
