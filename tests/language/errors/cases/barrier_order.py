"""A barrier of a cluster's programs with an order that such have not."""

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(mesh: tl.constexpr):
    tle.distributed_barrier(mesh, order=tle.MemoryOrder.ACQUIRE)


def call():
    kernel[(1,)](tle.device_mesh({"block_cluster": 4}))
