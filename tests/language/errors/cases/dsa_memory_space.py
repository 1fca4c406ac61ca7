"""A name of a memory that there is not."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    x = tle.dsa.memory_space(tl.arange(0, 64), "shared_memory")


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
