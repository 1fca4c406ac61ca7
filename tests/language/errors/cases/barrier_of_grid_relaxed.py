"""A relaxed barrier of all programs of the grid."""

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(mesh: tl.constexpr):
    tle.distributed_barrier(mesh, order=tle.MemoryOrder.RELAXED)


def call():
    kernel[(4,)](tle.device_mesh({"block": 4}))
