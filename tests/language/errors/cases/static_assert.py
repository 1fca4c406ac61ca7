"""A static assertion that fails."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr, N: tl.constexpr):
    tl.static_assert(N % 48 == 0, f"N is {N}")
    tl.store(x_ptr, 1.0)


def call():
    kernel[(1,)](np.zeros(64, np.float32), N=64)
