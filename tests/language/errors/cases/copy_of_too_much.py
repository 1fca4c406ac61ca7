"""A copy of more than the pointers have."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr):
    smem = tle.gpu.alloc([64], dtype=tl.float32)
    tle.gpu.copy(x_ptr + tl.arange(0, 32), smem, [64])


def call():
    kernel[(1,)](np.zeros(64, np.float32))
