"""A dot of vectors."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    a = tl.zeros([32], tl.float16)
    tl.store(x_ptr, tl.sum(tl.dot(a, a)))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
