"""From the operands of products to global memory."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    left = tle.dsa.alloc([16, 16], tl.float32, tle.dsa.ascend.L0A)
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tle.dsa.copy(left, x_ptr + at, [16, 16])


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
