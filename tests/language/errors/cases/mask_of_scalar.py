"""A tensor mask for a scalar pointer."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    x = tl.load(x_ptr, mask=tl.arange(0, 32) < 3)
    tl.store(x_ptr, x)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
