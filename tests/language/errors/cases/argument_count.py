"""A kernel called with too few arguments."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr, n):
    tl.store(x_ptr, n)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
