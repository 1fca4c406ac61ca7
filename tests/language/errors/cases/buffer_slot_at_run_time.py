"""A slot that the buffer has not, as the run shows."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr):
    smem = tle.gpu.alloc([2, 32], dtype=tl.float32)
    smem.slot(tl.load(x_ptr).to(tl.int32) + 2).store(0.0)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
