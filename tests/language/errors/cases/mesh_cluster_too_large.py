"""A cluster of more programs than there can be."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def kernel(mesh: tl.constexpr, out_ptr):
    tl.store(out_ptr, tle.shard_id(mesh, "x"))


def call():
    kernel[(1,)](tle.device_mesh({"block_cluster": [("x", 8), ("y", 4)]}), np.zeros(1, np.int32))
