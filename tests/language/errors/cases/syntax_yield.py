"""A generator as a kernel."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    yield tl.load(x_ptr)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
