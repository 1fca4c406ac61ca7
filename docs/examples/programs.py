"""Programs and their values."""

from typing import NamedTuple

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright.tools.tensor_descriptor import TensorDescriptor


# %% tl.program_id
@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)


x = np.arange(1000, dtype=np.float32)
double[(triton.cdiv(1000, 256),)](x, 1000, BLOCK=256)
np.testing.assert_array_equal(x, 2 * np.arange(1000))


# %% tl.num_programs
@triton.jit
def persistent(x_ptr, n, BLOCK: tl.constexpr):
    # However many programs there are, together they visit every block once.
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        tl.store(x_ptr + offsets, offsets, mask=offsets < n)


x = np.zeros(1000, np.int32)
persistent[(3,)](x, 1000, BLOCK=64)
np.testing.assert_array_equal(x, np.arange(1000))


# %% tl.tensor
@triton.jit
def facts(out_ptr, x: tl.tensor):
    block = tl.zeros((4, 8), tl.float32) + x
    tl.static_assert(block.shape[0] == 4 and block.numel == 32)
    tl.static_assert(block.dtype == tl.float32)
    # Most functions are methods, too.
    tl.store(out_ptr, block.T.sum(axis=0).to(tl.int32).max())


out = np.zeros(1, np.int32)
facts[(1,)](out, 2.5)
assert out[0] == 20


# %% tl.tensor.to, tl.tensor.logical_and, tl.tensor.logical_or
@triton.jit
def within(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    inside = (x > 2).logical_and(x < 6)
    tl.store(out_ptr + i, inside.logical_or(x == 0).to(tl.int32))


x, out = np.arange(8), np.zeros(8, np.int32)
within[(1,)](x, out, N=8)
np.testing.assert_array_equal(out, [1, 0, 0, 1, 1, 1, 0, 0])


# %% tl.tensor_descriptor
@triton.jit
def negate(desc: tl.tensor_descriptor, M: tl.constexpr):
    column = tl.program_id(0) * desc.block_shape[1]
    for row in range(0, M, desc.block_shape[0]):
        desc.store([row, column], -desc.load([row, column]))


x = np.arange(32 * 32, dtype=np.float32).reshape(32, 32)
negate[(2,)](TensorDescriptor.from_tensor(x, [8, 16]), M=32)
np.testing.assert_array_equal(x, -np.arange(32 * 32).reshape(32, 32))


# %% tl.tensor_descriptor.load, tl.tensor_descriptor.store
@triton.jit
def shift(source, target):
    # What lies outside of the tensor reads as zero, and is not stored.
    target.store([0, 0], source.load([2, 0]))


x, out = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
shift[(1,)](*[TensorDescriptor.from_tensor(array, [4, 8]) for array in (x, out)])
np.testing.assert_array_equal(out.sum(axis=1), [8, 8, 0, 0])


# %% tl.tensor_descriptor.atomic_add, tl.tensor_descriptor.atomic_max, tl.tensor_descriptor.atomic_min
@triton.jit
def statistics(total, largest, smallest):
    block = tl.full((1, 8), tl.program_id(0), tl.int32)
    total.atomic_add([0, 0], block)
    largest.atomic_max([0, 0], block)
    smallest.atomic_min([0, 0], block)


out = np.zeros((3, 1, 8), np.int32)
statistics[(5,)](*[TensorDescriptor.from_tensor(row, [1, 8]) for row in out])
np.testing.assert_array_equal(out[:, 0, 0], [0 + 1 + 2 + 3 + 4, 4, 0])


# %% tl.tensor_descriptor.atomic_and, tl.tensor_descriptor.atomic_or, tl.tensor_descriptor.atomic_xor
@triton.jit
def bits(all_of, any_of, odd_of):
    block = tl.full((1, 8), tl.program_id(0) + 4, tl.int32)
    all_of.atomic_and([0, 0], block)
    any_of.atomic_or([0, 0], block)
    odd_of.atomic_xor([0, 0], block)


out = np.array([[[-1] * 8], [[0] * 8], [[0] * 8]], np.int32)
bits[(3,)](*[TensorDescriptor.from_tensor(row, [1, 8]) for row in out])
np.testing.assert_array_equal(out[:, 0, 0], [4 & 5 & 6, 4 | 5 | 6, 4 ^ 5 ^ 6])


# %% tl.tensor_descriptor.gather, tl.tensor_descriptor.scatter
@triton.jit
def reverse_rows(source, target, ROWS: tl.constexpr):
    rows = tl.arange(0, ROWS)
    target.scatter(source.gather(ROWS - 1 - rows, 0), rows, 0)


x, out = np.random.rand(8, 16).astype(np.float32), np.zeros((8, 16), np.float32)
descriptors = [TensorDescriptor.from_tensor(array, [1, 16]) for array in (x, out)]
reverse_rows[(1,)](*descriptors, ROWS=8)
np.testing.assert_array_equal(out, x[::-1])

# %% tl.constexpr
OFFSET = tl.constexpr(100)  # a global that kernels may read


@triton.jit
def fill(x_ptr, BLOCK: tl.constexpr, TWICE: tl.constexpr):
    value = tl.arange(0, BLOCK) + OFFSET
    if TWICE:  # decided at compile time: each value has its own kernel
        value *= 2
    tl.store(x_ptr + tl.arange(0, BLOCK), value)


x = np.zeros(16, np.int32)
fill[(1,)](x, BLOCK=16, TWICE=True)
np.testing.assert_array_equal(x, 2 * (np.arange(16) + 100))

# %% tl.constexpr_type
# The type of a constant is its value.
assert tl.constexpr_type(3) == tl.str_to_ty("constexpr", 3)
assert tl.constexpr_type(3) != tl.constexpr_type(4)


# %% tl.tensor_descriptor_type
# The types of its block, of its extents and of its strides.
block = tl.block_type(tl.float16, [4, 8])
desc = tl.tensor_descriptor_type(block, tl.int32, tl.int64)
assert desc.block_type.shape == [4, 8]


# %% tl.const
@triton.jit
def copy(source: tl.const, target, N: tl.constexpr):
    offsets = tl.arange(0, N)
    # Storing to source would be an error.
    tl.store(target + offsets, tl.load(source + offsets))


x, out = np.arange(8), np.zeros(8, np.int64)
copy[(1,)](x, out, N=8)
np.testing.assert_array_equal(out, x)


# %% tl.tuple
class Vector(NamedTuple):
    data: object
    scale: float


@triton.jit
def add_all(out_ptr, vectors: tl.tuple, N: tl.constexpr):
    total = tl.zeros((N,), tl.float32)
    for k in tl.static_range(len(vectors)):
        total += vectors[k].scale * tl.load(vectors[k].data + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, N), total)


x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
add_all[(1,)](out, (Vector(x, 2.0), Vector(x, 0.5)), N=8)
np.testing.assert_array_equal(out, 2.5 * x)

# %% tl.tuple_type
point = tl.tuple_type([tl.float32, tl.int32], fields=["x", "label"])
assert point[1] == tl.int32 and list(point) == [tl.float32, tl.int32]
assert point.name == "[x:fp32, label:int32]"


# %% tl.slice
@triton.jit
def outer(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    # `:` is a slice: it keeps a dimension, and None makes a new one.
    tl.store(out_ptr + i[:, None] * N + i[None, :], x[:, None] * x[None, :])


x, out = np.arange(8, dtype=np.float32), np.zeros((8, 8), np.float32)
outer[(1,)](x, out, N=8)
np.testing.assert_array_equal(out, np.outer(x, x))
everything = tl.slice()
assert everything.start is everything.stop is everything.step is None
