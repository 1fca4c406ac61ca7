"""Extents that are no tuple."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    held = tle.dsa.alloc([64], tl.float32, tle.dsa.ascend.UB)
    tle.dsa.copy(x_ptr + tl.arange(0, 64), held, 64)


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
