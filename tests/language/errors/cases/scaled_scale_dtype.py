"""Scales that are float32."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    a = tl.zeros([32, 64], tl.bfloat16)
    s = tl.zeros([32, 2], tl.float32)
    b = tl.zeros([64, 32], tl.bfloat16)
    c = tl.dot_scaled(a, s, "bf16", b, None, "bf16")
    tl.store(x_ptr, tl.sum(c))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
