"""A name that both sides of a branch use for a loop's variable."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(out_ptr, n):
    i = n
    if n > 2:
        for i in range(n):
            tl.store(out_ptr + 1, i)
    else:
        for i in range(n):
            tl.store(out_ptr + 2, i)
    tl.store(out_ptr, i)


def call():
    kernel[(1,)](np.zeros(8, np.int32), 3)
