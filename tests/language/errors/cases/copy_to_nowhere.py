"""A copy from pointers to pointers."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr):
    tle.gpu.copy(x_ptr + tl.arange(0, 16), x_ptr + tl.arange(0, 16), [16])


def call():
    kernel[(1,)](np.zeros(64, np.float32))
