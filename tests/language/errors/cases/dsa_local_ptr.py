"""Pointers by too few indices."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    held = tle.dsa.alloc([8, 8], tl.float32, tle.dsa.ascend.UB)
    tl.store(tle.dsa.local_ptr(held, (tl.arange(0, 8),)), 1.0)


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
