"""A reader of what never comes."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    x = tle.gpu.alloc([2, 32], dtype=tl.float32)
    pipe = tle.pipe(capacity=2, name="stages", x=x)
    writer, reader = pipe.writer(), pipe.reader()
    writer.acquire(0).x.store(1.0)
    reader.wait(0)
    writer.commit(0)


def call():
    kernel[(1,)](np.zeros(64, np.float32), 3)
