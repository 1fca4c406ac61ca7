"""Loads, stores, masks, atomics, random numbers."""

import dropout
import ml_dtypes
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def masked_kernel(x_ptr, out_ptr, n, OTHER: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i, mask=i < n, other=OTHER)
    tl.store(out_ptr + i, x)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int64, np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
)
@pytest.mark.parametrize("size,n", [(64, 64), (64, 13), (96, 50), (1, 0), (1000, 999)])
def test_masked_load(device, dtype, size, n):
    x = np.random.default_rng(0).integers(-100, 100, size).astype(dtype)
    out = device.empty(size, dtype)
    masked_kernel[(1,)](device.array(x), out, n, OTHER=-7, N=size)
    np.testing.assert_array_equal(
        device.numpy(out), np.where(np.arange(size) < n, x, np.array(-7, dtype)).astype(dtype)
    )


@triton.jit
def strided_kernel(x_ptr, out_ptr, stride_x, stride_y, m, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    mask = (i[:, None] < m) & (j[None, :] < n)
    x = tl.load(x_ptr + i[:, None] * stride_x + j[None, :] * stride_y, mask=mask, other=0)
    tl.store(out_ptr + i[:, None] * N + j[None, :], x * 2)


@pytest.mark.parametrize("strides", [(40, 1), (1, 40), (80, 2)])
@pytest.mark.parametrize("tile", [(16, 32), (24, 40)])
def test_strides(device, strides, tile):
    x = np.random.default_rng(1).integers(0, 100, 4000).astype(np.float16)
    out = device.empty(tile, np.float16)
    m, n = 14, 31
    strided_kernel[(1,)](device.array(x), out, *strides, m, n, *tile)
    i, j = np.indices(tile)
    want = np.where((i < m) & (j < n), x[np.minimum(i * strides[0] + j * strides[1], 3999)] * 2, 0)
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + tl.load(index_ptr + i), tl.load(x_ptr + tl.load(index_ptr + i)) + i)


def test_indirect(device):
    index = np.random.default_rng(2).permutation(80).astype(np.int64)
    x = np.arange(80, dtype=np.int32) * 3
    out = device.empty(80, np.int32)
    gather_kernel[(1,)](device.array(x), device.array(index), out, N=80)
    want = np.empty(80, np.int32)
    want[index] = x[index] + np.arange(80)
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def atomic_kernel(ptr, old_ptr, value_ptr, n, OP: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    value = tl.load(value_ptr + i, mask=i < n)
    where = ptr + i % 5
    if OP == "add":
        tl.atomic_add(where, value, mask=i < n)
    elif OP == "max":
        tl.atomic_max(where, value, mask=i < n)
    elif OP == "min":
        tl.atomic_min(where, value, mask=i < n)
    elif OP == "and":
        tl.atomic_and(where, value, mask=i < n)
    elif OP == "or":
        tl.atomic_or(where, value, mask=i < n)
    elif OP == "xor":
        tl.atomic_xor(where, value, mask=i < n)
    tl.atomic_add(old_ptr, 1)


@pytest.mark.parametrize("size", [32, 48])
@pytest.mark.parametrize(
    "op,dtype",
    [(op, t) for op in ("add", "max", "min", "and", "or", "xor") for t in (np.int32, np.int64)]
    + [(op, t) for op in ("add", "max", "min") for t in (np.float32,)]
    + [("add", np.float16), ("add", np.float64)],
)
def test_atomics(device, op, dtype, size):
    rng = np.random.default_rng(3)
    n = 203
    value = rng.integers(-8, 8, n).astype(dtype)
    start = rng.integers(-8, 8, 5).astype(dtype)
    out, count = device.array(start.copy()), device.zeros(1, np.int32)
    programs = triton.cdiv(n, size)
    atomic_kernel[(programs,)](out, count, device.array(value), n, OP=op, N=size)
    ufunc = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op]  # fmt: skip
    want = start.copy()
    ufunc.at(want, np.arange(n) % 5, value)
    np.testing.assert_array_equal(device.numpy(out), want)
    assert device.numpy(count)[0] == programs


@triton.jit
def cas_kernel(lock_ptr, data_ptr, old_ptr):
    pid = tl.program_id(0)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(data_ptr, tl.load(data_ptr, volatile=True) * 2 + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)
    tl.store(old_ptr + pid, tl.atomic_cas(old_ptr + pid, 7, pid))


