"""A dot_scaled of bfloat16 operands into float16."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    a = tl.zeros([32, 64], tl.bfloat16)
    b = tl.zeros([64, 32], tl.bfloat16)
    c = tl.dot_scaled(a, None, "bf16", b, None, "bf16", out_dtype=tl.float16)
    tl.store(x_ptr, tl.sum(c))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
