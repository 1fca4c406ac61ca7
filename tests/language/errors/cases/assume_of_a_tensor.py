"""A promise about a tensor."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    tl.assume(tl.load(x_ptr + tl.arange(0, 4)) > 0)


def call():
    kernel[(1,)](np.zeros(4, np.float32))
