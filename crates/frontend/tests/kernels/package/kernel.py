import torch
import triton
import triton.language as tl

from . import util
from .util import twice as double


@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, double(x) + util.SCALE + util.twice(x), mask=i < n)


@triton.jit
def wrong(x_ptr):
    tl.store(x_ptr, util.TABLE)