def test_cas_lock(device):
    lock, data = device.zeros(1, np.int32), device.zeros(1, np.int64)
    old = device.array(np.full(16, 7, np.int32))
    cas_kernel[(16,)](lock, data, old)
    assert device.numpy(data)[0] == 2**16 - 1
    np.testing.assert_array_equal(device.numpy(old), 7)


@triton.jit
def unused_kernel(x_ptr, VOLATILE: tl.constexpr):
    tl.load(x_ptr + tl.arange(0, 128), volatile=VOLATILE)


def test_a_volatile_load_happens_though_nobody_uses_its_value():
    ptx = [
        unused_kernel.warmup(np.zeros(128, np.int32), volatile, grid=(1,), target="cuda:90").asm["ptx"]
        for volatile in (False, True)
    ]
    assert [text.count("ld.volatile.global") for text in ptx] == [0, 1] and "ld.global" not in ptx[0]


@triton.jit
def random_kernel(out_ptr, int_ptr, normal_ptr, seed, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + i, tl.rand(seed, i))
    tl.store(int_ptr + i, tl.randint(seed, i))
    tl.store(normal_ptr + i, tl.randn(seed, i))


@pytest.mark.parametrize("seed", [0, 42, 2**33 + 17])
def test_random(device, seed):
    n = 4 * 384
    uniform, ints, normal = (device.empty(n, d) for d in (np.float32, np.int32, np.float32))
    random_kernel[(4,)](uniform, ints, normal, seed, N=384)
    offsets = np.arange(n)
    np.testing.assert_array_equal(device.numpy(ints).view(np.uint32), dropout.philox_uint32(seed, offsets))
    np.testing.assert_allclose(device.numpy(uniform), dropout.uniform(seed, offsets), rtol=1e-6)
    z = device.numpy(normal)
    assert abs(z.mean()) < 0.1 and abs(z.std() - 1) < 0.1


@triton.jit
def pointers_kernel(table_ptr, out_ptr, row0, row1, row2, N: tl.constexpr):
    row = tl.load(table_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, N)
    tl.store(out_ptr + tl.program_id(0) * N + i, tl.load(row + i))


def test_pointer_table(device):
    rng = np.random.default_rng(4)
    rows = [device.array(rng.standard_normal(24, dtype=np.float32)) for _ in range(3)]
    address = [r.ctypes.data if isinstance(r, np.ndarray) else r.data_ptr() for r in rows]
    out = device.empty((3, 24), np.float32)
    # The rows are arguments too: on the CPU an address from memory must lie in an allocation that the launch knows.
    pointers_kernel[(3,)](device.array(np.array(address, np.int64)), out, *rows, N=24)
    np.testing.assert_array_equal(device.numpy(out), np.stack([device.numpy(r) for r in rows]))


@triton.jit
def count_kernel(x_ptr, n, last):
    while tl.load(x_ptr) < n:
        tl.store(x_ptr, tl.load(x_ptr) + 1)
        tl.debug_barrier()
    tl.store(x_ptr, last)


def test_a_store_waits_for_the_condition_of_a_loop(device):
    # All threads load the number, one stores it: the last store comes when all have left the loop.
    x = device.array(np.array([2], np.int32))
    count_kernel[(1,)](x, 5, 7)
    np.testing.assert_array_equal(device.numpy(x), [7])


@triton.jit
def far_kernel(x_ptr, out_ptr, n, FAR: tl.constexpr):
    at = tl.arange(0, 64)
    wide = at.to(tl.int64)
    x = tl.load(x_ptr + (wide + FAR), mask=at >= n, other=3)
    for shift in tl.static_range(28, 63, 7):
        x += tl.load(x_ptr + ((wide ^ (1 << shift)) * 3 - FAR), mask=at >= n, other=1)
    tl.store(out_ptr + at, x)


@pytest.mark.parametrize("far", [1 << 40, (1 << 63) - 1, -(1 << 62)])
def test_offsets_that_only_masked_elements_have(device, far):
    out = device.empty(64, np.float32)
    far_kernel[(1,)](device.array(np.zeros(64, np.float32)), out, 64, far)
    np.testing.assert_array_equal(device.numpy(out), np.full(64, 8, np.float32))


