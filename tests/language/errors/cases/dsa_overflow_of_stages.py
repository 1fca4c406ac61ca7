"""Buffers of a pipelined loop, which are there as often as it has stages."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    for start in tle.dsa.pipeline(0, n, 16384, num_stages=4):
        at = start + tl.arange(0, 16384)
        held = tle.dsa.alloc([16384], tl.float32, tle.dsa.ascend.UB)
        tle.dsa.copy(x_ptr + at, held, [16384])
        tle.dsa.copy(held, x_ptr + at, [16384])


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
