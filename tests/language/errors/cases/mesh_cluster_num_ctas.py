"""Programs that form clusters, each to be run by a cluster."""

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(mesh: tl.constexpr):
    tle.distributed_barrier(mesh)


def call():
    kernel[(1,)](tle.device_mesh({"block_cluster": 4}), num_ctas=2)
