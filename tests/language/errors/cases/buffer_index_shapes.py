"""Indices of shapes that don't go together."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr):
    smem = tle.gpu.alloc([8, 8], dtype=tl.float32)
    at = tle.gpu.local_ptr(smem, (tl.arange(0, 8), tl.arange(0, 4)))
    tl.store(x_ptr + tl.arange(0, 8), tl.load(at))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
