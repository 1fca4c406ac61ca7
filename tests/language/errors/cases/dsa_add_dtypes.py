"""Buffers of different dtypes."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    a = tle.dsa.alloc([64], tl.float32, tle.dsa.ascend.UB)
    b = tle.dsa.alloc([64], tl.int32, tle.dsa.ascend.UB)
    tle.dsa.add(a, a, b)


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
