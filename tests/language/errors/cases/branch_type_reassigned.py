"""A name of two types that gets one of them again on one path."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(out_ptr, n):
    x = n
    if n > 2:
        x = tl.arange(0, 4)
    if n > 3:
        x = n + 1
    tl.store(out_ptr, x)


def call():
    kernel[(1,)](np.zeros(8, np.int32), 3)
