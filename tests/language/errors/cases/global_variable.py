"""A plain global."""

import numpy as np

import tilewright as triton
import tilewright.language as tl

FACTOR = 3


@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, FACTOR)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
