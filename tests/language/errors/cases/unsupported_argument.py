"""An argument of a type that no kernel takes."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr, y):
    tl.store(x_ptr, 1.0)


def call():
    kernel[(1,)](np.zeros(64, np.float32), {"a": 1})
