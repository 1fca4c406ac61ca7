"""A grid of four dimensions."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, 1.0)


def call():
    kernel[(1, 1, 1, 2)](np.zeros(64, np.float32))
