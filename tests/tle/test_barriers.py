"""`tle.gpu.alloc_barrier(s)`, `barrier_wait` and `barrier_arrive`: data handed from one group of warps to another."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def produce(x_ptr, slots, full, empty, n, N: tl.constexpr, SLOTS: tl.constexpr):
    for i in range(n):
        tle.gpu.barrier_wait(empty[i % SLOTS], phaseIdx=i // SLOTS)
        x = tl.load(x_ptr + i * N + tl.arange(0, N))
        slots.slot(i % SLOTS).store(x)
        tle.gpu.barrier_arrive(full[i % SLOTS], phaseIdx=i // SLOTS)


@triton.jit
def consume(out_ptr, slots, full, empty, n, factor, N: tl.constexpr, SLOTS: tl.constexpr):
    at = tl.arange(0, N)
    for i in range(n):
        tle.gpu.barrier_wait(full[i % SLOTS], phaseIdx=i // SLOTS)
        # In another order than it was written in, so that other warps' data is read.
        x = tl.load(tle.gpu.local_ptr(slots.slot(i % SLOTS), (N - 1 - at,)))
        tl.store(out_ptr + i * N + at, x * factor + tl.sum(x))
        tle.gpu.barrier_arrive(empty[i % SLOTS], phaseIdx=i // SLOTS)


@triton.jit
def ring(x_ptr, out_ptr, n, N: tl.constexpr, SLOTS: tl.constexpr, WARPS: tl.constexpr):
    slots = tle.gpu.alloc([SLOTS, N], dtype=tl.int32)
    full = tle.gpu.alloc_barriers(SLOTS)
    empty = tle.gpu.alloc_barriers(SLOTS, arrive_count=len(WARPS), init=tle.gpu.READY)
    if len(WARPS) == 1:
        tle.gpu.warp_specialize(
            [
                (produce, (x_ptr, slots, full, empty, n, N, SLOTS)),
                (consume, (out_ptr, slots, full, empty, n, 1, N, SLOTS)),
            ],
            WARPS,
            [64],
        )
    else:
        tle.gpu.warp_specialize(
            [
                (produce, (x_ptr, slots, full, empty, n, N, SLOTS)),
                (consume, (out_ptr, slots, full, empty, n, 1, N, SLOTS)),
                (consume, (out_ptr + n * N, slots, full, empty, n, 3, N, SLOTS)),
            ],
            WARPS,
            [64, 64],
        )


@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize(("num_warps", "warps"), [(4, (4,)), (1, (8,)), (8, (1,)), (4, (2, 4)), (2, (1, 1))])
def test_ring(device, slots, num_warps, warps):
    x = np.random.default_rng(0).integers(0, 100, (7, 256), dtype=np.int32)
    out = device.array(np.zeros((2, 7, 256), np.int32))
    ring[(1,)](device.array(x), out, 7, 256, slots, warps, num_warps=num_warps)
    for i, factor in enumerate([1, 3][: len(warps)]):
        want = x[:, ::-1] * factor + x.sum(1, keepdims=True)
        np.testing.assert_array_equal(device.numpy(out)[i], want)


@pytest.mark.parametrize("arch", ["cuda:80", "cuda:86", "cuda:89", "cuda:90"])
def test_on_each_gpu(arch, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    monkeypatch.setenv("TILEWRIGHT_TARGET", arch)
    x = np.random.default_rng(0).integers(0, 100, (5, 128), dtype=np.int32)
    out = np.zeros((2, 5, 128), np.int32)
    ring[(1,)](x, out, 5, 128, 2, (4, 4))
    want = x[:, ::-1] + x.sum(1, keepdims=True)
    np.testing.assert_array_equal(out[0], want)
    ptx = ring.warmup(x, out, 5, 128, 2, (4, 4), grid=(1,), target=arch).asm["ptx"]
    assert ("mbarrier.test_wait" in ptx) == (arch != "cuda:90")
    assert ("mbarrier.try_wait" in ptx) == (arch == "cuda:90")


@triton.jit
def several_arrivals(barrier, value, N: tl.constexpr):
    value.store(tl.arange(0, N) * 5)
    tle.gpu.barrier_arrive(barrier, arrive_count=2, phaseIdx=0)


@triton.jit
def waits(barrier, value, out_ptr, N: tl.constexpr):
    tle.gpu.barrier_wait(barrier, 0)
    tl.store(out_ptr + tl.arange(0, N), value.load())


@triton.jit
def one_barrier(out_ptr, COUNT: tl.constexpr, N: tl.constexpr):
    value = tle.gpu.alloc([N], dtype=tl.int32)
    barrier = tle.gpu.alloc_barrier(arrive_count=COUNT, init=tle.gpu.PENDING)
    tle.gpu.warp_specialize(
        [(waits, (barrier, value, out_ptr, N)), (several_arrivals, (barrier, value, N))], [4], [40]
    )


def test_several_arrivals(device):
    out = device.array(np.zeros(64, np.int32))
    one_barrier[(1,)](out, 2, 64)
    np.testing.assert_array_equal(device.numpy(out), np.arange(64) * 5)


def test_a_deadlock_says_who_waits(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(
        triton.KernelError, match=r"deadlock: the default partition waits for phase 0 of a barrier"
    ) as error:
        one_barrier[(1,)](np.zeros(64, np.int32), 3, 64)
    assert "whose phase 0 has 2 of 3 arrivals" in str(error.value)
    assert "tle.gpu.barrier_wait(barrier, 0)" in str(error.value)


@triton.jit
def wait_for_each_other(a, b):
    tle.gpu.barrier_wait(a, 0)
    tle.gpu.barrier_arrive(b, phaseIdx=0)


@triton.jit
def crossed():
    bars = tle.gpu.alloc_barriers(2)
    tle.gpu.warp_specialize(
        [(wait_for_each_other, (bars[0], bars[1])), (wait_for_each_other, (bars[1], bars[0]))], [4], [40]
    )


def test_both_wait(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.KernelError, match="deadlock") as error:
        crossed[(1,)]()
    assert (
        "the default partition waits for phase 0 of a barrier, whose phase 0 has 0 of 1 arrivals at"
        in str(error.value)
    )


def test_the_simulator_sees_both_wait(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    with pytest.raises(triton.KernelError, match="deadlock"):
        crossed[(1,)]()


@triton.jit
def in_turns(mine, others, x, n, ADD: tl.constexpr, FIRST: tl.constexpr, N: tl.constexpr):
    """Each waits for its turn, changes what both share, and gives the turn to the other."""
    at = tl.arange(0, N)
    if FIRST:
        tle.gpu.barrier_arrive(others)
    for _ in range(n):
        tle.gpu.barrier_wait(mine)
        # In another order than it was written in, so that other warps' data is read.
        turned = tl.load(tle.gpu.local_ptr(x, (N - 1 - at,)))
        x.store(turned * 2 + ADD)
        tle.gpu.barrier_arrive(others)
    if FIRST:
        return
    tle.gpu.barrier_wait(mine)


@triton.jit
def ping_pong(out_ptr, n, N: tl.constexpr, WARPS: tl.constexpr):
    x = tle.gpu.alloc([N], dtype=tl.int32, init_value=tl.arange(0, N))
    bars = tle.gpu.alloc_barriers(2)
    tle.gpu.warp_specialize(
        [
            (in_turns, (bars[0], bars[1], x, n, 1, False, N)),
            (in_turns, (bars[1], bars[0], x, n, 7, True, N)),
        ],
        [WARPS],
        [40],
    )
    tl.store(out_ptr + tl.arange(0, N), x.load())


@pytest.mark.parametrize(("num_warps", "warps"), [(4, 4), (1, 4), (4, 1), (8, 2)])
def test_named_barriers(device, num_warps, warps):
    """Without `phaseIdx`: barriers of the hardware, which whole partitions come to."""
    out = device.array(np.zeros(128, np.int32))
    ping_pong[(1,)](out, 3, 128, warps, num_warps=num_warps)
    want = np.arange(128)
    for i in range(6):
        want = want[::-1] * 2 + (7 if i % 2 else 1)
    np.testing.assert_array_equal(device.numpy(out), want)


def test_named_barriers_are_of_the_hardware():
    ptx = ping_pong.warmup(np.zeros(128, np.int32), 3, 128, 4, grid=(1,), target="cuda:80").asm["ptx"]
    assert "mbarrier" not in ptx
    assert ptx.count("bar.arrive 15, 256;") + ptx.count("bar.arrive 14, 256;") == 3
    assert ptx.count("bar.sync 15, 256;") + ptx.count("bar.sync 14, 256;") == 3


@triton.jit
def meets(bars, x, out_ptr, mine, theirs, N: tl.constexpr):
    at = tl.arange(0, N)
    x.slot(mine).store(at * (mine + 1))
    tle.gpu.barrier_wait(bars[2])
    tl.store(out_ptr + mine * N + at, tl.load(tle.gpu.local_ptr(x.slot(theirs), (N - 1 - at,))))


@triton.jit
def three_meet(out_ptr, N: tl.constexpr):
    x = tle.gpu.alloc([3, N], dtype=tl.int32)
    bars = tle.gpu.alloc_barriers(3)
    tle.gpu.warp_specialize(
        [
            (meets, (bars, x, out_ptr, 0, 1, N)),
            (meets, (bars, x, out_ptr, 1, 2, N)),
            (meets, (bars, x, out_ptr, 2, 0, N)),
        ],
        [2, 1],
        [40, 40],
    )


def test_several_partitions_meet(device):
    out = device.array(np.zeros((3, 64), np.int32))
    three_meet[(1,)](out, 64)
    np.testing.assert_array_equal(device.numpy(out), np.arange(63, -1, -1) * np.array([[2], [3], [1]]))


@triton.jit
def uneven():
    bars = tle.gpu.alloc_barriers(1)
    tle.gpu.warp_specialize([(twice, (bars,)), (once, (bars,))], [4], [40])


@triton.jit
def once(bars):
    tle.gpu.barrier_wait(bars[0])


@triton.jit
def twice(bars):
    tle.gpu.barrier_wait(bars[0])
    tle.gpu.barrier_wait(bars[0])


def test_named_barriers_that_nobody_comes_to(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.KernelError, match="waits at a barrier to which 1 of 2 partitions have come"):
        uneven[(1,)]()
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    with pytest.raises(triton.KernelError, match=r"deadlock|have arrived"):
        uneven[(1,)]()


@triton.jit
def too_many():
    bar = tle.gpu.alloc_barrier(arrive_count=2)
    tle.gpu.barrier_arrive(bar, phaseIdx=0)
    tle.gpu.barrier_arrive(bar, phaseIdx=0, arrive_count=2)


def test_too_many_arrivals(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.KernelError, match="2 arrivals at a barrier whose phase 0 has 1 of 2 left"):
        too_many[(1,)]()


@triton.jit
def wrong(x_ptr, CASE: tl.constexpr):
    bars = tle.gpu.alloc_barriers(3)
    if CASE == 0:
        tle.gpu.alloc_barriers(0)
    elif CASE == 1:
        tle.gpu.alloc_barrier(arrive_count=-1)
    elif CASE == 2:
        tle.gpu.alloc_barrier(init=7)
    elif CASE == 3:
        tle.gpu.barrier_wait(bars, 0)
    elif CASE == 4:
        tle.gpu.barrier_wait(bars[3], 0)
    elif CASE == 5:
        tle.gpu.barrier_wait(bars[0][0], 0)
    elif CASE == 6:
        tle.gpu.barrier_wait(bars[0], 1.5)
    elif CASE == 7:
        tle.gpu.barrier_wait(x_ptr, 0)
    elif CASE == 8:
        tle.gpu.barrier_arrive(bars[1], 2, phaseIdx=0)
    elif CASE == 9:
        tle.gpu.barrier_arrive(tle.gpu.alloc_barrier(init=tle.gpu.READY))
    elif CASE == 10:
        tle.gpu.alloc_barrier(expect_bytes=0)
    elif CASE == 11:
        tle.gpu.barrier_wait(bars[1.0], 0)
    elif CASE == 12:
        tle.gpu.barrier_wait(bars[0])
        tle.gpu.barrier_arrive(bars[0], phaseIdx=0)
    elif CASE == 13:
        tle.gpu.barrier_wait(bars[tl.load(x_ptr).to(tl.int32)])
    elif CASE == 14:
        for i in tl.static_range(9):
            tle.gpu.barrier_wait(tle.gpu.alloc_barriers(9)[i])
    elif CASE == 15:
        tle.gpu.barrier_arrive(tle.gpu.alloc_barrier(arrive_count=2), 2)


WRONG = [
    "`num_barriers` of .* must be 1 to 4096, not 0",
    "`arrive_count` of .* must be 1 to 1048575, not -1",
    "`init` of .* must be tle.gpu.PENDING or tle.gpu.READY",
    "takes one barrier, not all of an allocation",
    "barrier 3 of 3, numbered from 0",
    "a single barrier cannot be indexed",
    "`phaseIdx` of .* must be a scalar integer",
    "`barrier` of .* must be a barrier",
    "2 arrivals at a barrier whose phases have 1",
    "without `phaseIdx` is for barriers that are PENDING, of one arrival and no `expect_bytes`",
    "`expect_bytes` of .* must be 1 to 1048575, not 0",
    "barriers are numbered by scalar integers",
    "barrier 0 of this allocation is used without `phaseIdx` elsewhere",
    "must be known at compile time",
    "more than 8 barriers without `phaseIdx`",
    "is for barriers that are PENDING, of one arrival",
]


@pytest.mark.parametrize(("case", "message"), list(enumerate(WRONG)))
def test_errors(device, case, message):
    with pytest.raises(triton.CompilationError, match=message) as error:
        wrong[(1,)](device.array(np.zeros(1, np.float32)), case)
    assert "test_barriers.py" in str(error.value) and "^" in str(error.value)
