"""A member that ends while others wait for it in two places."""

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(mesh: tl.constexpr):
    program = tl.program_id(0)
    if program < 3:
        tle.distributed_barrier(mesh)
    elif program > 3:
        tle.distributed_barrier(mesh[3:7])


def call():
    kernel[(7,)](tle.device_mesh({"block": 7}))
