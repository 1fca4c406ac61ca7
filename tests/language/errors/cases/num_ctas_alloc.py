"""What is one CTA's, in a program that a cluster runs."""

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel():
    x = tle.gpu.alloc([32], dtype=tl.float32)
    x.store(tl.zeros([32], tl.float32))


def call():
    kernel[(1,)](num_ctas=2)
