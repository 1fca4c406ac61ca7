"""Unpacking what is left into one name."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def three(x):
    return x, x, x


@triton.jit
def kernel(x_ptr):
    a, *b = three(1.0)
    tl.store(x_ptr, a)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
