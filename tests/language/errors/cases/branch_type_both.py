"""A name that both sides of a branch leave with two types."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(out_ptr, n):
    x = n
    if n > 2:
        if n > 3:
            x = tl.arange(0, 4)
    elif n > 1:
        x = tl.arange(0, 8)
    tl.store(out_ptr, x)


def call():
    kernel[(1,)](np.zeros(8, np.int32), 3)
