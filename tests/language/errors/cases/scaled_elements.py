"""E2M1 elements that are not two in a byte."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    a = tl.zeros([32, 64], tl.int8)
    b = tl.zeros([128, 32], tl.bfloat16)
    c = tl.dot_scaled(a, None, "e2m1", b, None, "bf16")
    tl.store(x_ptr, tl.sum(c))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
