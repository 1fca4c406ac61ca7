"""A dot of different types."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    a = tl.zeros([32, 32], tl.float16)
    b = tl.zeros([32, 32], tl.int8)
    tl.store(x_ptr, tl.sum(tl.dot(a, b)))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
