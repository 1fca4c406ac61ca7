"""What divides numbers may be negative, wherever its sign comes from."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


def quotient(x, y):
    """Rounded to zero."""
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


@triton.jit
def stored_kernel(out_ptr, divisor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, i // divisor)


def check_stored(kernel, device, divisor):
    out = device.array(np.zeros(32, np.int32))
    kernel[(2, 1, 1)](out, divisor)
    np.testing.assert_array_equal(device.numpy(out), [quotient(i, divisor) for i in range(32)])


@pytest.mark.parametrize("divisor", [3, -3])
def test_a_compiled_kernel_takes_any_divisor_where_its_sign_matters_to_nothing(device, divisor):
    out = device.array(np.zeros(32, np.int32))
    for kernel in (
        stored_kernel.warmup(out, divisor, BLOCK=16, grid=(2,)),
        stored_kernel[(2,)](out, divisor, BLOCK=16),
    ):
        check_stored(kernel, device, -3)
        check_stored(kernel, device, -5)
        check_stored(kernel, device, 7)


@triton.jit(noinline=True)
def sum_from(out_ptr, n, divisor):
    first = tl.program_id(0) // divisor
    total = 0
    for j in range(first, n, 2):
        total += j
    tl.store(out_ptr + tl.program_id(0), total)


@triton.jit
def sums_kernel(out_ptr, n, a, b, OF: tl.constexpr):
    """A loop begins at a quotient, which is negative where the divisor is."""
    if OF == "argument" or OF == "function":
        divisor = a
    elif OF == "select":
        divisor = tl.where(a > b, b, a)
    elif OF == "remainder":
        divisor = a % b
    elif OF == "shift":
        divisor = a >> 1
    elif OF == "or":
        divisor = a | 1
    elif OF == "branch":
        divisor = a
        if b > 2:
            divisor = a | 2
    elif OF == "abs":
        divisor = -tl.abs(a)
    if OF == "function":
        sum_from(out_ptr, n, divisor)
    else:
        first = tl.program_id(0) // divisor
        total = 0
        for j in range(first, n, 2):
            total += j
        tl.store(out_ptr + tl.program_id(0), total)


DIVISORS = {
    "argument": lambda a, b: a,
    "function": lambda a, b: a,
    "select": min,
    "remainder": lambda a, b: a - quotient(a, b) * b,
    "shift": lambda a, b: a >> 1,
    "or": lambda a, b: a | 1,
    "branch": lambda a, b: a | 2 if b > 2 else a,
    "abs": lambda a, b: -abs(a),
}


@pytest.mark.parametrize("of", DIVISORS)
@pytest.mark.parametrize("a, b", [(-1, 3), (-3, 2), (-5, 3)])
def test_divisors_that_come_from_arguments_alone(device, of, a, b):
    divisor = DIVISORS[of](a, b)
    out = device.array(np.zeros(6, np.int32))
    sums_kernel[(6,)](out, 20, a, b, OF=of, num_warps=1)
    firsts = [quotient(p, divisor) for p in range(6)]
    np.testing.assert_array_equal(device.numpy(out), [sum(range(first, 20, 2)) for first in firsts])


def test_a_kernel_that_is_compiled_for_a_negative_divisor_takes_it(device):
    # The loop's ends are computed from signs: of a kernel that is compiled for a positive divisor a negative one is refused.
    out = device.array(np.zeros(6, np.int32))
    kernel = sums_kernel.warmup(out, 20, -1, 3, OF="argument", num_warps=1, grid=(6,))
    kernel[(6, 1, 1)](out, 20, -1, 3)
    np.testing.assert_array_equal(device.numpy(out), [sum(range(-p, 20, 2)) for p in range(6)])
    if device.backend != "interp":
        kernel = sums_kernel.warmup(out, 20, 2, 3, OF="argument", num_warps=1, grid=(6,))
        with pytest.raises(ValueError, match="divides by a number that is negative here"):
            kernel[(6, 1, 1)](out, 20, -1, 3)
