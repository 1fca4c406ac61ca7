"""What threads and TMA copies of one program do to the same memory: in the order of the program, and at no cost to those that do nothing of the kind.

The simulator reports a copy of what has no fence between the proxies on the way, and who reads what a copy still stores.
"""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.tools.tensor_descriptor import TensorDescriptor

FENCE = "fence.proxy.async.global"
COMPLETE = "cp.async.bulk.wait_group 0"


@triton.jit
def tile(M: tl.constexpr, N: tl.constexpr):
    return tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]


@triton.jit
def write(x_ptr, x, value, HOW: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    if HOW == "store":
        tl.store(x_ptr + tile(M, N), value)
    elif HOW == "atomic":
        tl.atomic_add(x_ptr + tile(M, N), value, sem="relaxed")
    elif HOW == "copy":
        x.store([0, 0], value)
    else:
        x.atomic_add([0, 0], value)


@triton.jit
def read(x_ptr, x, HOW: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    if HOW == "load":
        return tl.load(x_ptr + tile(M, N))
    else:
        return x.load([0, 0])


@triton.jit
def written_and_read(x_ptr, y_ptr, WRITE: tl.constexpr, READ: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [M, N])
    write(x_ptr, x, tile(M, N).to(tl.float32), WRITE, M, N)
    # Which threads have which elements is another matter here.
    tl.store(y_ptr + tile(N, M), read(x_ptr, x, READ, M, N).T)


@pytest.mark.parametrize("write", ["store", "atomic", "copy", "reduce"])
@pytest.mark.parametrize("read", ["load", "copy"])
def test_what_a_program_has_written(device, write, read):
    M, N = 32, 64
    x, y = device.zeros((M, N), np.float32), device.empty((N, M), np.float32)
    kernel = written_and_read[(1,)](x, y, write, read, M, N)
    want = np.arange(M * N, dtype=np.float32).reshape(M, N)
    np.testing.assert_array_equal(device.numpy(x), want)
    np.testing.assert_array_equal(device.numpy(y), want.T)
    if device.backend == "ptxsim":
        ptx = kernel.asm["ptx"]
        by_threads = write in ("store", "atomic")
        assert ptx.count(FENCE) == (not by_threads or read == "copy")
        assert ptx.count(COMPLETE) == (not by_threads)


@triton.jit
def overwritten(x_ptr, FIRST: tl.constexpr, SECOND: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [M, N])
    write(x_ptr, x, tl.full([M, N], 1, tl.float32), FIRST, M, N)
    write(x_ptr, x, tile(M, N).to(tl.float32), SECOND, M, N)


@pytest.mark.parametrize(("first", "second"), [("store", "copy"), ("copy", "store"), ("atomic", "copy")])
def test_what_is_written_twice(device, first, second):
    M, N = 32, 64
    x = device.zeros((M, N), np.float32)
    overwritten[(1,)](x, first, second, M, N)
    np.testing.assert_array_equal(device.numpy(x), np.arange(M * N, dtype=np.float32).reshape(M, N))


@triton.jit
def carried(x_ptr, y_ptr, COUNT: tl.constexpr, N: tl.constexpr):
    # Each iteration multiplies by what the one before has stored.
    x = tl.make_tensor_descriptor(x_ptr, [N, N], [N, 1], [N, N])
    total = tl.zeros([N, N], tl.float32)
    for _ in tl.range(COUNT, num_stages=3):
        a = x.load([0, 0])
        total += tl.dot(a, a)
        tl.store(x_ptr + tile(N, N), (total % 7).to(tl.float16))
    tl.store(y_ptr + tile(N, N), total)


def test_a_loop_that_stores_what_it_loads_next(device):
    N, count = 64, 4
    x = np.random.default_rng(0).integers(0, 3, (N, N)).astype(np.float16)
    X, Y = device.array(x), device.empty((N, N), np.float32)
    kernel = carried[(1,)](X, Y, count, N)
    total, x = np.zeros((N, N), np.float32), x.astype(np.float32)
    for _ in range(count):
        total += x @ x
        x = total % 7
    np.testing.assert_array_equal(device.numpy(Y), total)
    np.testing.assert_array_equal(device.numpy(X), x)
    if device.backend == "ptxsim":
        assert FENCE in kernel.asm["ptx"]


@triton.jit
def chained(x_ptr, y_ptr, count, MADE: tl.constexpr, N: tl.constexpr):
    # What an iteration loads the one before it has stored.
    x = tl.make_tensor_descriptor(x_ptr, [(count + 1) * N, N], [N, 1], [N, N])
    total = tl.zeros([N, N], tl.float32)
    for k in range(count):
        if MADE:
            a = x.load([k * N, 0])
        else:
            a = tl.load(x_ptr + k * N * N + tile(N, N))
        total += tl.dot(a, a)
        tl.store(x_ptr + (k + 1) * N * N + tile(N, N), (total % 7).to(tl.float16))
    tl.store(y_ptr + tile(N, N), total)


@pytest.mark.parametrize("made", [False, True])
def test_a_loop_that_loads_what_it_has_stored(device, made):
    N, count = 64, 5
    x = np.zeros((count + 1, N, N), np.float16)
    x[0] = np.random.default_rng(0).integers(0, 3, (N, N))
    Y = device.empty((N, N), np.float32)
    kernel = chained[(1,)](device.array(x), Y, count, made, N)
    total, a = np.zeros((N, N), np.float32), x[0].astype(np.float32)
    for _ in range(count):
        total += a @ a
        a = total % 7
    np.testing.assert_array_equal(device.numpy(Y), total)
    if device.backend == "ptxsim":
        assert "cp.async.c" not in kernel.asm["ptx"]


@triton.jit
def persistent(
    a, b, c_ptr, c, count, STORE: tl.constexpr, ADD: tl.constexpr, WARPS: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    c_made = tl.make_tensor_descriptor(c_ptr, [count * M, N], [N, 1], [M, N])
    for row in tl.range(0, count, warp_specialize=WARPS):
        total = tl.zeros([M, N], tl.float32)
        for k in range(4):
            total = tl.dot(a.load([row * M, k * K]), b.load([k * K, 0]), total)
        if ADD:
            total += c_made.load([row * M, 0])
        if STORE == "threads":
            tl.store(c_ptr + row * M * N + tile(M, N), total)
        elif STORE == "given":
            c.store([row * M, 0], total)
        else:
            c_made.store([row * M, 0], total)


@pytest.mark.parametrize("store", ["threads", "given", "made"])
@pytest.mark.parametrize("warps", [False, True])
@pytest.mark.parametrize("add", [False, True])
def test_a_product_tile_by_tile(device, store, warps, add):
    M, N, K, count = 64, 64, 32, 3
    rng = np.random.default_rng(1)
    a = rng.integers(-2, 3, (count * M, 4 * K)).astype(np.float16)
    b = rng.integers(-2, 3, (4 * K, N)).astype(np.float16)
    c = rng.integers(-2, 3, (count * M, N)).astype(np.float32)
    A, B, C = device.array(a), device.array(b), device.array(c)
    kernel = persistent[(1,)](
        TensorDescriptor.from_tensor(A, [M, K]),
        TensorDescriptor.from_tensor(B, [K, N]),
        C,
        TensorDescriptor.from_tensor(C, [M, N]),
        count, store, add, warps, M, N, K,
    )  # fmt: skip
    want = a.astype(np.float32) @ b.astype(np.float32) + (c if add else 0)
    np.testing.assert_array_equal(device.numpy(C), want)
    if device.backend == "ptxsim" and not add:
        # Of three tensors none is both loaded and stored.
        assert FENCE not in kernel.asm["ptx"] and COMPLETE not in kernel.asm["ptx"]


@triton.jit(noinline=True)
def notify(flag):
    tl.atomic_xchg(flag, 1, sem="release")


@triton.jit
def told(flag, x_ptr, y_ptr, HOW: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """Program 0 stores a tile by a copy, and says so by code of its own or in a function; program 1 waits by such code, and copies the tile."""
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [M, N])
    y = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [M, N])
    if tl.program_id(0) == 0:
        x.store([0, 0], tile(M, N).to(tl.float32))
        tl.debug_barrier()
        if HOW == "assembly":
            said = "st.release.gpu.global.b32 [$1], $2; mov.u32 $0, $2;"
            tl.inline_asm_elementwise(said, "=r,l,r", [flag, 1], dtype=tl.int32, is_pure=False, pack=1)
        else:
            notify(flag)
    else:
        asks = "ld.acquire.gpu.global.b32 $0, [$1];"
        while tl.inline_asm_elementwise(asks, "=r,l", [flag], dtype=tl.int32, is_pure=False, pack=1) == 0:
            pass
        y.store([0, 0], x.load([0, 0]))


@pytest.mark.parametrize("how", ["assembly", "function"])
def test_what_other_programs_are_told(device, how):
    m, n = 32, 64
    flag = device.zeros(1, np.int32)
    x, y = device.zeros((m, n), np.float32), device.zeros((m, n), np.float32)
    kernel = told[(2,)](flag, x, y, how, m, n)
    np.testing.assert_array_equal(device.numpy(y), np.arange(m * n, dtype=np.float32).reshape(m, n))
    if device.backend == "ptxsim":
        assert FENCE in kernel.asm["ptx"] and COMPLETE in kernel.asm["ptx"]
