"""`lambda` in a kernel."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    f = lambda x: x * 2  # noqa: E731
    tl.store(x_ptr, f(1.0))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
