"""Kernels that check the language's typing rules themselves, with tl.static_assert, as they are compiled.

The comment before each is the signature it is compiled for.
"""

from typing import NamedTuple

import triton
import triton.language as tl
from triton.language.extra import libdevice

TWO = tl.constexpr(2)
NAMED: tl.constexpr = TWO * 8
HALF = tl.float16
NEG_INF = tl.constexpr(float("-inf"))


class Pair(NamedTuple):
    first: tl.tensor
    second: tl.constexpr


@triton.constexpr_function
def log2(n):
    out = 0
    while n > 1:
        n //= 2
        out += 1
    return out


@triton.jit
def identity(x):
    return x


@triton.jit
def defaults(x, y=1.5, z: tl.constexpr = NAMED, w: tl.constexpr = None):
    tl.static_assert(z == 16 or z == 4)
    if w is None:
        return x + y
    return x + w


@triton.jit
def nothing(ptr):
    tl.store(ptr, 0)


@triton.jit
def swap(pair):
    a, b = pair
    return b, a


@triton.jit
def depth(n: tl.constexpr):
    if n == 0:
        return 0
    else:
        return 1 + depth(n - 1)


# *fp32, i32, i64, *fp16, *bf16, *u8, *i1
@triton.jit
def promotion(f32_ptr, i, j, f16_ptr, bf16_ptr, u8_ptr, b_ptr):
    r = tl.arange(0, 16)
    f32 = tl.load(f32_ptr + r)
    f16 = tl.load(f16_ptr + r)
    bf16 = tl.load(bf16_ptr + r)
    u8 = tl.load(u8_ptr + r)
    b = tl.load(b_ptr + r)
    tl.static_assert(f16.dtype == HALF and f16.dtype.is_fp16() and not f16.dtype.is_bf16())
    tl.static_assert(b.dtype == tl.int1)
    tl.static_assert((f16 + 1.5).dtype == tl.float16)
    tl.static_assert((f16 + 1).dtype == tl.float16)
    tl.static_assert((f16 / 2).dtype == tl.float32)
    tl.static_assert((f16 * f16).dtype == tl.float16)
    tl.static_assert((f16 + bf16).dtype == tl.float16)
    tl.static_assert((bf16 + f32).dtype == tl.float32)
    tl.static_assert((bf16 + bf16).dtype == tl.bfloat16)
    tl.static_assert((u8 + 1).dtype == tl.uint8)
    tl.static_assert((u8 + r).dtype == tl.int32)
    tl.static_assert((u8 * 1.0).dtype == tl.float32)
    tl.static_assert((r + j).dtype == tl.int64)
    tl.static_assert((r / r).dtype == tl.float32)
    tl.static_assert((r // 3).dtype == tl.int32)
    tl.static_assert((r % 3).dtype == tl.int32)
    tl.static_assert((r < 3).dtype == tl.int1 and (r < 3).shape == (16,))
    tl.static_assert((b + b).dtype == tl.int1)
    tl.static_assert((b * 3).dtype == tl.int32)
    tl.static_assert((r.to(tl.uint32) + r).dtype == tl.uint32)
    tl.static_assert((r.to(tl.uint32) + j).dtype == tl.int64)
    tl.static_assert((r >> 1).dtype == tl.int32)
    tl.static_assert((-f16).dtype == tl.float16 and (~r).dtype == tl.int32 and (not i).dtype == tl.int1)
    tl.static_assert(tl.sum(u8, 0).dtype == tl.uint32 and tl.sum(f16, 0).dtype == tl.float16)
    tl.static_assert(tl.sum(f16, 0, dtype=tl.float32).dtype == tl.float32)
    tl.static_assert(tl.max(f16, 0).dtype == tl.float32 and tl.max(u8, 0).dtype == tl.int32)
    tl.static_assert(tl.argmax(f16, 0).dtype == tl.int32 and tl.argmax(f16, 0).shape == ())
    tl.static_assert(tl.max(bf16, 0, return_indices=True)[0].dtype == tl.float32)
    tl.static_assert(tl.cumsum(u8, 0).dtype == tl.uint32 and tl.cumsum(bf16, 0).dtype == tl.float32)
    tl.static_assert(tl.where(b, f16, 0).dtype == tl.float16)
    tl.static_assert(tl.rand(i, r).dtype == tl.float32 and tl.randint(i, r).dtype == tl.uint32)
    tl.static_assert(tl.randint(i, r.to(tl.int64)).dtype == tl.uint32)
    x = 3
    y = 1.0
    z = 1 << 40
    w = True
    tl.static_assert(x.dtype == tl.int32 and y.dtype == tl.float32 and z.dtype == tl.int64 and w.dtype == tl.int1)
    tl.static_assert((f16 * y).dtype == tl.float32)
    tl.static_assert(identity(2).dtype == tl.int32 and identity(f16).dtype == tl.float16)
    tl.static_assert(f32_ptr.dtype.is_ptr() and f32_ptr.dtype.element_ty == tl.float32)
    tl.static_assert((f32_ptr + r).dtype.element_ty == tl.float32 and (f32_ptr + r).type.element_ty.is_ptr())
    tl.static_assert(f16.type == tl.block_type(tl.float16, [16]) and f16.type.scalar == tl.float16)
    tl.static_assert(f16.dtype.primitive_bitwidth == 16 and f16.dtype.itemsize == 2 and str(f16.dtype) == "fp16")
    tl.static_assert(libdevice.tanh(f32).dtype == tl.float32 and libdevice.pow(f32, 2.0).dtype == tl.float32)
    tl.static_assert(tl.cast(f32, tl.int32, bitcast=True).dtype == tl.int32)
    tl.static_assert(f32.to(tl.float8e5).dtype.is_fp8() and f32.to(tl.bfloat16).to(tl.float16).dtype == tl.float16)


# *fp32, i32
@triton.jit
def shapes(ptr, n):
    a = tl.zeros((4, 8), tl.float32)
    tl.static_assert(a.shape == (4, 8) and len(a.shape) == 2 and a.shape[-1] == 8 and a.numel == 32)
    tl.static_assert(a.T.shape == (8, 4) and a.trans().shape == (8, 4) and tl.trans(a, 1, 0).shape == (8, 4))
    tl.static_assert(a[None, :, :].shape == (1, 4, 8) and a[:, None].shape == (4, 1, 8))
    tl.static_assert(tl.arange(0, 5)[:, None].shape == (5, 1) and tl.arange(2, 5)[None].shape == (1, 3))
    tl.static_assert(a.reshape(32).shape == (32,) and a.reshape((2, 16)).shape == (2, 16) and a.ravel().shape == (32,))
    tl.static_assert(tl.sum(a, 0).shape == (8,) and tl.sum(a, 1, keep_dims=True).shape == (4, 1) and tl.sum(a).shape == ())
    tl.static_assert(a.sum(axis=-1).shape == (4,) and a.max().shape == () and tl.max(a, keep_dims=True).shape == (1, 1))
    tl.static_assert((a + tl.arange(0, 8)).shape == (4, 8) and (a + tl.zeros((4, 1), tl.float32)).shape == (4, 8))
    tl.static_assert(tl.join(a, a).shape == (4, 8, 2) and tl.join(a, a).split()[0].shape == (4, 8))
    tl.static_assert(tl.interleave(a, a).shape == (4, 16) and tl.join(n, n).shape == (2,))
    tl.static_assert(tl.permute(tl.zeros((2, 3, 5), tl.int8), (2, 0, 1)).shape == (5, 2, 3))
    tl.static_assert(tl.permute(tl.zeros((2, 3, 5), tl.int8), 0, -1, -2).shape == (2, 5, 3))
    tl.static_assert(tl.broadcast_to(tl.zeros((1, 8), tl.int8), (6, 8)).shape == (6, 8))
    tl.static_assert(tl.expand_dims(a, (0, -1)).shape == (1, 4, 8, 1) and tl.expand_dims(a, -1).shape == (4, 8, 1))
    tl.static_assert(tl.full((), 3, tl.int32).shape == () and tl.full([3], n, tl.int64).shape == (3,))
    tl.static_assert(tl.dot(a, tl.zeros((8, 12), tl.float32)).shape == (4, 12))
    tl.static_assert(tl.dot(tl.zeros((3, 16, 16), tl.int8), tl.zeros((3, 16, 16), tl.int8)).dtype == tl.int32)
    tl.static_assert(tl.softmax(a, 1, keep_dims=True).shape == (4, 8) and tl.sigmoid(a).shape == (4, 8))
    tl.static_assert(tl.sort(a, descending=True).shape == (4, 8) and tl.topk(a, 2).shape == (4, 2) and tl.flip(a, 1).shape == (4, 8))
    tl.static_assert(tl.histogram(tl.arange(0, 24), 5).shape == (5,) and tl.gather(a, tl.zeros((4, 3), tl.int32), 1).shape == (4, 3))
    tl.static_assert(tl.cat(tl.arange(0, 4), tl.arange(0, 4), can_reorder=True).shape == (8,))
    value, index = tl.max(a, 1, return_indices=True)
    tl.static_assert(value.shape == (4,) and index.dtype == tl.int32)


# *fp32, i32, 4, None, 'relu'
@triton.jit
def constants(ptr, n, FOUR: tl.constexpr, MAYBE: tl.constexpr, KIND):
    tl.static_assert(FOUR == 4 and MAYBE is None and KIND == "relu" and KIND != "gelu")
    tl.static_assert(NAMED == 16 and TWO ** 3 == 8 and NAMED // 3 == 5 and -7 // 2 == -4 and -7 % 4 == 1)
    tl.static_assert(triton.cdiv(7, FOUR) == 2 and triton.next_power_of_2(5) == 8 and log2(1024) == 10)
    tl.static_assert(min(FOUR, 3, 5) == 3 and max(FOUR, 3) == 4 and len((1, 2, 3)) == 3 and abs(-3) == 3)
    tl.static_assert(int(3.7) == 3 and float("inf") == -NEG_INF and (FOUR if FOUR > 3 else 0) == 4)
    tl.static_assert(FOUR in (1, 4) and 5 not in [1, 4] and not (FOUR == 5) and 1 < FOUR < 5)
    block: tl.constexpr = FOUR * 2
    shape: tl.constexpr = (block, FOUR)
    tl.static_assert(tl.zeros(shape, tl.int32).shape == (8, 4) and f"{block}x{FOUR}" == "8x4")
    total: tl.constexpr = sum([i * i for i in range(FOUR)])
    tl.static_assert(total == 14)
    tl.static_assert(hasattr(n, "dtype") and not hasattr(n, "nothing") and isinstance(n, tl.tensor))
    tl.static_assert(not isinstance(FOUR, tl.constexpr) and not isinstance(FOUR, tl.tensor))
    tl.static_assert(ptr is not None and KIND is not None)
    for i in tl.static_range(3):
        tl.static_assert(i < 3)
        inner: tl.constexpr = i + 1
        tl.static_assert(tl.arange(0, inner).shape[0] == inner)
    if MAYBE is not None:
        tl.store(MAYBE, 1)
    if FOUR == 5:
        undefined_name  # noqa: never compiled
    if MAYBE and n > 3:
        tl.store(MAYBE, 1)
    tl.store(ptr, 1.0 if FOUR else undefined_name)
    tl.static_assert(depth(5).dtype == tl.int32)


# *fp32, i32, i32
@triton.jit
def functions(ptr, n, m):
    tl.static_assert(defaults(n).dtype == tl.float32 and defaults(n, 2).dtype == tl.int32)
    tl.static_assert(defaults(n, w=n, z=4).dtype == tl.int32)
    nothing(ptr)
    a, b = swap((n, 1.0))
    tl.static_assert(a.dtype == tl.float32 and b.dtype == tl.int32)
    pair = Pair(n, 3)
    tl.static_assert(pair.first.dtype == tl.int32 and pair[0].dtype == tl.int32)
    c = (n, m) + (1,)
    tl.static_assert(len(c) == 3 and len(c[1:]) == 2 and c[-1].dtype == tl.int32)
    x, (y, z) = n, (m, 2)
    first = second = 0.0
    tl.store(ptr, first + second + x + y + z)
    lo = tl.minimum(n, 3) if n > m else m
    tl.static_assert(lo.dtype == tl.int32)
    args = (n, m)
    tl.static_assert(tl.maximum(*args).dtype == tl.int32)


# *fp32, *i32, i32, i64, 3
@triton.jit
def loops(ptr, lock, n, wide, ONE_OR_MORE):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    acc = tl.zeros((8,), tl.float32)
    count = 0
    best = NEG_INF
    pair = (0, 0.0)
    for i in range(0, wide):
        tl.static_assert(i.dtype == tl.int64)
        for j in tl.range(n, num_stages=3, loop_unroll_factor=2, flatten=True):
            tl.static_assert(j.dtype == tl.int32)
            if j > 4:
                acc += tl.load(ptr + tl.arange(0, 8))
                count += 1
            elif j == 2:
                count = j
            else:
                acc = acc * 2
            best = max(best, tl.max(acc, 0))
            pair = (pair[0] + 1, pair[1] + best)
        ONE_OR_MORE += 1
    tl.static_assert(count.dtype == tl.int32 and best.dtype == tl.float32)
    k = n
    while (k > 0) & (count < 100):
        k -= 1
        if k % 2 == 0:
            count += k
    tl.store(ptr + tl.arange(0, 8), acc + count + best + pair[0] + pair[1] + ONE_OR_MORE)
    tl.atomic_xchg(lock, 0)
    for step in range(n, -1, -2):
        tl.store(ptr + step, 0.0)


# *fp32, *i32, *u32, *fp16
@triton.jit
def memory(ptr, i_ptr, u_ptr, h_ptr):
    r = tl.arange(0, 16)
    x = tl.load(ptr + r, mask=r < 3, other=0, cache_modifier=".cg", eviction_policy="evict_last", volatile=True)
    tl.store(ptr + r, 1, mask=r > 3, cache_modifier=".wt", eviction_policy="evict_first")
    tl.store(h_ptr + r, x)
    tl.static_assert(tl.atomic_add(ptr, 1.0).dtype == tl.float32)
    tl.static_assert(tl.atomic_add(ptr + r, x, mask=r < 3, sem="relaxed", scope="cta").shape == (16,))
    tl.static_assert(tl.atomic_max(u_ptr + r, r.to(tl.uint32)).dtype == tl.uint32)
    tl.static_assert(tl.atomic_min(ptr + r, x).dtype == tl.float32 and tl.atomic_xor(i_ptr, 1).dtype == tl.int32)
    tl.static_assert(tl.atomic_cas(i_ptr + r, r, r + 1).shape == (16,))
    y = tl.multiple_of(tl.max_contiguous(r, 16), 16)
    tl.device_print("y", y)
    tl.device_assert(y < 16, "out of range")
    tl.debug_barrier()
    tl.assume(tl.program_id(0) >= 0)
    address = (ptr + 1).to(tl.int64)
    tl.static_assert(address.dtype == tl.int64 and address.to(tl.pointer_type(tl.int8)).dtype.is_ptr())
    tl.static_assert(tl.where(r < 3, ptr + r, ptr).dtype.is_ptr())
    tl.static_assert((ptr - 1).dtype.is_ptr() and (1 + ptr).dtype.is_ptr())
