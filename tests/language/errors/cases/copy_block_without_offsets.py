"""A block of a descriptor that is nowhere."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr):
    x = tl.make_tensor_descriptor(x_ptr, [64], [1], [16])
    smem = tle.gpu.alloc([16], dtype=tl.float32)
    tle.gpu.copy(x, smem, [16])


def call():
    kernel[(1,)](np.zeros(64, np.float32))
