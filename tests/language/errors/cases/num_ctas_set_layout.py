"""What is one CTA's, in a program that a cluster runs."""

import tilewright as triton
import tilewright.language as tl
from tilewright import tle

LAYOUT = tle.gpu.BlockEncoding([1], [32], [4], [0])


@triton.jit
def kernel():
    x = tle.gpu.set_layout(tl.arange(0, 128), LAYOUT)
    tl.device_assert(x >= 0)


def call():
    kernel[(1,)](num_ctas=2)
