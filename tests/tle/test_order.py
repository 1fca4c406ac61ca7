"""No wait that isn't needed: what orders threads and copies in kernels of every kind is counted, and without any one of it the simulator reports a fault.

``TILEWRIGHT_BLESS=1`` writes the counts anew.
"""

import json
import os
from pathlib import Path

import numpy as np
import order
import pytest
import test_barriers
import test_buffers
import test_copy_barriers
import test_pipe_partitions
import test_remote
import test_roles
import test_wgmma

import tilewright as triton
import tilewright.language as tl
from tilewright import tle

COUNTS = Path(__file__).with_name("order_counts.json")


def whole(shape, dtype, seed=0):
    return np.random.default_rng(seed).integers(0, 8, shape).astype(dtype)


def zeros(shape, dtype):
    return np.zeros(shape, dtype)


@triton.jit
def sums_of_rows(x_ptr, out_ptr, n, N: tl.constexpr):
    """Groups of copies, one ahead; each row is read backwards, so what other threads have copied."""
    at = tl.arange(0, N)
    slots = tle.gpu.alloc([2, N], dtype=tl.float32)
    tle.gpu.copy(x_ptr + at, slots.slot(0), [N], is_async=True)
    tle.gpu.async_commit_group()
    total = tl.zeros([N], tl.float32)
    for i in range(n):
        inside = tl.full([N], i + 1 < n, tl.int1)
        tle.gpu.copy(x_ptr + (i + 1) * N + at, slots.slot((i + 1) % 2), [N], mask=inside, is_async=True)
        tle.gpu.async_commit_group()
        tle.gpu.async_wait_group(1)
        total += tl.load(tle.gpu.local_ptr(slots.slot(i % 2), (N - 1 - at,)))
    tl.store(out_ptr + at, total)


@triton.jit
def turned_rows(x_ptr, out_ptr, n, N: tl.constexpr):
    """A pipe of one group of warps, two chunks ahead."""
    at = tl.arange(0, N)
    pipe = tle.pipe(capacity=3, x=tle.gpu.alloc([3, N], dtype=tl.float32))
    writer, reader = pipe.writer(), pipe.reader()
    for k in range(n + 2):
        if k < n:
            slot = writer.acquire(k)
            tle.gpu.copy(x_ptr + k * N + at, slot.x, [N])
            writer.commit(k)
        if k >= 2:
            row = tl.load(tle.gpu.local_ptr(reader.wait(k - 2).slot.x, (N - 1 - at,)))
            reader.release(k - 2)
            tl.store(out_ptr + (k - 2) * N + at, row)


# The kernel; its arguments at run time; its constants, with those before the arguments first; programs.
KERNELS = {
    "copies in groups": (sums_of_rows, (whole((6, 256), "float32"), zeros(256, "float32"), 6), (256,)),
    "atomics": (test_buffers.histogram_kernel, (whole(500, "int32"), zeros(24, "int32"), 500), (24, 256)),
    "barriers, two that read": (
        test_barriers.ring,
        (whole((5, 128), "int32"), zeros((2, 5, 128), "int32"), 5),
        (128, 2, (4, 2)),
    ),
    "blocks by TMA to one group": (
        test_copy_barriers.two_copies,
        (whole((96, 32), "float32"), whole((96, 32), "float16"), zeros((32, 32), "float32"), 3),
        (32,),
    ),
    "blocks by TMA to two warp groups": (
        test_wgmma.specialized,
        (whole((128, 160), "float16"), whole((160, 64), "float16"), zeros((128, 64), "float16"), 160),
        (128, 64, 32, 2),
    ),
    "products of what is stored": (
        test_wgmma.stores_for_another,
        (whole((3, 64, 32), "float16"), zeros((64, 32), "float32"), 3),
        (32, 32),
    ),
    "pipe of one group": (turned_rows, (whole((5, 256), "float32"), zeros((5, 256), "float32"), 5), (256,)),
    "pipe between partitions": (
        test_pipe_partitions.two_roles,
        (whole((5, 128), "int32"), zeros((5, 128), "int32"), 5),
        (128, 2, 4, False),
    ),
    "pipe of fields filled in three ways": (
        test_pipe_partitions.mixed,
        (
            whole((5, 16, 32), "float32"),
            whole((5, 16, 32), "float32", 1),
            whole((5, 16), "float32", 2),
            zeros((5, 16, 32), "float32"),
            5,
        ),
        (16, 32, 2, 4, False),
    ),
    "pipe of products": (
        lambda *args, **options: test_pipe_partitions.product.warmup(
            test_pipe_partitions.dot_slots, *args, **options
        ),
        (whole((64, 320), "float16"), whole((32, 320), "float16", 1), zeros((64, 32), "float32"), 5),
        (64, 32, 64, 2, ("blocks", "blocks"), False),
    ),
    "pipe that is closed": (
        test_pipe_partitions.closing,
        (whole((5, 64), "int32"), zeros((2, 5, 64), "int32"), zeros(2, "int32"), 5),
        (64, 2, (4, 2)),
    ),
    "three partitions at work": (
        test_roles.roles,
        (
            whole((3, 256), "int32"),
            zeros((3, 3, 256), "int32"),
            zeros((4, 128), "int32"),
            zeros(128, "int32"),
            3,
        ),
        (256, 128, (4, 2), (40, 40)),
    ),
    "remote buffers": (
        test_remote.shift_kernel,
        (whole(8 * 96, "int32"), zeros(8 * 96, "int32")),
        (test_remote.FOUR, 96, 1),
        8,
    ),
}

# Lines without which nothing is reported, and why they stand there.
SILENT = {
    # Each lane arrives when its copies are done, so behind its stores.
    "pipe of fields filled in three ways": ["bar.warp.sync"],
    # What readers release last nobody waits for. Products each lane waits for, and the elected one arrives.
    "pipe of products": ["bar.warp.sync", "bar.warp.sync", "mbarrier.arrive"],
    # And the flag of a closed slot is stored by the lane that arrives.
    "pipe that is closed": ["bar.warp.sync"] * 3 + ["mbarrier.arrive", "bar.warp.sync", "mbarrier.arrive"],
}


def compiled(name):
    kernel, arguments, constants, *grid = KERNELS[name]
    compile_it = getattr(kernel, "warmup", kernel)
    return compile_it(*arguments, *constants, grid=(*grid, 1)[:1], target="cuda:90")


@pytest.mark.parametrize("name", KERNELS)
def test_counts(name):
    known = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    found = order.counts(compiled(name).asm["ptx"])
    if os.environ.get("TILEWRIGHT_BLESS") == "1":
        known[name] = found
        COUNTS.write_text(json.dumps({n: known[n] for n in KERNELS if n in known}, indent=2) + "\n")
    assert found == known[name], "what orders the kernel has changed: TILEWRIGHT_BLESS=1 if it is meant"


def test_every_kernel_has_its_counts():
    assert list(json.loads(COUNTS.read_text())) == list(KERNELS)


@pytest.mark.parametrize("name", KERNELS)
def test_each_is_needed(name):
    _, arguments, _, *grid = KERNELS[name]
    found = order.reported(compiled(name), arguments, *grid)
    silent = [line for line, kinds in found if not kinds]
    assert list(map(order.kind, silent)) == SILENT.get(name, []), silent
