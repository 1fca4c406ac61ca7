"""Inline assembly and functions of elements."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


# %% tl.inline_asm_elementwise
@triton.jit
def swap_bytes(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    asm: tl.constexpr = "prmt.b32 $0, $1, 0, 0x0123;"
    turned = tl.inline_asm_elementwise(
        asm, "=r,r", [x], tl.uint32, is_pure=True, pack=1
    )
    tl.store(out_ptr + tl.arange(0, N), turned)


x, out = np.arange(8, dtype=np.uint32), np.zeros(8, np.uint32)
swap_bytes[(1,)](x, out, N=8)
np.testing.assert_array_equal(out, x.byteswap())


# %% tl.map_elementwise
@triton.jit
def root(x):
    if x < 0:  # a scalar: one side is computed, not both
        return 0.0
    else:
        return tl.sqrt(x)


@triton.jit
def roots(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, N), tl.map_elementwise(root, x))


x, out = np.linspace(-1, 1, 8, dtype=np.float32), np.zeros(8, np.float32)
roots[(1,)](x, out, N=8)
np.testing.assert_allclose(out, np.sqrt(np.maximum(x, 0)), rtol=1e-6)
