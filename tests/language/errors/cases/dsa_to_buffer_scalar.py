"""A scalar in a buffer."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    held = tle.dsa.to_buffer(n, tle.dsa.ascend.UB)


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
