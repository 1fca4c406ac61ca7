"""An element that the buffer has not, as the run shows."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr):
    smem = tle.gpu.alloc([4, 8], dtype=tl.float32)
    tl.store(tle.gpu.local_ptr(smem, (tl.arange(0, 4), 5 + tl.arange(0, 4))), 1.0)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
