"""A hint that there is not."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    with tle.dsa.hint(no_alias=True):
        tl.store(x_ptr, 1.0)


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
