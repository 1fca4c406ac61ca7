"""A promise that the arguments break."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr, n):
    tl.assume(n > 0)
    tl.store(x_ptr, n)


def call():
    kernel[(1,)](np.zeros(4, np.int32), -3)
