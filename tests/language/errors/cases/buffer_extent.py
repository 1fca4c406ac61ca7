"""A buffer of no elements."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr):
    smem = tle.gpu.alloc([4, 0], dtype=tl.float32)
    tl.store(x_ptr, smem.dtype)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
