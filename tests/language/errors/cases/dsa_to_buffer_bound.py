"""A buffer that is too small for the tensor."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    held = tle.dsa.alloc([32], tl.float32, tle.dsa.ascend.UB)
    tle.dsa.to_buffer(tl.load(x_ptr + tl.arange(0, 64)), bind_buffer=held)


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
