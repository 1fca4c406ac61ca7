"""An error inside a called function shows the call too."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def total(x):
    return tl.sum(x + tl.arange(0, 24))


@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, total(tl.arange(0, 16)))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
