"""A bit operator on floats."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr) & 3.0)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
