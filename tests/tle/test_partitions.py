"""`tle.gpu.warp_specialize`: what partitions get and give, at every number of warps, with atomics, scratch and calls in each."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def total_and_twice(x_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    return tl.sum(x), x * 2


@triton.jit
def count_up(buffer, N: tl.constexpr):
    # Atomics, which return nothing here, and one whose old values are used.
    at = tl.arange(0, N)
    tl.atomic_add(tle.gpu.local_ptr(buffer, (at,)), 1)
    return tl.atomic_add(tle.gpu.local_ptr(buffer, (at,)), 2)


@triton.jit
def busy(x_ptr, out_ptr, n, buffer, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    buffer.store(x)
    sums = tl.cumsum(buffer.load())
    old = count_up(buffer, N)
    turned = tl.load(tle.gpu.local_ptr(buffer, (N - 1 - at,)))
    tl.store(out_ptr + at, sums + n * tl.max(turned) + old)


@triton.jit
def several(x_ptr, out_ptr, twice_ptr, n, N: tl.constexpr, WARPS: tl.constexpr, REGISTERS: tl.constexpr):
    buffers = tle.gpu.alloc([3, N], dtype=tl.int32)
    alone = tle.gpu.alloc([N], dtype=tl.int32)
    if len(WARPS) == 1:
        total, twice = tle.gpu.warp_specialize(
            [(total_and_twice, (x_ptr, N)), (busy, (x_ptr, out_ptr, n, alone, N))], WARPS, REGISTERS
        )
    elif len(WARPS) == 2:
        total, twice = tle.gpu.warp_specialize(
            [
                (total_and_twice, (x_ptr, N)),
                (busy, (x_ptr, out_ptr, n, alone, N)),
                (busy, (x_ptr, out_ptr + N, n + 1, buffers.slot(n - 3), N)),
            ],
            WARPS,
            REGISTERS,
        )
    else:
        total, twice = tle.gpu.warp_specialize(
            [
                (total_and_twice, (x_ptr, N)),
                (busy, (x_ptr, out_ptr, n, alone, N)),
                (busy, (x_ptr, out_ptr + N, n + 1, buffers.slot(n - 3), N)),
                (busy, (x_ptr, out_ptr + 2 * N, 9, buffers.slot(0), N)),
            ],
            WARPS,
            REGISTERS,
        )
    tl.store(twice_ptr + tl.arange(0, N), twice + total)


def expected(x, n):
    return np.cumsum(x) + n * (x.max() + 3) + x + 1


ROLES = [
    ((1,), (24,), 4),
    ((2,), (40,), 4),
    ((4,), (168,), 4),
    ((8,), (128,), 4),
    ((16,), (64,), 4),
    ((4,), (96,), 1),
    ((2,), (96,), 2),
    ((1,), (96,), 8),
    ((4,), (32,), 16),
    ((1, 2), (40, 40), 4),
    ((4, 4), (240, 168), 4),
    ((2, 8), (32, 40), 8),
    ((4, 1), (256, 24), 4),
    ((1, 1, 1), (24, 24, 40), 4),
    ((4, 4, 4), (152, 120, 96), 4),
    ((1, 4, 2), (40, 64, 40), 8),
    ((2, 1, 16), (40, 40, 40), 2),
]


@pytest.mark.parametrize(("warps", "registers", "num_warps"), ROLES)
def test_roles(device, warps, registers, num_warps):
    n = 5
    x = np.random.default_rng(0).integers(0, 50, 256, dtype=np.int32)
    out, twice = device.array(np.zeros(3 * 256, np.int32)), device.array(np.zeros(256, np.int32))
    several[(1,)](device.array(x), out, twice, n, 256, warps, registers, num_warps=num_warps)
    np.testing.assert_array_equal(device.numpy(twice), x * 2 + x.sum())
    for i, factor in enumerate([n, n + 1, 9][: len(warps)]):
        np.testing.assert_array_equal(device.numpy(out)[256 * i :][:256], expected(x, factor))


@pytest.mark.parametrize("arch", ["cuda:80", "cuda:89", "cuda:90"])
@pytest.mark.parametrize(("warps", "registers", "num_warps"), ROLES)
def test_threads_and_registers(arch, warps, registers, num_warps):
    # A block has all warps, and is bound to what the file holds: the launch can't fail.
    import re

    a = [np.zeros(768, np.int32)] * 3
    kernel = several.warmup(*a, 5, 256, warps, registers, num_warps=num_warps, grid=(1,), target=arch)
    threads = int(re.search(r"\.(?:req|max)ntid (\d+)", kernel.asm["ptx"]).group(1))
    assert threads >= 32 * (num_warps + sum(warps))
    assert threads <= 1024
    moved = [int(n) for n in re.findall(r"setmaxnreg\.\w+\.sync\.aligned\.u32 (\d+)", kernel.asm["ptx"])]
    if arch != "cuda:90":
        assert not moved
    for n in moved:
        assert n % 8 == 0 and 24 <= n <= 256


@triton.jit
def default_of_tiles(x, out_ptr, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), x)


@triton.jit
def with_tensors(x, mask, pointers, half, scale: tl.constexpr, dtype: tl.constexpr):
    tl.static_assert(dtype == tl.float16)
    tl.store(pointers, tl.where(mask, x * scale + half.to(tl.float32), -1.0))


@triton.jit
def tensors_cross(x_ptr, a_ptr, b_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    mask = x > 0
    tle.gpu.warp_specialize(
        [
            (default_of_tiles, (x, a_ptr, N)),
            (with_tensors, (x, mask, b_ptr + tl.arange(0, N), x.to(tl.float16), 2.5, tl.float16)),
        ],
        [2],
        [64],
    )


def test_tensors_cross(device):
    x = np.random.default_rng(1).integers(-40, 40, 100).astype(np.float32)
    a, b = device.array(np.zeros_like(x)), device.array(np.zeros_like(x))
    tensors_cross[(1,)](device.array(x), a, b, 100)
    np.testing.assert_array_equal(device.numpy(a), x)
    np.testing.assert_array_equal(device.numpy(b), np.where(x > 0, x * 3.5, -1))


@triton.jit
def nothing():
    pass


@triton.jit
def read_before(buffer, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(tle.gpu.local_ptr(buffer, (N - 1 - at,))))
    tl.store(tle.gpu.local_ptr(buffer, (at,)), at)


@triton.jit
def in_order_around(x_ptr, out_ptr, after_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    buffer = tle.gpu.alloc([N], dtype=tl.int32)
    buffer.store(tl.load(x_ptr + at))
    tle.gpu.warp_specialize([(nothing, ()), (read_before, (buffer, out_ptr, N))], [4], [64])
    tl.store(after_ptr + at, tl.load(tle.gpu.local_ptr(buffer, (N - 1 - at,))))


def test_what_comes_before_and_behind(device):
    x = np.arange(512, dtype=np.int32) * 3
    out, after = device.array(np.zeros_like(x)), device.array(np.zeros_like(x))
    in_order_around[(1,)](device.array(x), out, after, 512)
    np.testing.assert_array_equal(device.numpy(out), x[::-1])
    np.testing.assert_array_equal(device.numpy(after), np.arange(512)[::-1])


@triton.jit
def product(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, 16)
    sum = tl.zeros((M, N), tl.float32)
    for at in range(0, K, 16):
        a = tl.load(a_ptr + m[:, None] * K + (at + k)[None, :])
        b = tl.load(b_ptr + (at + k)[:, None] * N + n[None, :])
        sum = tl.dot(a, b, sum)
    tl.store(out_ptr + m[:, None] * N + n[None, :], sum)


@triton.jit
def two_products(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, W: tl.constexpr):
    tle.gpu.warp_specialize(
        [(product, (a_ptr, b_ptr, out_ptr, M, N, K)), (product, (a_ptr, b_ptr, out_ptr + M * N, M, N, K))],
        [W],
        [128],
    )


@pytest.mark.parametrize(("num_warps", "workers"), [(4, 4), (4, 1), (8, 4), (2, 8)])
def test_products_in_both(device, num_warps, workers):
    random = np.random.default_rng(2)
    a = random.integers(-3, 4, (64, 64)).astype(np.float16)
    b = random.integers(-3, 4, (64, 32)).astype(np.float16)
    out = device.array(np.zeros((2, 64, 32), np.float32))
    two_products[(1,)](device.array(a), device.array(b), out, 64, 32, 64, workers, num_warps=num_warps)
    want = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(device.numpy(out), np.stack([want, want]))


@triton.jit
def hand_over(flag, value, n, N: tl.constexpr):
    for i in range(n):
        while tl.atomic_add(tle.gpu.local_ptr(flag, (0,)), 0) != 2 * i:
            pass
        value.store(tl.full([N], 0, tl.int32) + i * i)
        tl.debug_barrier()
        tl.atomic_add(tle.gpu.local_ptr(flag, (0,)), 1)


@triton.jit
def take_over(flag, value, out_ptr, n, N: tl.constexpr):
    for i in range(n):
        while tl.atomic_add(tle.gpu.local_ptr(flag, (0,)), 0) != 2 * i + 1:
            pass
        tl.store(out_ptr + i * N + tl.arange(0, N), value.load())
        tl.debug_barrier()
        tl.atomic_add(tle.gpu.local_ptr(flag, (0,)), 1)


@triton.jit
def by_hand(out_ptr, n, N: tl.constexpr):
    flag = tle.gpu.alloc([1], dtype=tl.int32, init_value=tl.zeros([1], tl.int32))
    value = tle.gpu.alloc([N], dtype=tl.int32)
    tle.gpu.warp_specialize(
        [(take_over, (flag, value, out_ptr, n, N)), (hand_over, (flag, value, n, N))], [4], [40]
    )


def test_spinning_on_shared_atomics(device):
    out = device.array(np.zeros((6, 128), np.int32))
    by_hand[(1,)](out, 6, 128)
    np.testing.assert_array_equal(device.numpy(out), np.repeat(np.arange(6) ** 2, 128).reshape(6, 128))


@triton.jit
def double_blocks(desc, out, row, n, M: tl.constexpr):
    for i in range(n):
        x = desc.load([row + i * M, 0])
        out.store([row + i * M, 0], x * 2)


@triton.jit
def made_inside(x_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, [m, n], [n, 1], [M, N])
    out = tl.make_tensor_descriptor(out_ptr, [m, n], [n, 1], [M, N])
    tle.gpu.warp_specialize(
        [(double_blocks, (desc, out, 0, 3, M)), (double_blocks, (desc, out, 3 * M, 3, M))], [4], [64]
    )


@triton.jit
def given(desc, out, M: tl.constexpr):
    tle.gpu.warp_specialize(
        [
            (double_blocks, (desc, out, 0, 3, M)),
            (double_blocks, (desc, out, 3 * M, 2, M)),
            (double_blocks, (desc, out, 5 * M, 1, M)),
        ],
        [4, 2],
        [64, 64],
    )


@pytest.mark.parametrize("made", [False, True])
def test_descriptors_cross(device, made):
    x = np.arange(96 * 32, dtype=np.float32).reshape(96, 32)
    source, out = device.array(x), device.array(np.zeros_like(x))
    if made:
        triton.set_allocator(lambda size, align, stream: device.array(np.zeros(size, np.int8)))
        made_inside[(1,)](source, out, 96, 32, 16, 32)
    else:
        from tilewright.tools.tensor_descriptor import TensorDescriptor

        given[(1,)](*(TensorDescriptor.from_tensor(a, [16, 32]) for a in (source, out)), 16)
    np.testing.assert_array_equal(device.numpy(out), x * 2)


@pytest.mark.parametrize("arch", ["cuda:80", "cuda:90"])
def test_descriptors_copy_by_tma(arch):
    x = np.zeros((96, 32), np.float32)
    ptx = made_inside.warmup(x, x, 96, 32, 16, 32, grid=(1,), target=arch).asm["ptx"]
    assert ptx.count("cp.async.bulk.tensor.2d.shared") >= (2 if arch == "cuda:90" else 0)
    assert ("cp.async.bulk.tensor.2d.global" in ptx) == (arch == "cuda:90")


@triton.jit
def one_after_the_other(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    first = tle.gpu.alloc([N], dtype=tl.int32)
    total, twice = tle.gpu.warp_specialize(
        [(total_and_twice, (x_ptr, N)), (busy, (x_ptr, out_ptr, 1, first, N))], [4], [64]
    )
    first.store(twice + total)
    again, _ = tle.gpu.warp_specialize(
        [(total_and_twice, (x_ptr, N)), (default_of_tiles, (first.load(), out_ptr + N, N))], [2], [64]
    )
    tl.store(out_ptr + 2 * N + at, first.load() + again)


def test_two_of_them(device):
    x = np.random.default_rng(3).integers(0, 50, 128, dtype=np.int32)
    out = device.array(np.zeros(3 * 128, np.int32))
    one_after_the_other[(1,)](device.array(x), out, 128)
    first, second, third = device.numpy(out).reshape(3, 128)
    np.testing.assert_array_equal(first, expected(x, 1))
    np.testing.assert_array_equal(second, 2 * x + x.sum())
    np.testing.assert_array_equal(third, 2 * x + 2 * x.sum())


@triton.jit
def short_ones(out_ptr, N: tl.constexpr):
    tle.gpu.warp_specialize([(default_of_tiles, (tl.arange(0, N), out_ptr, N)), (nothing, ())], [4], [24])
    tle.gpu.warp_specialize([(default_of_tiles, (tl.arange(0, N), out_ptr + N, N)), (nothing, ())], [4], [24])


def test_a_short_one_takes_no_registers_back_too_early(device):
    out = device.array(np.zeros(256, np.int32))
    short_ones[(1,)](out, 128, num_warps=8)
    np.testing.assert_array_equal(device.numpy(out), np.tile(np.arange(128), 2))


@triton.jit
def says_its_warps(out_ptr):
    tl.store(out_ptr, tl.extra.cuda.num_warps())


@triton.jit
def asks_for_warps(out_ptr):
    tle.gpu.warp_specialize(
        [(says_its_warps, (out_ptr,)), (says_its_warps, (out_ptr + 1,)), (says_its_warps, (out_ptr + 2,))],
        [2, 8],
        [32, 32],
    )


def test_number_of_warps(device):
    out = device.array(np.zeros(3, np.int32))
    asks_for_warps[(1,)](out, num_warps=4)
    assert list(device.numpy(out)) == [4, 2, 8]


# ---- errors ------------------------------------------------------------------------------------------------------------


@triton.jit
def returns_something(x_ptr):
    return tl.load(x_ptr)


@triton.jit
def nests(x_ptr):
    tle.gpu.warp_specialize([(nothing, ())], [], [])


@triton.jit
def wrong(x_ptr, CASE: tl.constexpr):
    x = tl.load(x_ptr)
    if CASE == 0:
        tle.gpu.warp_specialize([], [], [])
    elif CASE == 1:
        tle.gpu.warp_specialize([(nothing, ()), (nothing, ())], [4, 4], [24])
    elif CASE == 2:
        tle.gpu.warp_specialize([(nothing, ()), (nothing, ())], [4], [])
    elif CASE == 3:
        tle.gpu.warp_specialize([nothing, (nothing, ())], [4], [24])
    elif CASE == 4:
        tle.gpu.warp_specialize([(nothing, ()), (returns_something, x_ptr)], [4], [24])
    elif CASE == 5:
        tle.gpu.warp_specialize([(nothing, ()), (returns_something, (x_ptr,))], [4], [24])
    elif CASE == 6:
        tle.gpu.warp_specialize([(nothing, ()), (nothing, ())], [3], [24])
    elif CASE == 7:
        tle.gpu.warp_specialize([(nothing, ()), (nothing, ())], [4], [100])
    elif CASE == 8:
        tle.gpu.warp_specialize([(nothing, ()), (nothing, ()), (nothing, ())], [16, 16], [24, 24])
    elif CASE == 9:
        tle.gpu.warp_specialize(
            [(nothing, ()), (nothing, ()), (nothing, ()), (nothing, ())], [4, 4, 4], [240, 240, 240]
        )
    elif CASE == 10:
        tle.gpu.warp_specialize([(nothing, ()), (nests, (x_ptr,))], [4], [24])
    elif CASE == 11:
        tle.gpu.warp_specialize([(nothing, ()), (nothing, ())], [x.to(tl.int32)], [24])
    elif CASE == 12:
        tle.gpu.warp_specialize([(x, ())], [], [])


WRONG = [
    "no default partition",
    "has 1 worker but 2 warp counts in `worker_num_warps`",
    "has 1 worker but 0 register counts in `worker_num_regs`",
    r"entry 0 of tle.gpu.warp_specialize must be \(function, arguments\)",
    "the arguments of `returns_something`, entry 1, must be a tuple",
    "`returns_something` returns .*, but a worker returns nothing",
    "a worker of 3 warps",
    "100 registers for each thread of a worker: it must be a multiple of 8 from 24 to 256",
    r"4 \+ 16 \+ 16 = 36 warps: a CTA has at most 32",
    r"128 × 240 \+ 128 × 240 \+ 128 × 240 = 92160 registers, .* 128 × 24 = 3072: a CTA of 16 warps has 65536",
    "inside one of its own functions",
    "must be known at compile time",
    "entry 0 of tle.gpu.warp_specialize must have a function",
]


@pytest.mark.parametrize(("case", "message"), list(enumerate(WRONG)))
def test_errors(device, case, message):
    with pytest.raises(triton.CompilationError, match=message) as error:
        wrong[(1,)](device.array(np.zeros(1, np.float32)), case)
    assert "test_partitions.py" in str(error.value) and "^" in str(error.value)
