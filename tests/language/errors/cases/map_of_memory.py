"""A function of elements that stores."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kept(x, ptr):
    tl.store(ptr, x)
    return x


@triton.jit
def kernel(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    tl.store(x_ptr + tl.arange(0, 16), tl.map_elementwise(kept, x, x_ptr))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
