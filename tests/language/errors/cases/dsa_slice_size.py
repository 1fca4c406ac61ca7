"""A slice whose size is known at run time."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    x = tl.load(x_ptr + tl.arange(0, 64))
    part = tle.dsa.extract_slice(x, (0,), (n,))


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
