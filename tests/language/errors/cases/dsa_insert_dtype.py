"""A slice of another dtype."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    x = tl.load(x_ptr + tl.arange(0, 64))
    x = tle.dsa.insert_slice(x, tl.arange(0, 16), (0,))


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
