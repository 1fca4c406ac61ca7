"""Two meshes that want clusters of different shapes."""

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(a: tl.constexpr, b: tl.constexpr):
    tle.distributed_barrier(a)
    tle.distributed_barrier(b)


def call():
    kernel[(1,)](
        tle.device_mesh({"block_cluster": 4}), tle.device_mesh({"block_cluster": [("x", 2), ("y", 2)]})
    )
