"""A function of elements that returns nothing."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def nothing(a):
    a + 1


@triton.jit
def kernel(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    tl.map_elementwise(nothing, x)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
