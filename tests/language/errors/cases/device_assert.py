"""A device assertion that fails."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    i = tl.arange(0, 64)
    tl.device_assert(i < 63, "index too large")
    tl.store(x_ptr + i, 1.0)


def call():
    kernel[(1,)](np.zeros(64, np.float32), debug=True)
