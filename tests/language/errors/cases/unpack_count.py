"""Unpacking into the wrong number of names."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def pair(x):
    return x, x


@triton.jit
def kernel(x_ptr):
    a, b, c = pair(1.0)
    tl.store(x_ptr, a)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
