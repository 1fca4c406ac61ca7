"""Debugging."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


# %% tl.device_assert
@triton.jit
def roots(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.device_assert(x >= 0, "a root of a negative number")
    tl.store(out_ptr + tl.arange(0, N), tl.sqrt(x))


x, out = np.array([1, 4, -9, 16], np.float32), np.zeros(4, np.float32)
roots[(1,)](x, out, N=4)  # compiled in only where it is asked for
with pytest.raises(triton.KernelError, match="a root of a negative number"):
    roots[(1,)](x, out, N=4, debug=True)


# %% tl.device_print
@triton.jit
def show(x_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.device_print("x is", x)  # a line for each element, with its place


x = np.array([10, 20, 30, 40], np.int32)
show[(1,)](x, N=4)


# %% tl.static_assert
@triton.jit
def halves(x_ptr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % 2 == 0, "BLOCK must be even")
    tl.store(x_ptr + tl.arange(0, BLOCK), tl.arange(0, BLOCK) // 2)


x = np.zeros(8, np.int32)
halves[(1,)](x, BLOCK=8)
with pytest.raises(triton.CompilationError, match="BLOCK must be even"):
    halves[(1,)](x, BLOCK=7)


# %% tl.static_print
@triton.jit
def typed(x_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.static_print("compiling for", BLOCK, "of", x.dtype)
    tl.store(x_ptr + tl.arange(0, BLOCK), x)


typed[(1,)](np.zeros(8, np.float32), BLOCK=8)  # prints: compiling for 8 of fp32
