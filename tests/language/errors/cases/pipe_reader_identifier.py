"""A reader whose name is no identifier."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    x = tle.gpu.alloc([2, 32], dtype=tl.float32)
    tle.pipe(capacity=2, readers=("left hand",), x=x)


def call():
    kernel[(1,)](np.zeros(64, np.float32), 3)
