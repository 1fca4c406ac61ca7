"""Control flow, calls, constants, globals."""

import re
from typing import NamedTuple

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.compiler.errors import CompileTimeAssertionFailure, UnsupportedLanguageConstruct

SCALE = tl.constexpr(3)
OFFSET: tl.constexpr = 5


@triton.jit
def loops_kernel(out_ptr, n, step, N: tl.constexpr):
    total = 0
    for i in range(n):
        total += i
    tl.store(out_ptr, total)
    total = 0
    for i in range(10, n, step):
        if i % 2 == 0:
            total += i
        else:
            total -= 1
    tl.store(out_ptr + 1, total)
    while total > 7:
        total = total // 2
    tl.store(out_ptr + 2, total)
    product = 1
    for i in tl.static_range(1, N):
        product *= i
    tl.store(out_ptr + 3, product)
    down = 0
    for i in range(n, 0, -1):
        down = down * 3 + i
        down = down % 1000
    tl.store(out_ptr + 4, down)
    acc = 0
    for i in tl.range(0, n, 1, num_stages=2):
        for j in range(i):
            acc += j if j % 3 == 0 else 1
    tl.store(out_ptr + 5, acc)


@pytest.mark.parametrize("n,step", [(0, 1), (1, 3), (25, 3), (40, 7)])
def test_loops(device, n, step):
    out = device.empty(6, np.int32)
    loops_kernel[(1,)](out, n, step, N=6)
    b = sum(i if i % 2 == 0 else -1 for i in range(10, n, step))
    c = b
    while c > 7:
        c //= 2
    down = 0
    for i in range(n, 0, -1):
        down = (down * 3 + i) % 1000
    acc = sum(j if j % 3 == 0 else 1 for i in range(n) for j in range(i))
    np.testing.assert_array_equal(device.numpy(out), [sum(range(n)), b, c, 120, down, acc])


@triton.jit
def pick(x, flag):
    if flag > 2:
        return x * 2
    elif flag == 1:
        return x + 100
    return x


