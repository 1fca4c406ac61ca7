"""A part of a buffer with gaps that leads outside."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    held = tle.dsa.alloc([64], tl.float32, tle.dsa.ascend.UB)
    part = tle.dsa.subview(held, (0,), (40,), (2,))


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
