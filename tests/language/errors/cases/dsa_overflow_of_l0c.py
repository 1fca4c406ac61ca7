"""A product that L0C cannot hold."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    acc = tl.zeros((256, 256), tl.float32)
    held = tle.dsa.to_buffer(acc, tle.dsa.ascend.L0C)
    at = tl.arange(0, 256)[:, None] * 256 + tl.arange(0, 256)[None, :]
    tle.dsa.copy(held, x_ptr + at, [256, 256])


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
