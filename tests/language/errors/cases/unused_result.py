"""A call whose result must be used, as a statement of its own."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.must_use_result("It has no side effects.")
@triton.jit
def cube(x):
    return x * x * x


@triton.jit
def kernel(x_ptr):
    x = tl.load(x_ptr)
    cube(x)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
