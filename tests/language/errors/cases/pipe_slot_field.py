"""A field that a reader does not see."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(x_ptr, n):
    x = tle.gpu.alloc([2, 32], dtype=tl.float32)
    y = tle.gpu.alloc([2, 32], dtype=tl.float32)
    pipe = tle.pipe(capacity=2, x=x, y=y)
    writer = pipe.writer()
    slot = writer.acquire(0)
    slot.x.store(0.0)
    slot.y.store(0.0)
    writer.commit(0)
    pipe.reader(fields=("y",)).wait(0).slot.x.load()


def call():
    kernel[(1,)](np.zeros(64, np.float32), 3)
