"""Pointers into a buffer by indices and by offsets."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr):
    smem = tle.gpu.alloc([8, 8], dtype=tl.float32)
    tl.load(tle.gpu.local_ptr(smem, (0, 0), offsets=tl.arange(0, 8)))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
