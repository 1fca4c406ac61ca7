"""Pointers into what is no buffer."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, tl.load(tle.gpu.local_ptr(x_ptr, (0,))))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
