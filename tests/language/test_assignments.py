"""Assignments in expressions (`:=`), wherever they stand, and variables that branches in a loop make different constants."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def in_a_while_test(x, out, n):
    y = 0
    t = 0
    while (y := y + 2) < n:
        t += y
    tl.store(out, y)
    tl.store(out + 1, t)
    # A variable that is not there before, and is behind the loop what the last test made it.
    s = 0
    p = x
    while (c := tl.load(p)) > 0:
        s += c
        p += 1
    tl.store(out + 2, s)
    tl.store(out + 3, c)
    k: tl.constexpr = 1
    while (k := k + 1) < n:
        t += k
    tl.store(out + 4, k)
    tl.store(out + 5, t)


@pytest.mark.parametrize("n", [0, 1, 5, 10])
def test_in_the_test_of_a_while(device, n):
    out = device.empty(6, np.int32)
    in_a_while_test[(1,)](device.array(np.array([3, 4, 5, -7, 9], np.int32)), out, n)
    y = t = 0
    while (y := y + 2) < n:
        t += y
    want = [y, t, 12, -7]
    k = 1
    while (k := k + 1) < n:
        t += k
    assert device.numpy(out).tolist() == [*want, k, t]


@triton.jit
def tile_in_a_while_test(out, n):
    i = 0
    while tl.sum((v := tl.arange(0, 16) * i), 0) < n:
        i += 1
    tl.store(out + tl.arange(0, 16), v)


def test_a_tile_in_the_test_of_a_while(device):
    out = device.empty(16, np.int32)
    tile_in_a_while_test[(1,)](out, 400)
    assert device.numpy(out).tolist() == [4 * i for i in range(16)]


@triton.jit
def in_a_loop(out, n):
    y = 0
    t = 0
    z = 0
    for i in range(n):
        for _ in range(y := y + 1):
            t += 1
        assert (z := z + i) >= 0  # noqa: RUF018 (what is tested)
    tl.store(out, y)
    tl.store(out + 1, t)
    tl.store(out + 2, z)


def test_in_other_statements_of_a_loop(device):
    out = device.empty(3, np.int32)
    in_a_loop[(1,)](out, 5)
    assert device.numpy(out).tolist() == [5, 15, 10]


@triton.jit
def other_constants(out, n):
    mode = "a"
    none = None
    for i in range(n):
        if i > 2:
            mode = "b"
            none = tl.arange(0, 4)
        tl.store(out + i, i)
    i = 0
    dtype = tl.float32
    while i < n:
        if i > 2:
            dtype = tl.float16
        i += 1
    tl.store(out + n, i)


@triton.jit
def read_again(out, n):
    mode = "a"
    for i in range(n):
        if mode == "a":
            tl.store(out + i, i)
        if i > 2:
            mode = "b"


def test_branches_of_a_loop_make_it_another_constant(device):
    out = device.zeros(8, np.int32)
    other_constants[(1,)](out, 5)
    assert device.numpy(out).tolist() == [0, 1, 2, 3, 4, 5, 0, 0]
    with pytest.raises(triton.CompilationError, match="different at compile time in the branches of an `if`"):
        read_again[(1,)](out, 5)


@triton.jit
def loop_variable_behind(out, n):
    i = 5
    for i in range(n):  # noqa: B007 (what is tested)
        tl.store(out + 1, n)
    tl.store(out, i)


@triton.jit
def loop_variable_behind_the_inner(out, n):
    j = 0
    total = 0
    for _ in range(n):
        for j in range(3):
            total += j
        total += j
    tl.store(out, total)


@triton.jit
def loop_variable_of_a_branch(out, n):
    i = 5
    if n > 2:
        for i in range(n):
            tl.store(out + i, n)
    tl.store(out, i)


# Python's value there is that of the last step, if there was one; what the name was before is wrong.
@pytest.mark.parametrize(
    "kernel", [loop_variable_behind, loop_variable_behind_the_inner, loop_variable_of_a_branch]
)
def test_the_variable_of_a_loop_is_not_what_had_its_name(device, kernel):
    with pytest.raises(triton.CompilationError, match="a loop's variable does not exist after the loop"):
        kernel[(1,)](device.zeros(8, np.int32), 3)


@triton.jit
def loop_variable_again(out, n):
    total = 0
    j = 0
    for _ in range(n):
        for j in range(3):
            total += j
    for j in range(2):
        total += j
    for n in range(n):  # noqa: B020
        total += n
    tl.store(out, total)


def test_the_variable_of_a_loop_is_taken_again(device):
    out = device.empty(1, np.int32)
    loop_variable_again[(1,)](out, 4)
    assert device.numpy(out)[0] == 4 * 3 + 1 + 6


@triton.jit
def lost_in_a_branch_of_a_branch(out, n):
    mode = "a"
    if n > 0:
        if n > 1:
            mode = "b"
    tl.store(out, mode == "a")


def test_what_a_branch_loses_is_lost_behind_the_branches_around_it(device):
    with pytest.raises(triton.CompilationError, match="different at compile time in the branches of an `if`"):
        lost_in_a_branch_of_a_branch[(1,)](device.empty(1, np.int32), 2)


@triton.jit
def no_number_any_more(out, n):
    x = 1
    for i in range(n):
        if i > 1:
            x = "s"
        tl.store(out + i, i)


def test_a_number_that_a_branch_of_a_loop_makes_none(device):
    out = device.zeros(4, np.int32)
    no_number_any_more[(1,)](out, 3)
    assert device.numpy(out).tolist() == [0, 1, 2, 0]


@triton.jit
def in_a_comprehension(out, n):
    i = n
    t = [(y := i * 10 + n) for i in range(3, 0, -2)]
    tl.store(out, i)
    tl.store(out + 1, t[0])
    tl.store(out + 2, y)


def test_in_a_comprehension(device):
    out = device.empty(3, np.int32)
    in_a_comprehension[(1,)](out, 5)
    assert device.numpy(out).tolist() == [5, 35, 15]


@triton.jit
def in_a_conditional_expression(out, n):
    y = 1
    x = (y := n + 1) if n > 2 else (z := 7)
    tl.store(out, x)
    tl.store(out + 1, y)
    w = (z := n) if n > 3 else (z := 4)
    tl.store(out + 2, z)
    tl.store(out + 3, w + z)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_in_a_conditional_expression(device, n):
    out = device.empty(4, np.int32)
    in_a_conditional_expression[(1,)](out, n)
    y = n + 1 if n > 2 else 1
    z = n if n > 3 else 4
    assert device.numpy(out).tolist() == [y if n > 2 else 7, y, z, 2 * z]


@triton.jit
def of_two_types(x, out, n):
    # What nobody reads any more may have a type on each side, new names and old ones.
    old = tl.load(x)
    a = (t := tl.load(x)) if n > 2 else tl.sum(t := tl.load(x + tl.arange(0, 4)))
    if n > 3:
        u = tl.load(x + 1)
        old = tl.load(x + tl.arange(0, 4))
    else:
        u = tl.load(x).to(tl.float64)
        old = u
    for i in range(n):
        v = (w := i) if i > 1 else (w := i * 1.5).to(tl.int32)
        a += v
    t = n
    tl.store(out, a + t)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_names_of_two_types_that_nobody_reads(device, n):
    out = device.empty(1, np.float32)
    of_two_types[(1,)](device.array(np.float32([1, 2, 3, 4])), out, n)
    assert device.numpy(out).tolist() == [
        (1 if n > 2 else 10) + sum(int(i if i > 1 else i * 1.5) for i in range(n)) + n
    ]


@triton.jit
def read_in_a_loop(x, n):
    t = tl.load(x)
    for i in range(n):
        tl.store(x + 1, t)
        if i > 2:
            t = tl.load(x)
        else:
            t = tl.load(x + tl.arange(0, 2))


@triton.jit
def read_behind(x, n):
    y = (t := tl.load(x)) if n > 2 else tl.sum(t := tl.load(x + tl.arange(0, 4)))
    tl.store(x, y + t)


@pytest.mark.parametrize("kernel", [read_in_a_loop, read_behind])
def test_names_of_two_types_that_are_read(device, kernel):
    with pytest.raises(triton.CompilationError, match=r"`t` is fp32 after .* but <\[[24]\], fp32> after"):
        kernel[(1,)](device.array(np.zeros(4, np.float32)), 5)
    device.numpy(device.empty(1, np.float32))


SHADOWED = tl.constexpr(3)


@triton.jit
def shadowed_in_one_branch(x, n):
    if n > 2:
        SHADOWED = 5
    tl.store(x, SHADOWED)


@triton.jit
def shadowed_by_two_types(x, n):
    if n > 2:
        SHADOWED = tl.load(x)
    else:
        SHADOWED = tl.load(x).to(tl.float64)
    tl.store(x, SHADOWED)


@triton.jit
def shadowed_in_a_loop(x, n):
    for i in range(n):
        SHADOWED = i
    tl.store(x, SHADOWED)


@pytest.mark.parametrize(
    "kernel, why",
    [
        (shadowed_in_one_branch, "it is assigned in only one branch of an `if`"),
        (shadowed_by_two_types, "`SHADOWED` is fp32 after the `then` branch but fp64"),
        (shadowed_in_a_loop, "it is assigned only inside a loop"),
    ],
)
def test_what_is_outside_does_not_stand_in_for_a_variable(device, kernel, why):
    with pytest.raises(triton.CompilationError, match=why):
        kernel[(1,)](device.array(np.zeros(1, np.float32)), 5)
    device.numpy(device.empty(1, np.float32))


@triton.jit
def two_constants(c, d, n):
    for i in range(n):
        c += i
        d = d + 2
    return c + d


@triton.jit
def a_name_of_an_inner_loop(c, j, n):
    for i in range(n):
        c += i
        for j in range(2):
            c += j
    return c


@triton.jit
def constants_of_a_while(c, d, n):
    while c < n:
        c += 1
        d += c
    return c * 100 + d


@triton.jit
def constants_in_loops_kernel(out_ptr, n):
    tl.store(out_ptr, two_constants(1, 2, n))
    tl.store(out_ptr + 1, a_name_of_an_inner_loop(1, 2, n))
    tl.store(out_ptr + 2, constants_of_a_while(1, 2, n))


def test_constants_that_a_loop_changes_one_after_the_other(device):
    """Each wants the loop written anew; what stands for the first of them stays."""
    out = device.empty(3, np.int32)
    constants_in_loops_kernel[(1,)](out, 3)
    np.testing.assert_array_equal(device.numpy(out), [1 + 3 + 2 + 6, 1 + 3 + 3, 300 + 2 + 2 + 3])
