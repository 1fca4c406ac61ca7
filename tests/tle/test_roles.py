"""Roles at every legal number of warps: each partition has atomics, scratch, calls, buffers, an end of a pipe and barriers."""

import os
import re
from itertools import product

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle

BINS = 128
COUNTS = (1, 2, 4, 8, 16)


@triton.jit(noinline=True)
def scaled_sums(x, factor):
    return tl.cumsum(x) * factor + tl.max(x)


@triton.jit
def turned(x, own):
    N: tl.constexpr = own.shape[0]
    own.store(x)
    return tl.load(tle.gpu.local_ptr(own, (N - 1 - tl.arange(0, N),)))


@triton.jit
def work(x, own, bins, factor):
    """Atomics, a buffer read by others than have written it, a change of layout, scans along both sides of it, and two calls."""
    N: tl.constexpr = own.shape[0]
    tl.atomic_add(tle.gpu.local_ptr(bins, (x % bins.shape[0],)), 1)
    table = tl.trans(tl.reshape(turned(x, own), (N // 8, 8)))
    return scaled_sums(tl.reshape(tl.cumsum(table, 1), (N,)), factor)


@triton.jit
def give(writer, x_ptr, out_ptr, own, bins, shares, done, n):
    """The default partition: fills the pipe, does the same work, and adds up what the workers leave."""
    N: tl.constexpr = own.shape[0]
    at = tl.arange(0, N)
    for k in range(n):
        x = tl.load(x_ptr + k * N + at)
        writer.acquire(k).x.store(x)
        writer.commit(k)
        tl.store(out_ptr + k * N + at, work(x, own, bins, k))
    tle.gpu.barrier_wait(done, phaseIdx=0)
    return tl.sum(shares.load(), 0)


@triton.jit
def take(reader, out_ptr, own, bins, share, done, n, factor):
    N: tl.constexpr = own.shape[0]
    at = tl.arange(0, N)
    for k in range(n):
        x = reader.wait(k).slot.x.load()
        reader.release(k)
        tl.store(out_ptr + k * N + at, work(x, own, bins, k * factor))
    share.store(bins.load() * factor)
    tle.gpu.barrier_arrive(done, phaseIdx=0)


@triton.jit
def roles(
    x_ptr, out_ptr, bins_ptr, shares_ptr, n,
    N: tl.constexpr, BINS: tl.constexpr, WARPS: tl.constexpr, REGISTERS: tl.constexpr,
):  # fmt: skip
    WORKERS: tl.constexpr = len(WARPS)
    readers: tl.constexpr = ("first", "second", "third")[:WORKERS]
    pipe = tle.pipe(capacity=2, readers=readers, x=tle.gpu.alloc([2, N], dtype=tl.int32))
    own = tle.gpu.alloc([4, N], dtype=tl.int32)
    bins = tle.gpu.alloc([4, BINS], dtype=tl.int32, init_value=tl.zeros([4, BINS], tl.int32))
    shares = tle.gpu.alloc([WORKERS, BINS], dtype=tl.int32)
    done = tle.gpu.alloc_barrier(arrive_count=WORKERS)
    writer = pipe.writer()
    give_args = (writer, x_ptr, out_ptr, own.slot(0), bins.slot(0), shares, done, n)
    size = n * N
    first = (pipe.reader("first"), out_ptr + size, own.slot(1), bins.slot(1), shares.slot(0), done, n, 1)
    if WORKERS == 1:
        total = tle.gpu.warp_specialize([(give, give_args), (take, first)], WARPS, REGISTERS)
    else:
        second = (
            pipe.reader("second"), out_ptr + 2 * size, own.slot(2), bins.slot(2), shares.slot(1), done, n, 2,
        )  # fmt: skip
        if WORKERS == 2:
            total = tle.gpu.warp_specialize(
                [(give, give_args), (take, first), (take, second)], WARPS, REGISTERS
            )
        else:
            third = (
                pipe.reader("third"), out_ptr + 3 * size, own.slot(3), bins.slot(3), shares.slot(2), done, n, 3,
            )  # fmt: skip
            total = tle.gpu.warp_specialize(
                [(give, give_args), (take, first), (take, second), (take, third)], WARPS, REGISTERS
            )
    tl.store(bins_ptr + tl.arange(0, 4)[:, None] * BINS + tl.arange(0, BINS)[None, :], bins.load())
    tl.store(shares_ptr + tl.arange(0, BINS), total)


def expected(x, factor):
    """What `work` gives of each row, with the row's number times a factor."""
    n, size = x.shape
    table = np.cumsum(x[:, ::-1].reshape(n, size // 8, 8).transpose(0, 2, 1), 2).reshape(n, size)
    return np.cumsum(table, 1) * (np.arange(n) * factor)[:, None] + table.max(1, keepdims=True)


def registers(num_warps, warps):
    """Registers of each thread when a CTA of so many warps begins, and the most that each thread of all workers can ask for.

    A CTA has whole warp groups, and its threads the same multiple of 8 at first. Only whole warp groups give some up or get more; the
    default partition keeps 24 at least, and a group has as many as the worker in it that wants the most.
    """
    total = -(-(num_warps + sum(warps)) // 4) * 4
    start = 65536 // (32 * total) // 8 * 8
    if num_warps % 4:
        return start, 256
    return start, min(256, (start * total - num_warps * 24) // (total - num_warps) // 8 * 8)


def legal():
    """Every number of warps of one to three workers beside every number of the kernel's own."""
    for workers in (1, 2, 3):
        for warps in product(COUNTS, repeat=workers):
            for num_warps in COUNTS:
                if num_warps + sum(warps) <= 32:
                    yield num_warps, warps


# Each number of warps in each place, once for each number of workers; and CTAs that are full.
SOME = [
    (4, (1,)), (1, (2,)), (2, (4,)), (8, (8,)), (16, (16,)),
    (4, (16, 4)), (8, (4, 8)), (16, (8, 1)), (1, (1, 2)), (2, (2, 16)),
    (4, (4, 4, 4)), (1, (16, 8, 2)), (2, (1, 16, 8)), (8, (2, 1, 16)), (16, (8, 2, 1)), (4, (1, 4, 16)),
]  # fmt: skip
ALL = os.environ.get("TILEWRIGHT_ALL_ROLES") == "1"


@pytest.mark.parametrize(("num_warps", "warps"), list(legal()) if ALL else SOME)
def test_each_partition_works(device, num_warps, warps):
    n, size, parts = 3, 256, 1 + len(warps)
    x = np.random.default_rng(0).integers(0, 200, (n, size), dtype=np.int32)
    out, bins, shares = (device.array(np.zeros(s, np.int32)) for s in ((parts, n, size), (4, BINS), BINS))
    _, most = registers(num_warps, warps)
    roles[(1,)](
        device.array(x),
        out,
        bins,
        shares,
        n,
        size,
        BINS,
        warps,
        (min(128, most),) * len(warps),
        num_warps=num_warps,
    )
    counts = np.bincount(x.ravel() % BINS, minlength=BINS)
    np.testing.assert_array_equal(device.numpy(out), [expected(x, max(i, 1)) for i in range(parts)])
    np.testing.assert_array_equal(device.numpy(bins), [counts] * parts + [0 * counts] * (4 - parts))
    np.testing.assert_array_equal(device.numpy(shares), counts * sum(range(parts)))


@triton.jit
def number(out_ptr, i):
    tl.store(out_ptr + i, i + 1)


@triton.jit
def numbers(out_ptr, WARPS: tl.constexpr, REGISTERS: tl.constexpr):
    if len(WARPS) == 1:
        tle.gpu.warp_specialize([(number, (out_ptr, 0)), (number, (out_ptr, 1))], WARPS, REGISTERS)
    elif len(WARPS) == 2:
        tle.gpu.warp_specialize(
            [(number, (out_ptr, 0)), (number, (out_ptr, 1)), (number, (out_ptr, 2))], WARPS, REGISTERS
        )
    else:
        tle.gpu.warp_specialize(
            [(number, (out_ptr, 0)), (number, (out_ptr, 1)), (number, (out_ptr, 2)), (number, (out_ptr, 3))],
            WARPS,
            REGISTERS,
        )


@pytest.mark.parametrize(("num_warps", "warps"), list(legal()) if ALL else SOME)
def test_the_most_registers_that_fit(device, num_warps, warps):
    """As many as the sum allows are had, without waiting for ever for some that nobody gives back; 8 more are an error that says how many fit."""
    start, most = registers(num_warps, warps)
    out = device.array(np.zeros(4, np.int32))
    kernel = numbers[(1,)](out, warps, (most,) * len(warps), num_warps=num_warps)
    assert list(device.numpy(out)) == [1, 2, 3, 4][: 1 + len(warps)] + [0] * (3 - len(warps))
    if device.backend != "interp":
        had = [int(r) for r in re.findall(r"setmaxnreg\.\w+\.sync\.aligned\.u32 (\d+)", kernel.asm["ptx"])]
        moved = num_warps % 4 == 0 and start < 240
        assert most in (*had, start) if moved else not had
    if most < 256:
        with pytest.raises(
            triton.CompilationError, match=rf"{most} for each thread of all workers would fit"
        ):
            numbers[(1,)](out, warps, (most + 8,) * len(warps), num_warps=num_warps)


@pytest.mark.parametrize(
    ("num_warps", "warps"), [(1, (16, 16)), (2, (16, 8, 8)), (4, (16, 8, 8)), (16, (16, 1)), (16, (8, 8, 1))]
)
def test_too_many_warps(device, num_warps, warps):
    out = device.array(np.zeros(4, np.int32))
    total = num_warps + sum(warps)
    sums = " \\+ ".join(map(str, (num_warps, *warps)))
    with pytest.raises(triton.CompilationError, match=f"{sums} = {total} warps: a CTA has at most 32"):
        numbers[(1,)](out, warps, (24,) * len(warps), num_warps=num_warps)
