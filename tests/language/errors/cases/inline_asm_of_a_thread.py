"""Inline assembly that asks for its thread, on the CPU executor."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    y = tl.inline_asm_elementwise("mov.u32 $0, %laneid;", "=r,r", [x], tl.int32, True, 1)
    tl.store(x_ptr + tl.arange(0, 16), y)


def call():
    kernel[(1,)](np.zeros(64, np.int32))
