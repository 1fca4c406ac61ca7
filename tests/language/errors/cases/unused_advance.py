"""A block pointer that is advanced into nothing."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    block = tl.make_block_ptr(x_ptr, (64,), (1,), (0,), (16,), (0,))
    tl.advance(block, (16,))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
