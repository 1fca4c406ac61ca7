"""Types."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


# %% tl.dtype
@triton.jit
def reciprocal(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    if x.dtype.is_int():  # known at compile time
        x = x.to(tl.float32)
    tl.store(out_ptr + tl.arange(0, N), 1 / x)


x, out = np.array([1, 2, 4, 8]), np.zeros(4, np.float32)
reciprocal[(1,)](x, out, N=4)
np.testing.assert_array_equal(out, 1 / x)
assert tl.dtype("fp16") == tl.float16 and tl.float16.itemsize == 2


# %% tl.pointer_type
@triton.jit
def read_words(bytes_ptr, out_ptr, N: tl.constexpr):
    words_ptr = bytes_ptr.to(tl.pointer_type(tl.int32))
    tl.store(out_ptr + tl.arange(0, N), tl.load(words_ptr + tl.arange(0, N)))


x, out = np.arange(16, dtype=np.uint8), np.zeros(4, np.int32)
read_words[(1,)](x, out, N=4)
np.testing.assert_array_equal(out, x.view(np.int32))


# %% tl.block_type
@triton.jit
def check(N: tl.constexpr):
    block = tl.zeros((N, 4), tl.float16)
    tl.static_assert(block.type == tl.block_type(tl.float16, [N, 4]))
    tl.static_assert(block.type.scalar == tl.float16)


check[(1,)](N=8)
assert tl.block_type(tl.float16, [8, 4]).numel == 32

# %% tl.str_to_ty
assert tl.str_to_ty("i64") == tl.int64
assert tl.str_to_ty("*fp16") == tl.pointer_type(tl.float16)
assert tl.str_to_ty("*kfp16").is_const()  # memory that is only read


# %% tl.get_int_dtype
@triton.jit
def sign_bits(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    width: tl.constexpr = x.dtype.primitive_bitwidth
    bits = x.to(tl.get_int_dtype(width, signed=False), bitcast=True)
    tl.store(out_ptr + tl.arange(0, N), bits >> (width - 1))


x, out = np.array([1.5, -0.0, 0.0, -3], np.float16), np.zeros(4, np.int32)
sign_bits[(1,)](x, out, N=4)
np.testing.assert_array_equal(out, np.signbit(x))
