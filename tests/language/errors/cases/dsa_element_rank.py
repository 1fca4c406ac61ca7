"""An index for each of two dimensions, where there is one."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    x = tl.load(x_ptr + tl.arange(0, 64))
    tl.store(x_ptr, tle.dsa.extract_element(x, (1, 2)))


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
