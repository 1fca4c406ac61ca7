"""Fewer indices than the buffer has dimensions."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr):
    smem = tle.gpu.alloc([8, 8], dtype=tl.float32)
    tl.store(x_ptr, tl.load(tle.gpu.local_ptr(smem, (0,))))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
