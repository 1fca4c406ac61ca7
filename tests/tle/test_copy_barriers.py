"""`tle.gpu.copy` with a `barrier`, which counts the bytes that the copy engine brings."""

import numpy as np
import order
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def bring(desc, slots, full, empty, n, M: tl.constexpr, N: tl.constexpr, SLOTS: tl.constexpr):
    for i in range(n):
        tle.gpu.barrier_wait(empty[i % SLOTS], phaseIdx=i // SLOTS)
        tle.gpu.copy(desc, slots.slot(i % SLOTS), [M, N], [i * M, 0], barrier=full[i % SLOTS])


@triton.jit
def scale(out_ptr, slots, full, empty, n, M: tl.constexpr, N: tl.constexpr, SLOTS: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    for i in range(n):
        tle.gpu.barrier_wait(full[i % SLOTS], phaseIdx=i // SLOTS)
        x = slots.slot(i % SLOTS).load()
        tle.gpu.barrier_arrive(empty[i % SLOTS], phaseIdx=i // SLOTS)
        tl.store(out_ptr + i * M * N + at, x * 2)


@triton.jit
def ring(x_ptr, out_ptr, n, rows, M: tl.constexpr, N: tl.constexpr, SLOTS: tl.constexpr, WARPS: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, [rows, N], [N, 1], [M, N])
    slots = tle.gpu.alloc([SLOTS, M, N], dtype=x_ptr.dtype.element_ty)
    BYTES: tl.constexpr = M * N * x_ptr.dtype.element_ty.primitive_bitwidth // 8
    full = tle.gpu.alloc_barriers(SLOTS, expect_bytes=BYTES)
    empty = tle.gpu.alloc_barriers(SLOTS, init=tle.gpu.READY)
    tle.gpu.warp_specialize(
        [
            (scale, (out_ptr, slots, full, empty, n, M, N, SLOTS)),
            (bring, (desc, slots, full, empty, n, M, N, SLOTS)),
        ],
        [WARPS],
        [40],
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
@pytest.mark.parametrize(("shape", "slots", "warps"), [((16, 64), 2, 1), ((64, 32), 1, 4), ((24, 96), 3, 1)])
def test_ring(device, dtype, shape, slots, warps):
    (m, n), steps = shape, 7
    # The last block is half outside: its rows are zero, and count as bytes all the same.
    rows = steps * m - m // 2
    x = np.random.default_rng(0).integers(-50, 50, (rows, n)).astype(dtype)
    out = device.array(np.zeros((steps * m, n), dtype))
    ring[(1,)](device.array(x), out, steps, rows, m, n, slots, warps)
    want = np.concatenate([x * 2, np.zeros((m // 2, n), dtype)])
    np.testing.assert_array_equal(device.numpy(out), want)


@pytest.mark.parametrize("shape", [(1, 16), (3, 8)])
def test_slots_that_begin_in_between(shape):
    """The copy engine goes to multiples of 128 bytes."""
    x = np.zeros((4 * shape[0], shape[1]), np.float32)
    with pytest.raises(triton.CompilationError, match="cannot make all copies of this descriptor"):
        ring.warmup(x, x, 4, len(x), *shape, 2, 1, grid=(1,), target="cuda:90")


@triton.jit
def two_copies(a_ptr, b_ptr, out_ptr, n, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a_desc = tl.make_tensor_descriptor(a_ptr, [n * N, N], [N, 1], [N, N])
    b_desc = tl.make_tensor_descriptor(b_ptr, [n * N, N], [N, 1], [N, N])
    a, b = tle.gpu.alloc([N, N], dtype=tl.float32), tle.gpu.alloc([N, N], dtype=tl.float16)
    full = tle.gpu.alloc_barrier(expect_bytes=N * N * 6)
    total = tl.zeros([N, N], tl.float32)
    for i in range(n):
        tle.gpu.copy(a_desc, a, [N, N], [i * N, 0], barrier=full)
        tle.gpu.copy(b_desc, b, [N, N], [i * N, 0], barrier=full)
        tle.gpu.barrier_wait(full, phaseIdx=i)
        total += a.load() * b.load()
    tl.store(out_ptr + at, total)


def test_several_copies_are_one_arrival(device):
    """In the kernel's own warps, without partitions: what was loaded is not overwritten while others still load it."""
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 8, (5, 32, 32)).astype(np.float32)
    b = rng.integers(-8, 8, (5, 32, 32)).astype(np.float16)
    out = device.array(np.zeros((32, 32), np.float32))
    two_copies[(1,)](device.array(a.reshape(-1, 32)), device.array(b.reshape(-1, 32)), out, 5, 32)
    np.testing.assert_array_equal(device.numpy(out), (a * b).sum(0))


@triton.jit
def both_count(x_ptr, out_ptr, N: tl.constexpr):
    """An arrival of a partition's own beside those of copies."""
    desc = tl.make_tensor_descriptor(x_ptr, [N, N], [N, 1], [N, N])
    x = tle.gpu.alloc([N, N], dtype=tl.int32)
    factor = tle.gpu.alloc([N], dtype=tl.int32)
    full = tle.gpu.alloc_barrier(arrive_count=2, expect_bytes=N * N * 4)
    tle.gpu.warp_specialize(
        [(take, (x, factor, out_ptr, full, N)), (give, (desc, x, factor, full, N))], [2], [40]
    )


@triton.jit
def give(desc, x, factor, full, N: tl.constexpr):
    tle.gpu.copy(desc, x, [N, N], [0, 0], barrier=full)
    factor.store(tl.arange(0, N) + 1)
    tle.gpu.barrier_arrive(full, phaseIdx=0)


@triton.jit
def take(x, factor, out_ptr, full, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tle.gpu.barrier_wait(full, phaseIdx=0)
    tl.store(out_ptr + at, x.load() * factor.load()[None, :])


def test_arrivals_beside_copies(device):
    x = np.random.default_rng(0).integers(0, 100, (32, 32), dtype=np.int32)
    out = device.array(np.zeros((32, 32), np.int32))
    both_count[(1,)](device.array(x), out, 32)
    np.testing.assert_array_equal(device.numpy(out), x * (np.arange(32) + 1))


@triton.jit
def refill(x_ptr, out_ptr, n, N: tl.constexpr):
    """A worker stores into the buffer that the copy engine fills next, by pointers."""
    desc = tl.make_tensor_descriptor(x_ptr, [n * N, N], [N, 1], [N, N])
    x = tle.gpu.alloc([N, N], dtype=tl.float32)
    full = tle.gpu.alloc_barrier(expect_bytes=N * N * 4)
    empty = tle.gpu.alloc_barrier(init=tle.gpu.READY)
    tle.gpu.warp_specialize(
        [(change, (out_ptr, x, full, empty, n, N)), (fill, (desc, x, full, empty, n, N))], [1], [40]
    )


@triton.jit
def fill(desc, x, full, empty, n, N: tl.constexpr):
    for i in range(n):
        tle.gpu.barrier_wait(empty, phaseIdx=i)
        tle.gpu.copy(desc, x, [N, N], [i * N, 0], barrier=full)


@triton.jit
def change(out_ptr, x, full, empty, n, N: tl.constexpr):
    rows, columns = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    for i in range(n):
        tle.gpu.barrier_wait(full, phaseIdx=i)
        transposed = tl.load(tle.gpu.local_ptr(x, (columns, rows)))
        tl.store(tle.gpu.local_ptr(x, (rows, columns)), transposed + 1)
        tl.store(out_ptr + i * N * N + rows * N + columns, x.load())
        tle.gpu.barrier_arrive(empty, phaseIdx=i)


@triton.jit
def parts(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """Quarters of the rows and of the columns of two buffers, each by a copy of its own."""
    by_rows = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [M // 4, N])
    by_columns = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [M, N // 4])
    rows, columns = tle.gpu.alloc([M, N], tl.float16), tle.gpu.alloc([2, M, N], tl.float16)
    full = tle.gpu.alloc_barrier(expect_bytes=M * N * 4)
    for i in tl.static_range(4):
        part = rows.subslice((3 - i) * (M // 4), M // 4, dim=0)
        tle.gpu.copy(by_rows, part, [M // 4, N], [i * (M // 4), 0], barrier=full)
        part = columns.slot(1).subslice((3 - i) * (N // 4), N // 4)
        tle.gpu.copy(by_columns, part, [M, N // 4], [0, i * (N // 4)], barrier=full)
    tle.gpu.barrier_wait(full, phaseIdx=0)
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, rows.load())
    tl.store(out_ptr + M * N + at, columns.slot(1).load())


@pytest.mark.parametrize(("m", "n"), [(64, 128), (32, 256), (96, 64)])
def test_copies_to_parts_of_buffers(device, m, n):
    x = np.random.default_rng(0).random((m, n)).astype(np.float16)
    out = device.array(np.zeros((2, m, n), np.float16))
    parts[(1,)](device.array(x), out, m, n)
    want = [np.concatenate(np.split(x, 4, axis)[::-1], axis) for axis in (0, 1)]
    np.testing.assert_array_equal(device.numpy(out), want)


def test_what_is_loaded_and_stored_is_fenced_before_the_next_copy(device):
    x = np.random.default_rng(0).random((4, 32, 32), np.float32)
    out = device.array(np.zeros_like(x))
    refill[(1,)](device.array(x.reshape(-1, 32)), out, 4, 32)
    np.testing.assert_array_equal(device.numpy(out), x.transpose(0, 2, 1) + 1)


@pytest.mark.parametrize(("kernel", "args"), [(refill, (4, 32)), (ring, (4, 128, 32, 32, 2, 1))])
def test_the_simulator_asks_for_each_of_them(kernel, args):
    """Whatever of barriers, arrivals, bytes and the proxy fence before the arrival is missing, the simulator reports it."""
    x = np.random.default_rng(0).random((128, 32), np.float32)
    compiled = kernel.warmup(x, np.zeros_like(x), *args, grid=(1,), target="cuda:90")
    ints = args[:-1] if kernel is refill else args[:2]
    reported = order.reported(compiled, [x, np.zeros_like(x), *ints])
    assert [line for line, kinds in reported if not kinds] == []
    fences = [kinds for line, kinds in reported if "fence.proxy.async" in line]
    assert len(fences) == 1 and fences[0][0] == "proxy-fence"


def test_a_phase_that_lacks_bytes_says_so(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.KernelError, match="deadlock") as error:
        lacks_bytes[(1,)](np.zeros((32, 32), np.float32), 2, 32)
    assert "whose phase 0 has 0 of 1 arrivals and 4096 of 8192 bytes" in str(error.value)
    with pytest.raises(
        triton.KernelError, match="4096 bytes are copied to a barrier whose phase 0 has 2048 of 6144"
    ):
        lacks_bytes[(1,)](np.zeros((32, 32), np.float32), 1.5, 32)


@triton.jit
def lacks_bytes(x_ptr, TIMES: tl.constexpr, N: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, [N, N], [N, 1], [N, N])
    x = tle.gpu.alloc([N, N], dtype=tl.float32)
    full = tle.gpu.alloc_barrier(expect_bytes=int(N * N * 4 * TIMES))
    tle.gpu.copy(desc, x, [N, N], [0, 0], barrier=full)
    if TIMES != 2:
        tle.gpu.copy(desc, x, [N, N], [0, 0], barrier=full)
    tle.gpu.barrier_wait(full, 0)


@triton.jit
def brought(x_ptr, out_ptr, N: tl.constexpr, POLICY: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, [N, N], [N, 1], [N, N])
    x = tle.gpu.alloc([N, N], dtype=tl.float32)
    full = tle.gpu.alloc_barrier(expect_bytes=N * N * 4)
    tle.gpu.copy(desc, x, [N, N], [0, 0], barrier=full, eviction_policy=POLICY)
    tle.gpu.barrier_wait(full, 0)
    tl.store(out_ptr + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :], x.load())


@pytest.mark.parametrize("policy", ["", "evict_first", "evict_last"])
def test_what_the_cache_is_to_do_with_it(device, policy):
    x = np.random.default_rng(0).random((32, 32), np.float32)
    out = device.array(np.zeros_like(x))
    brought[(1,)](device.array(x), out, 32, policy)
    np.testing.assert_array_equal(device.numpy(out), x)
    ptx = brought.warmup(x, np.zeros_like(x), 32, policy, grid=(1,), target="cuda:90").asm["ptx"]
    assert (
        ptx.count("bytes.L2::cache_hint")
        == ptx.count(f"createpolicy.fractional.L2::{policy}.b64")
        == bool(policy)
    )


@triton.jit
def alternating(x_ptr, out_ptr, n, N: tl.constexpr, CARRIED: tl.constexpr):
    rows = tl.make_tensor_descriptor(x_ptr, [n * N], [1], [N])
    block = tle.gpu.alloc([N], dtype=tl.float32)
    next_bar = tle.gpu.alloc_barrier(expect_bytes=N * 4)
    for i in range(n):
        if CARRIED:
            bar = next_bar
        elif i % 2 == 0:
            bar = tle.gpu.alloc_barrier(expect_bytes=N * 4)
        else:
            bar = tle.gpu.alloc_barrier(expect_bytes=N * 4)
        tle.gpu.copy(rows, block, [N], [i * N], barrier=bar)
        tle.gpu.barrier_wait(bar, phaseIdx=0)
        tl.store(out_ptr + i * N + tl.arange(0, N), block.load())
        if CARRIED:
            next_bar = tle.gpu.alloc_barrier(expect_bytes=N * 4)


@pytest.mark.parametrize("carried", [False, True])
def test_barriers_that_leave_their_block_in_a_loop(carried):
    """Nobody knows who uses them last, and where one lies no other may be made."""
    x = np.zeros(64 * 4, np.float32)
    with pytest.raises(
        triton.CompilationError, match="made in a loop, and that a branch gives or the loop carries"
    ):
        alternating.warmup(x, x, 4, 64, carried, grid=(1,), target="cuda:90")


@pytest.mark.parametrize(("arch", "message"), [("cuda:80", "no tensor memory accelerator"), ("cuda:90", "")])
def test_targets(arch, message):
    x = np.zeros((64, 64), np.float32)

    def compile_it():
        return two_copies.warmup(x, x.astype(np.float16), x, 1, 32, grid=(1,), target=arch)

    if message:
        with pytest.raises(triton.CompilationError, match=message) as error:
            compile_it()
        assert "not supported on cuda:80" in str(error.value) and "a, [N, N]" in str(error.value)
    else:
        assert compile_it().asm["ptx"].count("mbarrier.expect_tx") == 2


@triton.jit
def wrong(x_ptr, CASE: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, [64, 32], [32, 1], [16, 32])
    x = tle.gpu.alloc([16, 32], dtype=tl.float32)
    full, plain = tle.gpu.alloc_barriers(2, expect_bytes=2048), tle.gpu.alloc_barrier()
    at = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    if CASE == 0:
        tle.gpu.copy(x_ptr + at, x, [16, 32], barrier=full[0])
    elif CASE == 1:
        tle.gpu.copy(x, desc, [16, 32], [0, 0], barrier=full[0])
    elif CASE == 2:
        tle.gpu.copy(desc, x, [16, 32], [0, 0], barrier=full)
    elif CASE == 3:
        tle.gpu.copy(desc, x, [16, 32], [0, 0], barrier=plain)
    elif CASE == 4:
        tle.gpu.copy(desc, x, [16, 32], [0, 0], barrier=7)
    elif CASE == 5:
        tle.gpu.copy(desc, x, [16, 32], [0, 0], barrier=full[0], is_async=True)
    elif CASE == 6:
        tle.gpu.copy(desc, x, [16, 32], barrier=full[0])
    elif CASE == 7:
        tle.gpu.copy(desc, tle.gpu.alloc([16, 32], dtype=tl.float16), [16, 32], [0, 0], barrier=full[0])
    elif CASE == 8:
        tle.gpu.copy(desc, tle.gpu.alloc([32, 32], dtype=tl.float32), [16, 32], [0, 0], barrier=full[0])
    elif CASE == 9:
        tle.gpu.copy(desc, x, [16, 32], [0, 0], barrier=tle.gpu.alloc_barrier(expect_bytes=1024))
    elif CASE == 10:
        tle.gpu.alloc_barrier(expect_bytes=24)
    elif CASE == 11:
        tle.gpu.barrier_arrive(full[0], phaseIdx=0)
    elif CASE == 12:
        tle.gpu.copy(desc, x, [16, 32], [0, 0], barrier=full[0], mask=at > 0)


WRONG = [
    "`barrier` of tle.gpu.copy is for copies from a tensor descriptor to a buffer",
    "`barrier` of tle.gpu.copy is for copies from a tensor descriptor to a buffer",
    "takes one barrier, not all of an allocation",
    "must expect bytes",
    "`barrier` of tle.gpu.copy must be a barrier",
    "a `barrier` or is_async=True, not both",
    "needs `offsets`",
    "it converts nothing, and fills all of its buffer",
    "it converts nothing, and fills all of its buffer",
    "2048 bytes to a barrier whose phases have `expect_bytes` = 1024",
    "`expect_bytes` = 24 bytes: each brings a multiple of 16",
    "1 arrivals at a barrier whose phases have 1",
    "`mask` of tle.gpu.copy is for pointers",
]


@pytest.mark.parametrize(("case", "message"), list(enumerate(WRONG)))
def test_errors(device, case, message):
    with pytest.raises(triton.CompilationError, match=message) as error:
        wrong[(1,)](device.array(np.zeros((64, 32), np.float32)), case)
    assert "test_copy_barriers.py" in str(error.value) and "^" in str(error.value)


def test_a_layout_that_the_copy_engine_has_not():
    with pytest.raises(triton.CompilationError, match="cannot make all copies of this descriptor"):
        given_layout.warmup(np.zeros((64, 32), np.float32), grid=(1,), target="cuda:90")


LAYOUT = tle.gpu.swizzled_shared_layout(4, 1, 8, (1, 0))


@triton.jit
def given_layout(x_ptr):
    desc = tl.make_tensor_descriptor(x_ptr, [64, 32], [32, 1], [16, 32])
    x = tle.gpu.alloc([16, 32], dtype=tl.float32, layout=LAYOUT)
    full = tle.gpu.alloc_barrier(expect_bytes=2048)
    tle.gpu.copy(desc, x, [16, 32], [0, 0], barrier=full)
    tle.gpu.barrier_wait(full, 0)
    tl.store(x_ptr + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :], x.load())