@triton.jit
def through_one_pointer(x_ptr, at_ptr, n, WHAT: tl.constexpr, N: tl.constexpr):
    """What a block becomes in place, by threads that store what others load."""
    i = tl.arange(0, N)
    if WHAT == "turned":
        tl.store(x_ptr + (N - 1 - i), tl.load(x_ptr + i))
    elif WHAT == "shifted":
        for _ in range(n):
            tl.store(x_ptr + i, tl.load(x_ptr + (i + 1) % N))
    elif WHAT == "scattered":
        tl.store(x_ptr + tl.load(at_ptr + i), tl.load(x_ptr + i))
    elif WHAT == "counted":
        tl.store(x_ptr + i, tl.zeros([N], tl.int32))
        tl.atomic_add(x_ptr + i // 8, tl.full([N], 1, tl.int32), sem="relaxed")
    elif WHAT == "added to":
        tl.atomic_add(x_ptr + i, 5)
        tl.store(x_ptr + (N - 1 - i), i)
    else:
        tl.store(x_ptr + N // 2, n)
        tl.store(x_ptr + i, tl.load(x_ptr + i) + tl.load(x_ptr + N // 2))


@pytest.mark.parametrize("what", ["turned", "shifted", "scattered", "counted", "added to", "one for all"])
@pytest.mark.parametrize("size", [96, 256, 1024])
def test_order_through_one_pointer(device, what, size):
    x = np.random.default_rng(0).integers(0, 100, size).astype(np.int32)
    at = np.random.default_rng(1).permutation(size).astype(np.int32)
    y = device.array(x.copy())
    through_one_pointer[(1,)](y, device.array(at), 3, what, size)
    want = x.copy()
    if what == "turned":
        want = x[::-1]
    elif what == "shifted":
        want = np.roll(x, -3)
    elif what == "scattered":
        want[at] = x
    elif what == "counted":
        want = np.where(np.arange(size) < size // 8, 8, 0)
    elif what == "added to":
        want = np.arange(size)[::-1]
    else:
        want[size // 2] = 3
        want = want + 3
    np.testing.assert_array_equal(device.numpy(y), want)


@triton.jit
def through_computed_pointers(x_ptr, n, stride, WHAT: tl.constexpr, N: tl.constexpr):
    """A block moved and added to in place, by pointers of which some meet each other, or those of another iteration."""
    i = tl.arange(0, N)
    if WHAT == "overlapping":
        for k in range(n):
            p = x_ptr + k * 33 + i
            tl.store(p, tl.load(p) * 2 + 1)
    elif WHAT == "carried":
        p = x_ptr + i
        for _ in range(n):
            tl.store(p, tl.load(p) * 2 + 1)
            p += 33
    elif WHAT == "equal":
        p = x_ptr + i // 8
        tl.store(p, tl.load(p) * 2 + 1)
    elif WHAT == "chosen":
        for k in range(n):
            p = x_ptr + tl.where(k % 2 == 0, i, N - 1 - i)
            tl.store(p, tl.load(p) * 2 + i)
    elif WHAT == "digits":
        for k in range(n):
            o = k * N + i
            p = x_ptr + (o // 24) * 24 + o % 24
            tl.store(p, tl.load(p) * 2 + 1)
            q = x_ptr + (o // stride) * stride + (o % stride)
            tl.store(q, tl.load(q) * 2 + 1)
    elif WHAT == "rows":
        for k in range(n):
            p = x_ptr + k * 33 + i
            tl.store(p, tl.load(p, mask=i < 33) * 2 + 1, mask=i < 33)
            q = x_ptr + k * 32 + i
            tl.store(q, tl.load(q, mask=i < 33) * 2 + 1, mask=i < 33)
    elif WHAT == "beside":
        for k in range(n):
            p = x_ptr + k * (N + N // 2) + i
            tl.store(p + N, tl.load(p) * 2 + 1)
    else:
        for k in range(n):
            p = x_ptr + k * N + i
            tl.store(p, tl.load(p) * 2 + 1)
            q = x_ptr + k * stride + i
            tl.store(q, tl.load(q) * 2 + 1)


@pytest.mark.parametrize(
    "what",
    ["overlapping", "carried", "equal", "chosen", "apart", "digits", "rows", "beside"],
)
@pytest.mark.parametrize("size", [96, 256])
def test_order_through_computed_pointers(device, what, size):
    x = np.random.default_rng(0).integers(0, 100, 6 * size).astype(np.int32)
    y = device.array(x.copy())
    through_computed_pointers[(1,)](y, 3, size, what, size)
    i = np.arange(size)
    for k in range(1 if what == "equal" else 3):
        at = {"overlapping": k * 33 + i, "carried": k * 33 + i, "equal": i // 8, "rows": k * 33 + i[:33]}
        at |= {"apart": k * size + i, "digits": k * size + i, "beside": k * (size + size // 2) + i}
        at = at.get(what, i if k % 2 == 0 else size - 1 - i)
        x[at + size if what == "beside" else at] = x[at] * 2 + (i if what == "chosen" else 1)
        if what in ("apart", "digits", "rows"):
            at = k * 32 + i[:33] if what == "rows" else at
            x[at] = x[at] * 2 + 1
    np.testing.assert_array_equal(device.numpy(y), x)


@triton.jit
def in_while(x_ptr, out_ptr, n, DECIDES: tl.constexpr, N: tl.constexpr):
    """Scalars that a loop loads and stores itself, and a block with them."""
    i = tl.arange(0, N)
    if DECIDES:
        while tl.load(x_ptr) < n:
            tl.store(out_ptr + i, tl.load(out_ptr + (N - 1 - i)) + 1)
            tl.store(x_ptr, tl.load(x_ptr) + 1)
    else:
        k = 1
        total = 0
        while k < n:
            x = tl.load(x_ptr + k - 1)
            tl.store(x_ptr + k, x + k)
            total += x
            k += 1
        tl.store(out_ptr + i, tl.zeros([N], tl.int32) + total)


@pytest.mark.parametrize("decides", [True, False])
def test_scalars_that_a_while_loop_stores(device, decides):
    x, out = device.array(np.zeros(16, np.int32)), device.array(np.arange(256, dtype=np.int32))
    in_while[(1,)](x, out, 9, decides, 256)
    sums = np.cumsum(np.arange(9))
    if decides:
        assert device.numpy(x)[0] == 9
        np.testing.assert_array_equal(device.numpy(out), np.arange(256)[::-1] + 9)
    else:
        np.testing.assert_array_equal(device.numpy(x)[:9], sums)
        np.testing.assert_array_equal(device.numpy(out), np.full(256, sums[:8].sum()))


@triton.jit
def stored_twice(x_ptr, STEP: tl.constexpr, N: tl.constexpr):
    """Both stores stand behind the load; the barrier that the first one wants settles the load for the second one, too."""
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(x_ptr + (N - 1 - i), x)
    tl.store(x_ptr + i * STEP % N, x * 2)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("size", [96, 256])
def test_two_stores_to_what_was_loaded_are_in_order(device, size, num_warps):
    x = device.array(np.arange(size, dtype=np.int32))
    stored_twice[(1,)](x, 7, size, num_warps=num_warps)
    i = np.arange(size)
    want = np.arange(size)[::-1].copy()
    want[i * 7 % size] = i * 2
    np.testing.assert_array_equal(device.numpy(x), want)


@triton.jit
def across_zero(x_ptr, out_ptr, back, WHAT: tl.constexpr, D, N: tl.constexpr):
    """Quotients of numbers below 0 are rounded to zero: the runs of -64 .. -33 and of its remainders are not those of 32 .. 63."""
    i = tl.arange(0, N)
    at = i - back
    if WHAT == "quotient":
        at = at // 32
    elif WHAT == "remainder":
        at = at % 32
    elif WHAT == "both":
        at = (at // 32) * 64 + at % 32
    elif WHAT == "cut off":
        at = (i.to(tl.int64) + (4294967296 - 64)).to(tl.int32) % 32
    elif WHAT == "narrow":
        at = ((i % 64).to(tl.int8) + 100).to(tl.int8).to(tl.int32) % 32
    else:
        at = at % D
    tl.store(out_ptr + i, tl.load(x_ptr + 400 + at))


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("what", ["quotient", "remainder", "both", "divisor", "cut off", "narrow"])
def test_runs_across_zero(device, what, num_warps):
    x, out = np.arange(1000, dtype=np.float32), device.zeros(128, np.float32)
    across_zero[(1,)](device.array(x), out, 64, what, 32, 128, num_warps=num_warps)
    at = np.arange(128) - 64
    quotient = np.trunc(at / 32).astype(int)
    remainder = at - 32 * quotient
    narrow = np.fmod((np.arange(128) % 64 + 100).astype(np.int8).astype(int), 32)
    at = {"quotient": quotient, "both": quotient * 64 + remainder, "narrow": narrow}.get(what, remainder)
    np.testing.assert_array_equal(device.numpy(out), x[400 + at])


@triton.jit
def backwards_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    back = i.to(tl.uint32)
    tl.store(out_ptr + i, tl.load(x_ptr + (N - 1) - back))
    tl.store(out_ptr + N + i, tl.load(x_ptr + (N - 1) - i.to(tl.uint8)))
    tl.store(out_ptr + 2 * N + i, tl.load(x_ptr + (N - 1) - i.to(tl.uint64)))


def test_unsigned_offsets_are_subtracted(device):
    x = np.arange(8, dtype=np.float32)
    out = device.empty((3, 8), np.float32)
    backwards_kernel[(1,)](device.array(x), out, N=8)
    np.testing.assert_array_equal(device.numpy(out), [x[::-1]] * 3)


@triton.jit
def atomics_of_two_kinds(x_ptr, old_ptr, WHAT: tl.constexpr, N: tl.constexpr):
    """Each element is touched by two threads, of which one comes first."""
    i = tl.arange(0, N)
    back = N - 1 - i
    if WHAT == "old values":
        old = tl.atomic_add(x_ptr + i, i)
        tl.atomic_add(x_ptr + back, i)
    elif WHAT == "new values":
        tl.atomic_add(x_ptr + i, i)
        old = tl.atomic_add(x_ptr + back, i)
    elif WHAT == "largest of sums":
        tl.atomic_add(x_ptr + i, i)
        tl.atomic_max(x_ptr + back, back * 2, sem="relaxed")
        old = i
    else:
        tl.atomic_add(x_ptr + i, i)
        old = tl.atomic_xchg(x_ptr + back, back)
    tl.store(old_ptr + i, old)


@pytest.mark.parametrize("what", ["old values", "new values", "largest of sums", "exchange"])
@pytest.mark.parametrize(("size", "num_warps"), [(64, 1), (512, 4)])
def test_atomics_that_do_not_commute_are_in_order(device, what, size, num_warps):
    i = np.arange(size, dtype=np.int32)
    x, old = device.array(100 - i), device.empty(size, np.int32)
    atomics_of_two_kinds[(1,)](x, old, what, size, num_warps=num_warps)
    first = 100 - i + i
    wanted = {
        "old values": (first + i[::-1], 100 - i),
        "new values": (first + i[::-1], first[::-1]),
        "largest of sums": (np.maximum(first, i * 2), i),
        "exchange": (i, first[::-1]),
    }
    for got, want in zip((x, old), wanted[what], strict=True):
        np.testing.assert_array_equal(device.numpy(got), want)


@triton.jit(noinline=True)
def put_turned(x_ptr, value, N: tl.constexpr):
    tl.store(x_ptr + N - 1 - tl.arange(0, N), value)


@triton.jit
def stored_by_a_call_again(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    first = tl.load(x_ptr)
    tl.store(x_ptr + i, i)
    put_turned(x_ptr, i + first, N)


@pytest.mark.parametrize(("size", "num_warps"), [(64, 1), (512, 4)])
def test_what_a_call_stores_again_is_in_order(device, size, num_warps):
    x = device.array(np.full(size, 7, np.int32))
    stored_by_a_call_again[(1,)](x, size, num_warps=num_warps)
    np.testing.assert_array_equal(device.numpy(x), np.arange(size)[::-1] + 7)


@triton.jit
def quotients_kernel(x_ptr, out_ptr, D: tl.constexpr, N: tl.constexpr):
    begin = (tl.program_id(0) + 8) // D
    at = begin * 16 + tl.arange(0, N)
    tl.store(out_ptr + tl.arange(0, N), tl.load(x_ptr + at % 16 + 32))


def test_quotients_by_negative_numbers(device):
    x = np.arange(64, dtype=np.float32)
    out = device.empty(256, np.float32)
    quotients_kernel[(1,)](device.array(x), out, -8, N=256)
    np.testing.assert_array_equal(device.numpy(out), x[np.fmod(np.arange(256) - 16, 16) + 32])


@triton.jit
def hints_kernel(
    x_ptr, out_ptr, N: tl.constexpr, LOAD: tl.constexpr, STORE: tl.constexpr, POLICY: tl.constexpr
):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i, cache_modifier=LOAD, eviction_policy=POLICY)
    tl.store(out_ptr + i, x, cache_modifier=STORE, eviction_policy=POLICY)


@pytest.mark.parametrize("policy", ["", "evict_first", "evict_last"])
@pytest.mark.parametrize(
    "load, store", [("", ""), (".ca", ".wb"), (".cg", ".cg"), (".cv", ".cs"), (".ca", ".wt")]
)
def test_hints_to_caches_are_assembled(load, store, policy):
    # PTX has one of them in an access, and priorities from 7.4 on; beside a cache that is named it has one of L2. (The assembler runs where it is installed.)
    x = np.zeros(64, np.float32)
    for target in "cuda:80", "cuda:90":
        args = (x, x.copy(), 64, load, store, policy)
        ptx = hints_kernel.warmup(*args, grid=(1,), num_warps=1, target=target).asm["ptx"]
        for name, cache, usual in ("ld", load, ".ca"), ("st", store, ".wb"):
            priority = f".L1::{policy}" if policy and cache in ("", usual) else cache
            if policy and cache not in ("", usual):
                priority += ".L2::cache_hint"
                assert f"createpolicy.fractional.L2::{policy}.b64" in ptx
            assert f"{name}.global{priority}.v2" in ptx or f"{name}.global{priority}.b64" in ptx
        assert float(ptx.split(".version ")[1].split()[0]) >= (7.4 if policy else 7.0)


@triton.jit
def hints_of_copies_kernel(
    a_ptr, b_ptr, out_ptr, K, N: tl.constexpr, CACHE: tl.constexpr, POLICY: tl.constexpr, VOLATILE: tl.constexpr
):  # fmt: skip
    i = tl.arange(0, N)
    sums = tl.zeros((N, N), tl.float32)
    for k in range(0, K, N):
        mask = k + i[None, :] < K
        at = i[:, None] * K + k + i[None, :]
        a = tl.load(a_ptr + at, mask, 0.0, cache_modifier=CACHE, eviction_policy=POLICY, volatile=VOLATILE)
        sums = tl.dot(a, tl.load(b_ptr + at, mask, 0.0).T, sums)
    tl.store(out_ptr + i[:, None] * N + i[None, :], sums)


@pytest.mark.parametrize(
    "cache, policy, volatile",
    [
        ("", "evict_first", False),
        (".ca", "evict_last", False),
        (".ca", "", False),
        (".cg", "evict_last", False),
        (".cv", "", False),
        ("", "", True),
    ],
)
def test_hints_to_caches_hold_for_copies_of_loops(device, monkeypatch, cache, policy, volatile):
    monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:80")
    n, k = 32, 96
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (n, k)).astype(np.float16) for _ in range(2))
    out = device.array(np.zeros((n, n), np.float32))
    args = (device.array(a), device.array(b), out, k, n, cache, policy, volatile)
    hints_of_copies_kernel[(1,)](*args)
    np.testing.assert_array_equal(device.numpy(out), a.astype(np.float32) @ b.T.astype(np.float32))
    ptx = hints_of_copies_kernel.warmup(*args, target="cuda:80").asm["ptx"]
    if volatile or cache == ".cv":
        # Such a load is made where it stands, and does not run iterations ahead.
        assert "ld.volatile.global" in ptx if volatile else "ld.global.cv" in ptx
        return
    past = ".ca" if cache == ".ca" else ".cg"
    assert f"cp.async{past}.shared.global{'.L2::cache_hint' if policy else ''} [" in ptx
    assert (f"createpolicy.fractional.L2::{policy}.b64" in ptx) if policy else "createpolicy" not in ptx


@triton.jit
def masked_load_kernel(x_ptr, seen_ptr, unseen_ptr, n, m, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    tl.store(seen_ptr + i, x * 2, mask=i < m)
    y = tl.load(x_ptr + BLOCK + i, mask=mask, other=7.0)
    tl.store(unseen_ptr + i, y * y + y, mask=mask)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
@pytest.mark.parametrize("block, warps", [(1000, 4), (1024, 8), (96, 1), (2048, 4)])
def test_what_a_mask_leaves_out(device, block, warps, dtype):
    """It is zero where another mask stores it. What is stored under the load's mask needs no value elsewhere."""
    x = np.random.default_rng(0).integers(-20, 20, 2 * block).astype(dtype)
    n, m = block - 48, block - 16
    seen, unseen = device.array(np.full(block, 3, dtype)), device.array(np.full(block, 3, dtype))
    kernel = masked_load_kernel[(1,)](device.array(x), seen, unseen, n, m, BLOCK=block, num_warps=warps)
    at = np.arange(block)
    first, second = x[:block], x[block:]
    np.testing.assert_array_equal(device.numpy(seen), np.where(at < n, 2 * first, np.where(at < m, 0, 3)))
    np.testing.assert_array_equal(device.numpy(unseen), np.where(at < n, second * second + second, 3))
    if device.backend != "interp" and block == 1024:
        loads = [line for line in kernel.asm["ptx"].splitlines() if "ld.global" in line]
        written = [line.count("mov.b") for line in loads]
        assert written.count(0) == len(loads) // 2 and len(loads) > 1
