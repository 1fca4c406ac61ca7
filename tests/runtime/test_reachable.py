"""Addresses that a kernel loads from memory: on the CPU the arrays behind them are named."""

import gc

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def sums(addresses, out, N: tl.constexpr):
    x = tl.load(addresses + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + tl.arange(0, N)), axis=0))


@triton.jit
def fill(addresses):
    x = tl.load(addresses).to(tl.pointer_type(tl.float32))
    tl.store(x + tl.arange(0, 8), 3.0)


@pytest.fixture(params=["interp", "ptxsim"], autouse=True)
def backend(request, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", request.param)


def groups(*lengths):
    # Mapped one by one: far from each other and from what is small.
    arrays = [np.full(n, i + 1, np.float32) for i, n in enumerate(lengths)]
    return arrays, np.array([a.ctypes.data for a in arrays], np.int64)


def test_arrays_behind_addresses():
    arrays, addresses = groups(1 << 18, 1 << 18)
    out = np.zeros(2, np.float32)
    with triton.reachable(arrays[0]), triton.reachable(arrays[1]):
        sums[(2,)](addresses, out, 16)
    assert out.tolist() == [16, 32]
    # Afterwards they are out of reach again, and the error says what to do.
    with pytest.raises(triton.KernelError, match=r"tilewright\.reachable\(\*arrays\)"):
        sums[(2,)](addresses, out, 16)


def test_one_of_them_is_missing():
    arrays, addresses = groups(1 << 18, 1 << 18)
    with (
        triton.reachable(arrays[0]),
        pytest.raises(triton.KernelError, match=r"bounds(.|\n)*reachable"),
    ):
        sums[(2,)](addresses, np.zeros(2, np.float32), 16)


def test_bounds_of_what_is_reachable_are_checked():
    arrays, addresses = groups(8, 8)
    with triton.reachable(*arrays), pytest.raises(triton.KernelError, match=r"reachable\[\d\]") as error:
        sums[(2,)](addresses, np.zeros(2, np.float32), 16)
    # An index that is a little wrong is no address of something else.
    assert "reachable(*arrays)" not in str(error.value)


def test_writing():
    arrays, addresses = groups(8)
    with triton.reachable(*arrays):
        fill[(1,)](addresses)
    assert arrays[0].tolist() == [3] * 8
    arrays[0].flags.writeable = False
    with triton.reachable(*arrays), pytest.raises(triton.KernelError, match="read-only"):
        fill[(1,)](addresses)


def test_they_are_kept_alive():
    arrays, addresses = groups(1 << 18)
    with triton.reachable(*arrays):
        del arrays
        gc.collect()
        fill[(1,)](addresses)


def test_only_arrays_are_taken():
    with (
        triton.reachable([np.zeros(4, np.float32)]),
        pytest.raises(TypeError, match=r"reachable\(\*arrays\)"),
    ):
        fill[(1,)](np.zeros(1, np.int64))
