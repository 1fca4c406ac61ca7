"""A gather whose index is masked off later, and names no element."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr, index_ptr, out_ptr):
    i = tl.arange(0, 8)
    mask = i < 5
    index = tl.load(index_ptr + i, mask=mask, other=-1)
    x = tl.gather(tl.load(x_ptr + i), index, 0)
    tl.store(out_ptr + i, x, mask=mask)


def call():
    x = np.zeros(8, np.float32)
    kernel[(1,)](x, np.zeros(8, np.int32), x.copy())
