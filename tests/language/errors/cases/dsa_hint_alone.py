"""A hint that opens no `with`."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    tle.dsa.hint(inter_no_alias=True)


def call():
    kernel[(1,)](np.zeros(65536, np.float32), 65536)
