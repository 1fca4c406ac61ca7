"""Shapes that do not broadcast."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 64)) + tl.arange(0, 48)
    tl.store(x_ptr + tl.arange(0, 64), x)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
