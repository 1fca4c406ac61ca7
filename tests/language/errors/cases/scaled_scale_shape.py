"""Scales of the right operand that lie as the operand does, and not [N, K // 32]."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    a = tl.zeros([32, 64], tl.bfloat16)
    b = tl.zeros([64, 32], tl.float8e5)
    s = tl.zeros([2, 32], tl.uint8)
    c = tl.dot_scaled(a, None, "bf16", b, s, "e5m2")
    tl.store(x_ptr, tl.sum(c))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
