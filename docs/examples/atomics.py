"""Atomics."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


# %% tl.atomic_add
@triton.jit
def total(x_ptr, sum_ptr, ticket_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(sum_ptr, tl.sum(x, axis=0))
    # What was there before: every program gets another number.
    ticket = tl.atomic_add(ticket_ptr, 1)
    tl.device_assert(ticket < tl.num_programs(0))


x, result, ticket = np.random.rand(1024), np.zeros(1), np.zeros(1, np.int32)
total[(8,)](x, result, ticket, BLOCK=128)
np.testing.assert_allclose(result[0], x.sum())
assert ticket[0] == 8


# %% tl.atomic_max, tl.atomic_min
@triton.jit
def extremes(x_ptr, high_ptr, low_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.atomic_max(high_ptr + i % 2, x, mask=i < n)  # of even and of odd places
    tl.atomic_min(low_ptr + i % 2, x, mask=i < n)


x = np.random.randint(-100, 100, 50, dtype=np.int32)
high, low = np.full(2, -1000, np.int32), np.full(2, 1000, np.int32)
extremes[(4,)](x, high, low, 50, BLOCK=16)
np.testing.assert_array_equal(high, x.reshape(25, 2).max(axis=0))
np.testing.assert_array_equal(low, x.reshape(25, 2).min(axis=0))


# %% tl.atomic_and, tl.atomic_or, tl.atomic_xor
@triton.jit
def bits(out_ptr):
    pid = tl.program_id(0) + 4
    tl.atomic_and(out_ptr, pid)
    tl.atomic_or(out_ptr + 1, pid)
    tl.atomic_xor(out_ptr + 2, pid)


out = np.array([-1, 0, 0], np.int32)
bits[(3,)](out)
np.testing.assert_array_equal(out, [4 & 5 & 6, 4 | 5 | 6, 4 ^ 5 ^ 6])


# %% tl.atomic_cas, tl.atomic_xchg
@triton.jit
def append(list_ptr, length_ptr, lock_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1, sem="acquire") == 1:
        pass
    # One program at a time is here.
    length = tl.load(length_ptr)
    tl.store(list_ptr + length, tl.program_id(0))
    tl.store(length_ptr, length + 1)
    tl.atomic_xchg(lock_ptr, 0, sem="release")


found = np.full(8, -1, np.int32)
length = np.zeros(1, np.int32)
lock = np.zeros(1, np.int32)
append[(8,)](found, length, lock)
np.testing.assert_array_equal(np.sort(found), np.arange(8))
