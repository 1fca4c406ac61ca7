"""From the memory of a vector core to that of a cube core."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    held = tle.dsa.alloc([16, 16], tl.float16, tle.dsa.ascend.UB)
    left = tle.dsa.alloc([16, 16], tl.float16, tle.dsa.ascend.L0A)
    tle.dsa.copy(held, left, [16, 16])


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
