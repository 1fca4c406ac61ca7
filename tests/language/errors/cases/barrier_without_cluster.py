"""A barrier of the cluster of programs that form none."""

import tilewright as triton
from tilewright import tle


@triton.jit
def kernel():
    tle.distributed_barrier()


def call():
    kernel[(4,)]()
