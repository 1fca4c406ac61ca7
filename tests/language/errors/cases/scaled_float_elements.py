"""Elements of another format than the one that is said."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    a = tl.zeros([32, 64], tl.float8e5)
    b = tl.zeros([64, 32], tl.bfloat16)
    c = tl.dot_scaled(a, None, "e4m3", b, None, "bf16")
    tl.store(x_ptr, tl.sum(c))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
