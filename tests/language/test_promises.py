"""What an author promises of numbers (``tl.multiple_of``, ``tl.max_contiguous``, ``tl.max_constancy``): it counts wherever the number comes from, and
where it is promised alone."""

import re

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl

BLOCK = 512


@triton.jit
def of_argument(x, n, first, m, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK) + tl.multiple_of(first, 16)
    tl.store(x + i, tl.load(x + i) + 1)


@triton.jit
def of_pointer(x, n, first, m, BLOCK: tl.constexpr):
    x = tl.multiple_of(x, 16)
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) + 1)


@triton.jit
def of_branches(x, n, first, m, BLOCK: tl.constexpr):
    at = first
    if n > m:
        at = first * m
    i = tl.arange(0, BLOCK) + tl.multiple_of(at, 16)
    tl.store(x + i, tl.load(x + i) + 1)


@triton.jit
def of_loop_variable(x, n, first, m, BLOCK: tl.constexpr):
    for at in range(first, n, m):
        at = tl.multiple_of(at, 16)
        i = tl.arange(0, BLOCK) + at
        tl.store(x + i, tl.load(x + i) + 1)


@triton.jit
def of_carried_numbers(x, n, first, m, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK) + first
    for _ in range(n):
        at = tl.max_contiguous(tl.multiple_of(at, 16), 16)
        tl.store(x + at, tl.load(x + at) + 1)
        at += m


@triton.jit
def of_carried_pointers(x, n, first, m, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK) + first
    turns = 0
    while turns < n:
        at = tl.max_contiguous(tl.multiple_of(at, 16), 16)
        tl.store(at, tl.load(at) + 1)
        at += m
        turns += 1


@triton.jit
def of_what_folds(x, n, first, m, BLOCK: tl.constexpr):
    one = tl.program_id(0) * 0 + 1
    i = tl.arange(0, BLOCK) + tl.multiple_of(first * one, 16)
    tl.store(x + i, tl.load(x + i) + 1)


@triton.jit
def of_a_difference(x, n, first, m, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK) + (tl.multiple_of(first + 16 - 1, 16) + 16)
    tl.store(x + i, tl.load(x + i) + 1)


@pytest.mark.parametrize(
    "kernel",
    [
        of_argument,
        of_pointer,
        of_branches,
        of_loop_variable,
        of_carried_numbers,
        of_carried_pointers,
        of_what_folds,
        of_a_difference,
    ],
    ids=lambda kernel: kernel.__name__,
)
def test_a_promise_counts_wherever_the_number_comes_from(kernel):
    kernel = triton.jit(kernel.fn, do_not_specialize=["n", "first", "m"])
    x = np.zeros(1025, np.float32)[1:] if kernel.__name__ == "of_pointer" else np.zeros(1024, np.float32)
    for target in "cuda:80", "cuda:90":
        ptx = kernel.warmup(x, 3, 17, 5, BLOCK, target=target).asm["ptx"]
        assert {"ld.global.v4.b32", "st.global.v4.b32"} <= set(re.findall(r"(?:ld|st)\.global[\w.]*", ptx))


@triton.jit
def under_a_condition(x, first, whole, BLOCK: tl.constexpr):
    first += 1
    if whole:
        i = tl.arange(0, BLOCK) + tl.multiple_of(first, 4)
        tl.store(x + i, tl.load(x + i) + 1)
    else:
        i = tl.arange(0, BLOCK) + first
        tl.store(x + i, tl.load(x + i) + 2)


@triton.jit
def in_a_loop_that_changes_nothing(x, out, K, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(K):
        x = tl.multiple_of(x, 16)
        total += tl.load(x + tl.arange(0, BLOCK) + k * BLOCK)
    tl.store(out + tl.arange(0, BLOCK), total)


@pytest.mark.parametrize("first", [3, 4])
def test_a_promise_under_a_condition_says_nothing_elsewhere(device, first):
    x = device.array(np.zeros(1024, np.float32))
    whole = first % 4 == 3
    under_a_condition[(1,)](x, first, whole, BLOCK)
    expected = np.zeros(1024, np.float32)
    expected[first + 1 : first + 1 + BLOCK] = 1 if whole else 2
    np.testing.assert_array_equal(device.numpy(x), expected)


def test_a_promise_in_a_loop_carries_nothing():
    kernel = in_a_loop_that_changes_nothing.warmup(tl.float32, tl.float32, 17, BLOCK, target="cuda:90")
    loops = [line for line in kernel.asm["ttir"].splitlines() if "scf.for" in line]
    assert len(loops) == 1 and "tt.ptr" not in loops[0]


@triton.jit
def promises(x, n, KIND: tl.constexpr, VALUES: tl.constexpr, INPUT: tl.constexpr):
    value = n + 1
    if INPUT == "float":
        value = value * 1.5
    if KIND == "multiple_of":
        value = tl.multiple_of(value, VALUES)
    elif KIND == "max_contiguous":
        value = tl.max_contiguous(value, VALUES)
    else:
        value = tl.max_constancy(value, VALUES)
    tl.store(x, value)


@pytest.mark.parametrize("kind", ["multiple_of", "max_contiguous", "max_constancy"])
@pytest.mark.parametrize("value", [0, -1])
def test_promised_numbers_are_positive(kind, value):
    with pytest.raises(
        triton.CompilationError, match=rf"`values` of tl\.{kind} must be positive, not {value}"
    ):
        promises.warmup(tl.float32, 7, kind, value, "int", target="cuda:90")


def test_a_promise_says_nothing_of_floats():
    with pytest.warns(UserWarning, match=r"tl\.multiple_of says nothing of floating-point numbers"):
        promises.warmup(tl.float32, 7, "multiple_of", 16, "float", target="cuda:90")
