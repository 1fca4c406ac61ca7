"""A dot whose operands disagree about K."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    a = tl.zeros([32, 64], tl.float16)
    b = tl.zeros([32, 16], tl.float16)
    c = tl.dot(a, b)
    tl.store(x_ptr, tl.sum(c))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
