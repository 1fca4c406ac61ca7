"""An `__init__` that is code of the kernel."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@tl.core._aggregate
class Pair:
    first: tl.tensor
    second: tl.constexpr

    @triton.jit
    def __init__(self, first, second):
        self.first = first
        self.second = second


@triton.jit
def kernel(x_ptr, n):
    x = tl.load(x_ptr + tl.arange(0, 64))
    Pair(x, 2)


def call():
    kernel[(1,)](np.zeros(64, np.float32), 7)
