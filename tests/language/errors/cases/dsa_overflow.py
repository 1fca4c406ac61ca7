"""Buffers that are in use at the same time and do not fit into UB."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    at = tl.arange(0, 32768)
    first = tle.dsa.alloc([32768], tl.float32, tle.dsa.ascend.UB)
    second = tle.dsa.alloc([32768], tl.float32, tle.dsa.ascend.UB)
    tle.dsa.copy(x_ptr + at, first, [32768])
    tle.dsa.copy(x_ptr + at, second, [32768])
    tle.dsa.add(first, second, first)
    tle.dsa.copy(first, x_ptr + at, [32768])


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
