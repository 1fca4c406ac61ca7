"""A load through an integer."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, tl.load(tl.arange(0, 16)))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
