"""Offsets into a buffer that are no integers."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr):
    smem = tle.gpu.alloc([8, 8], dtype=tl.float32)
    tl.load(tle.gpu.local_ptr(smem, offsets=tl.zeros([8], tl.float32)))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
