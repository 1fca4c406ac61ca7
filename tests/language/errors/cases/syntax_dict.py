"""A dictionary in a kernel."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    d = {1: 2}
    tl.store(x_ptr, d[1])


def call():
    kernel[(1,)](np.zeros(64, np.float32))
