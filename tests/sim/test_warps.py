"""What only a GPU would show of kernels for one warp, and the simulator reports: warps that nothing orders."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit(warp_level=True)
def hand_on(x_ptr, out_ptr, FIRST: tl.constexpr, SECOND: tl.constexpr, N: tl.constexpr):
    """Two rounds in which each warp reads what the next one has written."""
    warps: tl.constexpr = tl.num_warps()
    at = tl.warp_id() * N + tl.arange(0, N)
    blocks = tl.alloc((warps, N), tl.float32)
    x = tl.load(x_ptr + at)
    for _ in tl.static_range(2):
        tl.store(blocks.slot(tl.warp_id()), x)
        if FIRST:
            tl.barrier()
        x = tl.load(blocks.slot((tl.warp_id() + 1) % warps))
        if SECOND:
            tl.barrier()
    tl.store(out_ptr + at, x)


def test_all_barriers():
    x = np.arange(4 * 64, dtype=np.float32).reshape(4, 64)
    out = np.empty_like(x)
    hand_on[(1,)](x, out, True, True, 64, num_warps=4)
    np.testing.assert_array_equal(out, np.roll(x, -2, axis=0))


@pytest.mark.parametrize("first,second", [(False, True), (True, False)])
def test_a_barrier_that_is_missing(first, second):
    x = np.arange(4 * 64, dtype=np.float32).reshape(4, 64)
    with pytest.raises(Exception, match=r"race|uninitialized|never stored"):
        hand_on[(1,)](x, np.empty_like(x), first, second, 64, num_warps=4)


@triton.jit(warp_level=True)
def one_place(out_ptr):
    tl.store(out_ptr, tl.warp_id())


def test_warps_that_write_one_place():
    with pytest.raises(Exception, match="race"):
        one_place[(1,)](np.zeros(1, np.int32), num_warps=4)