@triton.jit
def early_kernel(out_ptr, flag, n, N: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= n:
        return
    x = pick(tl.arange(0, N) + pid, flag)
    if flag == 4:
        tl.store(out_ptr + pid * N + tl.arange(0, N), x - 1)
        return
    tl.store(out_ptr + pid * N + tl.arange(0, N), x)


@pytest.mark.parametrize("flag", [0, 1, 3, 4])
def test_early_return(device, flag):
    out = device.empty((4, 8), np.int32)
    early_kernel[(4,)](out, flag, 3, N=8)
    x = np.arange(8) + np.arange(4)[:, None]
    want = {0: x, 1: x + 100, 3: x * 2, 4: x * 2 - 1}[flag]
    want[3] = 117
    np.testing.assert_array_equal(device.numpy(out), want)


class Box(NamedTuple):
    low: int
    high: int


@triton.jit
def swap(pair):
    return pair[1], pair[0]


@triton.jit
def static_kernel(out_ptr, x, FLAG: tl.constexpr, NAME: tl.constexpr, SHAPE: tl.constexpr):
    a, b = swap((x, x + 1))
    tl.store(out_ptr, a * 10 + b)
    tl.static_assert(len(SHAPE) == 2, "two dimensions")
    if FLAG and NAME == "wide":
        tl.store(out_ptr + 1, SCALE * x + OFFSET)
    else:
        tl.store(out_ptr + 1, SHAPE[0] + SHAPE[1])
    y = x if FLAG else -x
    tl.store(out_ptr + 2, y)
    both = FLAG and x > 3
    tl.store(out_ptr + 3, tl.where(both, 1, 0))
    tl.store(out_ptr + 4, tl.cdiv(x, 4) + max(x, 9) + min(x, 2) + int(FLAG))


@pytest.mark.parametrize("flag,name", [(True, "wide"), (False, "wide"), (True, "thin")])
@pytest.mark.parametrize("x", [2, 11])
def test_constants(device, flag, name, x):
    out = device.empty(5, np.int32)
    static_kernel[(1,)](out, x, FLAG=flag, NAME=name, SHAPE=(4, 6))
    second = 3 * x + 5 if flag and name == "wide" else 10
    want = [
        (x + 1) * 10 + x,
        second,
        x if flag else -x,
        int(flag and x > 3),
        -(-x // 4) + max(x, 9) + min(x, 2) + flag,
    ]
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def carried_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x_ptr + i)
    b = tl.zeros_like(a)
    ptr = x_ptr
    for _ in range(n):
        a, b = b + 1, a
        ptr += N
        b += tl.load(ptr + i)
    tl.store(out_ptr + i, a - b)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_swapped_loop_values(device, n):
    x = np.random.default_rng(0).integers(-50, 50, (7, 12)).astype(np.int32)
    out = device.empty(12, np.int32)
    carried_kernel[(1,)](device.array(x), out, n, N=12)
    a, b = x[0].copy(), np.zeros(12, np.int32)
    for k in range(n):
        a, b = b + 1, a
        b = b + x[k + 1]
    np.testing.assert_array_equal(device.numpy(out), a - b)


@triton.jit
def grid_kernel(out_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    index = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.store(out_ptr + index, x + 10 * y + 100 * z)


def test_grid(device):
    out = device.empty((2, 3, 4), np.int32)
    grid_kernel[lambda meta: (4, 3, 2)](out)
    z, y, x = np.indices((2, 3, 4))
    np.testing.assert_array_equal(device.numpy(out), x + 10 * y + 100 * z)


@triton.jit
def noop_kernel(x_ptr, n, flag, value, nothing, N: tl.constexpr = 4):
    if nothing is None:
        tl.store(x_ptr + tl.arange(0, N), value + n)
    if flag:
        tl.store(x_ptr + N, 1.0)


def test_argument_kinds(device):
    out = device.zeros(5, np.float32)
    noop_kernel[(1,)](out, 2**40, True, 0.5, None)
    np.testing.assert_allclose(device.numpy(out), [2.0**40] * 4 + [1])
    noop_kernel[(1,)](out, n=1, flag=False, value=2, nothing=None, N=2)
    np.testing.assert_allclose(device.numpy(out), [3, 3, 2.0**40, 2.0**40, 1])


@triton.jit
def promised_kernel(x_ptr, out_ptr, n, stride):
    tl.assume(stride % 16 == 0)
    tl.assume(n > 0)
    at = tl.program_id(0) * stride + tl.arange(0, 256)
    tl.store(out_ptr + at, tl.load(x_ptr + at) // n)


def test_what_is_assumed_widens_accesses(device):
    x, out = np.arange(512, dtype=np.int32), device.empty((512,), np.int32)
    kernel = promised_kernel[(2,)](device.array(x), out, 3, 240, num_warps=1)
    np.testing.assert_array_equal(device.numpy(out)[:496], (x // 3)[:496])
    if "ptx" in kernel.asm:
        assert "ld.global.v4" in kernel.asm["ptx"]


@triton.jit
def advised_while_kernel(out_ptr, n, m, ADVICE: tl.constexpr):
    i = 0
    while tl.condition(i < n, disable_licm=ADVICE):
        i += m * m
    tl.store(out_ptr, i)


@pytest.mark.parametrize("advice", [False, True])
def test_nothing_leaves_a_while_that_says_so(device, advice):
    out = device.empty((1,), np.int32)
    kernel = advised_while_kernel[(1,)](out, 20, 3, ADVICE=advice)
    assert device.numpy(out)[0] == 27
    before, _, loop = kernel.asm["ttir"].partition("scf.while")
    assert ("arith.muli" in loop) == advice and ("arith.muli" in before) != advice


@triton.jit
def unrolled_kernel(x_ptr, out_ptr, start, stop, STEP: tl.constexpr, FACTOR: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    acc = tl.zeros((N,), tl.int32)
    last = -1
    for i in tl.range(start, stop, STEP, loop_unroll_factor=FACTOR, num_stages=2):
        for j in tl.range(0, i % 3, loop_unroll_factor=2):
            last = last * 2 % 1000 + j
        acc = acc * 3 % 1000 + tl.load(x_ptr + i * N + offsets)
        last += i
    tl.store(out_ptr + offsets, acc + last)


@pytest.mark.parametrize(
    "start,stop,step", [(0, 12, 1), (0, 13, 1), (3, 3, 1), (5, 2, 1), (1, 14, 3), (13, 0, -2)]
)
@pytest.mark.parametrize("factor", [1, 2, 4])
def test_unrolled(device, start, stop, step, factor):
    x = np.arange(16 * 32, dtype=np.int32).reshape(16, 32) % 97
    out = device.empty(32, np.int32)
    unrolled_kernel[(1,)](device.array(x), out, start, stop, STEP=step, FACTOR=factor, N=32)
    acc, last = np.zeros(32, np.int64), -1
    for i in range(start, stop, step):
        for j in range(i % 3):
            last = int(np.fmod(last * 2, 1000)) + j
        acc = acc * 3 % 1000 + x[i]
        last += i
    np.testing.assert_array_equal(device.numpy(out), acc + last)


@pytest.mark.parametrize("factor,loads", [(None, 1), (1, 1), (4, 5)])
def test_unrolled_code(factor, loads):
    """The body stands in the code as often as it was asked for, and once more for what is left over."""

    @triton.jit
    def kernel(x_ptr, out_ptr, n, FACTOR: tl.constexpr):
        acc = 0.0
        for i in tl.range(0, n, loop_unroll_factor=FACTOR):
            acc = acc * 0.5 + tl.load(x_ptr + i * i)
        tl.store(out_ptr, acc)

    from tilewright.compiler import ASTSource

    source = ASTSource(
        kernel, {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "FACTOR": "constexpr"}, {"FACTOR": factor}
    )
    assert triton.compile(source, target="cuda:90").asm["ptx"].count("ld.global") == loads


@triton.must_use_result
@triton.jit
def doubled(x):
    return x * 2


@triton.jit
def used_kernel(out_ptr):
    x = doubled(tl.load(out_ptr))
    tl.store(out_ptr, doubled(x))


def test_used_results(device):
    out = device.array(np.array([3], np.int32))
    used_kernel[(1,)](out)
    np.testing.assert_array_equal(device.numpy(out), [12])


@triton.jit
def steps_to_one_kernel(out_ptr, start, n, wide_n, up: tl.constexpr):
    steps, squares = 0, 0
    for i in range(start, n, up):
        steps += 1
        squares += i * i
    tl.store(out_ptr, steps)
    tl.store(out_ptr + 1, squares)
    steps = 0
    for _ in range(-3, wide_n):
        steps += 1
    tl.store(out_ptr + 2, steps)
    i = start
    while i < 1:
        i += 1
    tl.store(out_ptr + 3, i)


@pytest.mark.parametrize("start, up", [(-3, 1), (-7, 1), (2, 1), (-6, 2)])
def test_loops_from_below_zero_to_one_step_above(device, start, up):
    """`i + up < up` is `i < 0`, of which LLVM makes a comparison without sign, which `ptxas` takes for one of the next value."""
    out = device.empty(4, np.int32)
    steps_to_one_kernel[(1,)](out, start, up, 1, up=up)
    ran = range(start, up, up)
    want = [len(ran), sum(i * i for i in ran), 4, max(start, 1)]
    np.testing.assert_array_equal(device.numpy(out), want)


def test_no_loop_is_counted_without_its_sign():
    for args in [(-3, 1, 1, 1), (-6, 2, 1, 2)]:
        kernel = steps_to_one_kernel.warmup(np.int32, *args, grid=(1,), target="cuda:90")
        assert not re.search(r"setp\.g[te]\.u32.*, 21474836\d\d;", kernel.asm["ptx"])


@triton.jit
def half_of_even(x):
    if x % 2 == 0:
        return x // 2


@triton.jit
def half_kernel(out_ptr, n):
    tl.store(out_ptr, half_of_even(n))


def test_a_function_that_returns_on_one_path(device):
    out = device.empty(1, np.int32)
    for n in (8, 7):
        half_kernel[(1,)](out, n)
        assert device.numpy(out)[0] == (4 if n == 8 else 0)


def test_a_function_that_returns_on_one_path_warns():
    with pytest.warns(
        UserWarning, match="returns int32 on one path and nothing on another: there it gives 0"
    ):
        half_kernel.warmup(tl.int32, 12, grid=(1,), num_warps=2)


@triton.jit
def even(out, N: tl.constexpr):
    tl.static_assert(N % 2 == 0, "N must be even")
    tl.store(out, N)


@triton.jit
def at_least_four(out, N: tl.constexpr):
    assert N >= 4, "N is small"
    tl.store(out, N)


@triton.jit
def with_break(out, N: tl.constexpr):
    for i in range(N):
        if tl.load(out) == i:
            break


@triton.jit
def with_unknown(out, N: tl.constexpr):
    tl.store(out, unknown)  # noqa: F821


# Programs that try configurations tell a demand that fails from a kernel that is wrong.
@pytest.mark.parametrize(
    ("kernel", "error"),
    [
        (even, CompileTimeAssertionFailure),
        (at_least_four, CompileTimeAssertionFailure),
        (with_break, UnsupportedLanguageConstruct),
        (with_unknown, triton.CompilationError),
    ],
)
def test_classes_of_errors(device, kernel, error):
    with pytest.raises(triton.CompilationError) as caught:
        kernel[(1,)](device.zeros(1, np.int32), 3)
    assert type(caught.value) is error


@triton.jit
def _of_many_ways_out(x, n, m):
    for i in tl.static_range(20):
        if n > i:
            x += 1
            if m == i:
                return x
            step = x * 2
        else:
            x -= 1
            step = 1
        x += step % 3
    return -x


@triton.jit
def _of_one_way_out(out, n, m):
    if n > 2:
        if m > 2:
            return
        scale = 2.0
        kind: tl.constexpr = 3
        place = out + n % 2
    else:
        scale = 3.0
        kind: tl.constexpr = 3
        place = out
    tl.store(place, scale * kind)


@triton.jit
def ways_out_kernel(out, n, m):
    tl.store(out, _of_many_ways_out(n, n, m))
    _of_one_way_out(out + 1, n, m)


# What follows an `if` both sides of which may go on stands there once, or 20 of them would make a million.
@pytest.mark.parametrize(("n", "m"), [(0, 0), (3, 1), (3, 7), (30, 19), (30, 25), (10, 12)])
def test_ways_out_of_both_sides_of_an_if(device, n, m):
    def many(x):
        for i in range(20):
            if n > i:
                x += 1
                if m == i:
                    return x
                step = x * 2
            else:
                x -= 1
                step = 1
            x += step % 3 if step >= 0 else -(-step % 3)
        return -x

    out = device.zeros(3, np.float32)
    ways_out_kernel[(1,)](out, n, m)
    want = [many(n), 0, 0]
    if n <= 2 or m <= 2:
        want[1 + (n % 2 if n > 2 else 0)] = 6 if n > 2 else 9
    assert device.numpy(out).tolist() == want


def test_the_code_of_many_ways_out_is_short():
    kernel = ways_out_kernel.warmup(np.float32, 5, 7, grid=(1,), target="cuda:90")
    assert kernel.asm["ttir"].count("\n") < 1000


@triton.jit
def bounds_kernel(bounds, out, DOWN: tl.constexpr, STEP: tl.constexpr, UNROLL: tl.constexpr):
    first, end, step = tl.load(bounds), tl.load(bounds + 1), tl.load(bounds + 2)
    count, total = 0, tl.zeros([], tl.int64)
    if DOWN:
        for i in tl.range(end, first, -STEP, loop_unroll_factor=UNROLL):
            count += 1
            total += i.to(tl.int64)
    elif UNROLL > 1:
        for i in tl.range(first, end, STEP, loop_unroll_factor=UNROLL):
            count += 1
            total += i.to(tl.int64)
    else:
        for i in range(first, end, step):
            tl.static_assert(i.dtype == bounds.dtype.element_ty)
            count += 1
            total += i.to(tl.int64)
    tl.store(out, count)
    tl.store(out + 1, total)


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize(
    ("dtype", "first", "end", "step"),
    [
        (np.int8, 100, 120, 64),
        (np.int8, -128, 127, 100),
        (np.uint8, 100, 250, 100),
        (np.int16, 0, 32760, 1000),
        (np.uint16, 40000, 65535, 1000),
        (np.uint32, 2_147_483_000, 2_147_485_000, 1000),
        (np.uint32, 3_000_000_000, 3_000_002_001, 1000),
        (np.uint32, 4_294_960_000, 4_294_967_295, 1000),
    ],
)
def test_loops_over_narrow_and_unsigned_numbers(device, dtype, first, end, step, down):
    # What comes after the last number does not fit the type, or is no signed number.
    out = device.empty(2, np.int64)
    bounds_kernel[(1,)](device.array(np.array([first, end, step], dtype)), out, down, 1000, 1)
    numbers = range(end, first, -1000) if down else range(first, end, step)
    assert device.numpy(out).tolist() == [len(numbers), sum(numbers)]


@pytest.mark.parametrize("way", ["up", "down", "unrolled"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64])
def test_loops_to_the_ends_of_a_type(device, dtype, way):
    # What comes after the last number, or what is added to it four times, does not fit the type.
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    fifth, half = (high - low) // 5, (high - low) // 2
    for first, end, step in [
        (high - 2500, high, 1024), (high - 3, high, 1), (high - 64, high, 16), (low, high, fifth), (low, high, half),
        (low, low + 3000, 1000), (0, high, high // 3), (high, low, 3), (high - 3, high - 3, 5),
    ]:  # fmt: skip
        if way == "down":
            numbers = range(end, first, -step)
        else:
            numbers = range(first, end, step)
        if way == "down" and (first, end) == (high, low):
            continue
        out = device.empty(2, np.int64)
        bounds = device.array(np.array([first, end, step], dtype))
        bounds_kernel[(1,)](bounds, out, way == "down", step, 4 if way == "unrolled" else 1)
        total = (sum(numbers) + 2**63) % 2**64 - 2**63
        assert device.numpy(out).tolist() == [len(numbers), total], (first, end, step)


@triton.jit
def ahead_kernel(a, b, out, bounds, FROM_ZERO: tl.constexpr, STEP: tl.constexpr):
    first, end = tl.load(bounds), tl.load(bounds + 1)
    r = tl.arange(0, 32)
    acc = tl.zeros([32, 32], tl.float32)
    for i in range(0 if FROM_ZERO else first, end, STEP):
        at = ((i - first) // STEP).to(tl.int64) * 16
        k = at + tl.arange(0, 16)
        acc = tl.dot(tl.load(a + r[:, None] * 64 + k), tl.load(b + k[:, None] * 32 + r), acc)
    tl.store(out + r[:, None] * 32 + r, acc)


@pytest.mark.parametrize("num_stages", [2, 4])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64])
def test_copies_ahead_of_the_last_number_of_a_type(device, dtype, num_stages):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((32, 64)).astype(np.float16)
    b = rng.standard_normal((64, 32)).astype(np.float16)
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    for first, end, step in [
        (high - 4000, high, 1024), (high - 3, high, 1), (0, high, high // 3), (0, high, high // 4 + 1), (high, low, 16)
    ]:  # fmt: skip
        out = device.empty((32, 32), np.float32)
        bounds = device.array(np.array([first, end], dtype))
        ahead_kernel[(1,)](
            device.array(a), device.array(b), out, bounds, first == 0, step, num_stages=num_stages
        )
        n = 16 * len(range(first, end, step))
        expected = a[:, :n].astype(np.float32) @ b[:n].astype(np.float32)
        np.testing.assert_allclose(device.numpy(out), expected, atol=1e-2)
