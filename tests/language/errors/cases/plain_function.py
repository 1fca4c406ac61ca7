"""A call of a plain Python function."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


def helper(x):
    return x * 2


@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, helper(1.0))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
