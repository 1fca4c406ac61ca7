"""A kernel called without a grid."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, 1.0)


def call():
    kernel(np.zeros(64, np.float32))
