"""A jitted function called with too few arguments."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def scale(x, factor):
    return x * factor


@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, scale(2.0))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
