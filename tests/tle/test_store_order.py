"""Stores of one program by the copy engine: one to where another may still store waits for it, and one to elsewhere doesn't."""

import numpy as np
import order
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def tile(M: tl.constexpr, N: tl.constexpr):
    return (tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]).to(tl.float32)


@triton.jit
def again(out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [M, N])
    out.store([0, 0], tile(M, N))
    out.store([0, 0], tile(M, N) + n)


@triton.jit
def added(out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [M, N])
    out.store([0, 0], tile(M, N))
    # Sums need not wait for each other.
    out.atomic_add([0, 0], tile(M, N) * 0 + 1)
    out.atomic_add([0, 0], tile(M, N) * 0 + (n - 1))


@triton.jit
def turns(out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [M, N])
    for i in range(n + 1):
        out.store([0, 0], tile(M, N) + i)


@triton.jit
def somewhere(out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    # By turns at two places.
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [M // 2, N])
    for i in range(2 * n + 2):
        out.store([i % 2 * (M // 2), 0], tile(M // 2, N) + i % 2 * (M // 2 * N) + i // 2)


@triton.jit
def halves(out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [M // 4, N])
    for i in range(0, M, M // 2):
        out.store([i, 0], tile(M // 4, N) + i * N + n)
        out.store([i + M // 4, 0], tile(M // 4, N) + (i + M // 4) * N + n)


@triton.jit
def strided(out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [M // 4, N])
    for i in range(tl.program_id(0) * (M // 4), M, tl.num_programs(0) * (M // 4)):
        out.store([i, 0], tile(M // 4, N) + i * N + n)


WAIT = [again, added, turns, somewhere]


@pytest.mark.parametrize("kernel", [*WAIT, halves, strided])
def test_stores_in_order(device, kernel):
    m, n, by = 32, 64, 7
    out = device.zeros((m, n), np.float32)
    kernel[(1,)](out, by, m, n)
    np.testing.assert_array_equal(device.numpy(out), np.arange(m * n).reshape(m, n) + by)


@pytest.mark.parametrize(
    ("kernel", "waits"), [(again, 1), (added, 1), (turns, 1), (somewhere, 1), (halves, 0), (strided, 0)]
)
def test_what_may_be_the_same_place_is_waited_for(kernel, waits):
    out = np.zeros((32, 64), np.float32)
    compiled = kernel.warmup(out, 7, 32, 64, grid=(1,), target="cuda:90")
    assert compiled.asm["ptx"].count("cp.async.bulk.wait_group 0") == waits
    reported = {line: kinds for line, kinds in order.reported(compiled, [out, 7])}
    assert all(kinds for line, kinds in reported.items() if "cp.async.bulk.wait_group 0" in line), reported
