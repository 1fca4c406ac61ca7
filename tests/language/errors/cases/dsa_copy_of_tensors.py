"""A copy between tensors."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    at = x_ptr + tl.arange(0, 64)
    tle.dsa.copy(at, at, [64])


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
