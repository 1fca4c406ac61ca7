"""Several devices: kernels that reach other ranks of a simulated mesh, and what goes wrong there."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import distributed, tle
from tilewright.testing import simulated_mesh
from tilewright.tle import _ranks
from tilewright.tools.tensor_descriptor import TensorDescriptor

MESH = tle.device_mesh({"node": 2, "device": 4})
PAIR = tle.device_mesh({"device": 2})
BLOCKS = tle.device_mesh({"device": 2, "block": 3})

# A simulated mesh has no GPU.
pytestmark = pytest.mark.parametrize("device", ["interp", "ptxsim"], indirect=True)


@triton.jit
def all_reduce_kernel(x_ptr, out_ptr, mesh: tl.constexpr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tle.distributed_barrier(mesh)
    total = tl.zeros([N], out_ptr.dtype.element_ty)
    for member in tl.static_range(mesh.size):
        total += tl.load(tle.remote(x_ptr + at, member, mesh))
    tl.store(out_ptr + at, total)
    tle.distributed_barrier(mesh)


def numbers(count, shape, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(-8, 8, shape).astype(dtype) for _ in range(count)]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64])
@pytest.mark.parametrize("n", [64, 96])
def test_all_reduce(device, dtype, n):
    with simulated_mesh(2, 4):
        data = numbers(8, 4 * n, dtype)
        x, out = distributed.from_parts(data), distributed.zeros(4 * n, dtype)
        # Flags and signals are as they were after each launch.
        for _ in range(2):
            all_reduce_kernel[(4,)](x, out, MESH, n)
    for part in out.parts:
        np.testing.assert_array_equal(part, np.sum(data, 0, dtype))


@triton.jit
def coordinates_kernel(out_ptr, mesh: tl.constexpr):
    tl.store(out_ptr, tle.shard_id(mesh, "node"))
    tl.store(out_ptr + 1, tle.shard_id(mesh, "device"))
    tl.store(out_ptr + 2, tle.n_pes())


def test_coordinates(device):
    with simulated_mesh(2, 4):
        out = distributed.zeros(3, np.int32)
        coordinates_kernel[(1,)](out, MESH)
    np.testing.assert_array_equal(out.numpy(), [[r // 4, r % 4, 8] for r in range(8)])


@triton.jit
def counted_ring_kernel(x_ptr, out_ptr, mesh: tl.constexpr, N: tl.constexpr):
    me, at = tle.shard_id(mesh, "device"), tl.arange(0, N)
    next = (me + 1) % mesh.size
    row = tl.load(x_ptr + at)
    for step in range(mesh.size - 1):
        tl.store(tle.remote(out_ptr + step * N + at, next, mesh, space="device"), row)
        tle.signal(None, next, 0)
        tle.signal_wait(None, 0, target=step + 1)
        row = tl.load(out_ptr + step * N + at)


def test_ring_by_signals(device):
    mesh = tle.device_mesh({"device": 4})
    data = numbers(4, 32)
    want = [[data[(r - step) % 4] for step in (1, 2, 3)] for r in range(4)]
    with simulated_mesh(1, 4):
        x, out = distributed.from_parts(data), distributed.zeros((3, 32))
        counted_ring_kernel[(1,)](x, out, mesh, 32)
        np.testing.assert_array_equal(out.numpy(), want)
        distributed.reset_signals()
        counted_ring_kernel[(1,)](x, out, mesh, 32)


@triton.jit
def count_kernel(count_ptr, mesh: tl.constexpr):
    tl.atomic_add(tle.remote(count_ptr, tl.program_id(0) % mesh.size, mesh), 1, scope="sys")


def test_atomics(device):
    with simulated_mesh(2, 4):
        count = distributed.zeros(1, np.int32)
        count_kernel[(16,)](count, MESH)
    np.testing.assert_array_equal(count.numpy(), np.full((8, 1), 16))


@triton.jit
def rows_kernel(x_ptr, out_ptr, mesh: tl.constexpr):
    # Ranks of one node wait for each other alone.
    first = tle.shard_id(mesh, "node") * 4
    row: tl.constexpr = mesh.size // 2
    tl.store(x_ptr, first + tle.shard_id(mesh, "device") + 1)
    tle.distributed_barrier(mesh[0])
    tle.distributed_barrier(mesh[1])
    total = 0
    for k in tl.static_range(row):
        total += tl.load(tle.remote(x_ptr, first + k, mesh))
    tl.store(out_ptr, total)
    tle.distributed_barrier(mesh)


def test_barrier_of_a_part(device):
    with simulated_mesh(2, 4):
        x, out = distributed.zeros(1, np.int32), distributed.zeros(1, np.int32)
        rows_kernel[(1,)](x, out, MESH)
    np.testing.assert_array_equal(out.numpy()[:, 0], [10] * 4 + [26] * 4)


@triton.jit
def all_programs_kernel(x_ptr, out_ptr, mesh: tl.constexpr):
    number = tle.shard_id(mesh, "device") * 3 + tle.shard_id(mesh, "block")
    tl.store(x_ptr + tl.program_id(0), number + 1)
    tle.distributed_barrier(mesh)
    total = 0
    for rank in tl.static_range(2):
        for block in tl.static_range(3):
            total += tl.load(tle.remote(x_ptr + block, (rank, block), mesh))
    tl.store(out_ptr + tl.program_id(0), total)
    tle.distributed_barrier(mesh)


def test_barrier_of_all_programs_of_all_devices(device):
    with simulated_mesh(1, 2):
        x, out = distributed.zeros(3, np.int32), distributed.zeros(3, np.int32)
        all_programs_kernel[(3,)](x, out, BLOCKS)
    np.testing.assert_array_equal(out.numpy(), np.full((2, 3), 21))


@triton.jit
def copied_kernel(desc, x_ptr, out_ptr, mesh: tl.constexpr, N: tl.constexpr, HOW: tl.constexpr):
    # On Hopper a descriptor's store is a copy that goes on beside what follows.
    me, at = tle.shard_id(mesh, 0), tl.arange(0, N)
    desc.store([0], (at + 100 * me).to(tl.float32))
    if HOW == "barrier":
        tle.distributed_barrier(mesh)
    else:
        tle.signal(None, 1 - me, 3)
        tle.signal_wait(None, 3)
    tl.store(out_ptr + at, tl.load(tle.remote(x_ptr + at, 1 - me, mesh)))
    tle.distributed_barrier(mesh)


@pytest.mark.parametrize("how", ["barrier", "signal"])
def test_what_a_copy_stores_is_there_with_the_signal(device, how):
    with simulated_mesh(1, 2):
        x, out = distributed.zeros(64), distributed.zeros(64)
        copied_kernel[(1,)](TensorDescriptor.from_tensor(x, [64]), x, out, PAIR, 64, how)
    np.testing.assert_array_equal(out.numpy(), [np.arange(64) + 100, np.arange(64)])


@triton.jit
def blocks_of_signals_kernel(out_ptr, mesh: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    tle.signal(None, 1 - tle.shard_id(mesh, 0), at + 7)
    tle.signal(None, 1 - tle.shard_id(mesh, 0), at + 7, tl.where(at == 3, 0, at), op="add")
    for k in range(N):
        tle.signal_wait(None, k + 7, target=1 if k == 3 else k + 1)
    tle.signal(None, tle.shard_id(mesh, 0), at + 7, -1, op="add")
    tl.store(out_ptr, 1)


def test_blocks_of_signals(device):
    with simulated_mesh(1, 2):
        out = distributed.zeros(1, np.int32)
        blocks_of_signals_kernel[(1,)](out, PAIR, 6)
        ranks = distributed._current()
        for rank in range(2):
            signals = ranks.view(rank, ranks.parts[1][1], (16,), np.int64)
            np.testing.assert_array_equal(signals[7:13], [0, 1, 2, 0, 4, 5])
            assert not signals[:7].any() and not signals[13:].any()


# ---- what goes wrong --------------------------------------------------------------------------------------------


@triton.jit
def unordered_kernel(x_ptr, out_ptr, mesh: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(x_ptr + at, at.to(tl.float32))
    tl.store(out_ptr + at, tl.load(tle.remote(x_ptr + at, 1 - tle.shard_id(mesh, 0), mesh)))


def test_accesses_without_order(device):
    with simulated_mesh(1, 2):
        x, out = distributed.zeros(32), distributed.zeros(32)
        with pytest.raises(triton.KernelError, match="with no order between") as failed:
            unordered_kernel[(1,)](x, out, PAIR, 32)
    text = str(failed.value)
    assert "race" in text and "of rank" in text and "test_ranks.py" in text
    if device.backend == "interp":
        # Both sides, each with its line.
        assert text.count("test_ranks.py:") >= 2 and "program (0, 0, 0) of rank" in text


@triton.jit
def one_array_kernel(out_ptr, mesh: tl.constexpr, SAME: tl.constexpr):
    at = tl.arange(0, 32)
    tl.store(out_ptr + at, at + 1 if SAME else at + tle.shard_id(mesh, 0))


def test_one_array_for_all_ranks(device):
    # What is not symmetric is one array here: ranks may all store the same there.
    out = np.zeros(32, np.int32)
    with simulated_mesh(1, 2):
        one_array_kernel[(1,)](out, PAIR, True)
        np.testing.assert_array_equal(out, np.arange(32) + 1)
        with pytest.raises(triton.KernelError, match="race"):
            one_array_kernel[(1,)](out, PAIR, False)


@triton.jit
def hand_over_kernel(x_ptr, flag_ptr, out_ptr, mesh: tl.constexpr, SCOPE: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    if tle.shard_id(mesh, 0) == 0:
        tl.store(tle.remote(x_ptr + at, 1, mesh), at.to(tl.float32))
        tl.atomic_xchg(tle.remote(flag_ptr, 1, mesh), 1, sem="release", scope=SCOPE)
    else:
        while tl.atomic_add(flag_ptr, 0, sem="acquire", scope=SCOPE) == 0:
            pass
        tl.debug_barrier()
        tl.store(out_ptr + at, tl.load(x_ptr + at))


@pytest.mark.parametrize("scope", ["sys", "gpu"])
def test_a_scope_too_small(device, scope):
    with simulated_mesh(1, 2):
        x, flag, out = distributed.zeros(32), distributed.zeros(1, np.int32), distributed.zeros(32)
        if scope == "gpu":
            with pytest.raises(triton.KernelError, match="with no order between"):
                hand_over_kernel[(1,)](x, flag, out, PAIR, scope, 32)
            return
        hand_over_kernel[(1,)](x, flag, out, PAIR, scope, 32)
    np.testing.assert_array_equal(out.parts[1], np.arange(32))


@triton.jit
def deserter_kernel(out_ptr, mesh: tl.constexpr):
    if tle.shard_id(mesh, 0) != 2:
        tle.distributed_barrier(mesh)
    tl.store(out_ptr, 1)


def test_a_rank_that_does_not_come(device):
    mesh = tle.device_mesh({"device": 3})
    with simulated_mesh(1, 3), pytest.raises(triton.KernelError, match="deadlock") as failed:
        deserter_kernel[(1,)](distributed.zeros(1, np.int32), mesh)
    text = str(failed.value)
    assert "test_ranks.py" in text
    if device.backend == "interp":
        assert "rank 2 has ended" in text and "of rank 0" in text and "the signal is 0 and not yet 1" in text


@triton.jit
def swapped_kernel(mesh: tl.constexpr):
    if tle.shard_id(mesh, 0) == 1:
        tle.distributed_barrier(mesh[:2])
        tle.distributed_barrier(mesh)
    else:
        tle.distributed_barrier(mesh)
        tle.distributed_barrier(mesh[:2])


def test_barriers_in_another_order(device):
    mesh = tle.device_mesh({"device": 3})
    with simulated_mesh(1, 3), pytest.raises(triton.KernelError, match="deadlock") as failed:
        swapped_kernel[(1,)](mesh)
    text = str(failed.value)
    assert "test_ranks.py" in text
    # Both sides, each with its line.
    assert text.count("test_ranks.py:") >= 2 and "of rank 0" in text and "of rank 1" in text


@triton.jit
def dropped_signal_kernel(mesh: tl.constexpr):
    if tle.shard_id(mesh, 0) == 0:
        tle.signal(None, 1, 5)
        tle.signal_wait(None, 6)
    else:
        tle.signal_wait(None, 5)


def test_a_signal_that_never_comes(device):
    with simulated_mesh(1, 2), pytest.raises(triton.KernelError, match="deadlock") as failed:
        dropped_signal_kernel[(1,)](PAIR)
    assert "test_ranks.py" in str(failed.value)


def test_a_time_limit(device):
    # As on a GPU, where nobody sees that all wait: the kernel reports where, for the host to say it, and ends.
    if device.backend == "interp":
        return
    mesh = tle.device_mesh({"device": 3})
    with simulated_mesh(1, 3):
        ranks = distributed._current()
        # A signal that nobody uses takes the report.
        unused = _ranks.SIGNAL.value
        headers = [ranks.view(rank, 0, (unused + 1,), np.int64) for rank in range(3)]
        for header in headers:
            header[_ranks.TIME_LIMIT.value] = 1000
            header[_ranks.REPORT.value] = header[unused:].ctypes.data
        with pytest.raises(triton.KernelError, match="the kernel traps"):
            deserter_kernel[(1,)](distributed.zeros(1, np.int32), mesh)
        words = [int(header[unused]) for header in headers if header[unused]]
        line = deserter_kernel.fn.__code__.co_firstlineno + 3
        assert words and all(word >> 44 == line for word in words)
        found = {ranks.signal_at(word & (1 << 44) - 1) for word in words}
        assert found <= {f"rank {rank}, whose program 0 has not come" for rank in range(3)}


def test_programs_that_wait_are_there_at_once(device):
    if device.backend == "interp":
        return
    with simulated_mesh(2, 4):
        x = distributed.zeros(256)
        compiled = all_reduce_kernel.warmup(x, x, MESH, 64, grid=(4,), target="cuda:90")
        assert compiled.metadata.launch_cooperative_grid


def test_launches_that_do_not_fit(device):
    out = np.zeros(3, np.int32)
    with pytest.raises(ValueError, match="reaches other devices, and the launch has none"):
        coordinates_kernel[(1,)](out, MESH)
    with (
        simulated_mesh(1, 2),
        pytest.raises(ValueError, match="has 8 nodes times devices, and the launch 2 ranks"),
    ):
        coordinates_kernel[(1,)](distributed.zeros(3, np.int32), MESH)
    with (
        simulated_mesh(2, 4, programs=8),
        pytest.raises(ValueError, match=r"has 9 programs, and flags .* for 8"),
    ):
        all_reduce_kernel[(9,)](distributed.zeros(576), distributed.zeros(576), MESH, 64)
    with simulated_mesh(1, 2, memory=1024), pytest.raises(MemoryError, match="ask for more by"):
        distributed.zeros(1024)
    with simulated_mesh(1, 2), pytest.raises(ValueError, match="3 parts were given, and there are 2 ranks"):
        distributed.from_parts([out] * 3)
    with pytest.raises(RuntimeError, match="there is no symmetric memory here"):
        distributed.empty(4)


@triton.jit
def far_rank_kernel(x_ptr, rank, mesh: tl.constexpr):
    tl.store(x_ptr, tl.load(tle.remote(x_ptr, rank, mesh)))


def test_a_rank_that_there_is_not(device):
    with simulated_mesh(1, 2), pytest.raises(triton.KernelError) as failed:
        far_rank_kernel[(1,)](distributed.zeros(1), 200000, PAIR)
    assert "test_ranks.py" in str(failed.value)


@triton.jit
def hand_on(x_ptr, out_ptr, mesh: tl.constexpr, N: tl.constexpr, TURNS: tl.constexpr):
    next = (tle.shard_id(mesh, 0) + 1) % mesh.size
    at = tl.arange(0, N)
    for turn in range(TURNS):
        tl.store(tle.remote(out_ptr + turn * N + at, next, mesh), tl.load(x_ptr + turn * N + at))
        tle.signal(None, next, 3)


@triton.jit
def take_up(out_ptr, twice_ptr, N: tl.constexpr, TURNS: tl.constexpr):
    at = tl.arange(0, N)
    for turn in range(TURNS):
        tle.signal_wait(None, 3, target=turn + 1)
        tl.store(twice_ptr + turn * N + at, 2 * tl.load(out_ptr + turn * N + at))


@triton.jit
def roles_kernel(
    x_ptr, out_ptr, twice_ptr, mesh: tl.constexpr, N: tl.constexpr, TURNS: tl.constexpr, WAITS: tl.constexpr
):
    if WAITS == "default":
        tle.gpu.warp_specialize(
            [(take_up, (out_ptr, twice_ptr, N, TURNS)), (hand_on, (x_ptr, out_ptr, mesh, N, TURNS))],
            [4],
            [64],
        )
    else:
        tle.gpu.warp_specialize(
            [(hand_on, (x_ptr, out_ptr, mesh, N, TURNS)), (take_up, (out_ptr, twice_ptr, N, TURNS))],
            [4],
            [64],
        )


@pytest.mark.parametrize("waits", ["default", "worker"])
def test_signals_of_roles(device, waits):
    n, turns = 64, 5
    data = [np.arange(turns * n, dtype=np.float32) + 1000 * rank for rank in range(2)]
    with simulated_mesh(1, 2):
        x, out, twice = (
            distributed.from_parts(data),
            distributed.zeros(turns * n),
            distributed.zeros(turns * n),
        )
        roles_kernel[(1,)](x, out, twice, PAIR, n, turns, waits)
    for rank in range(2):
        np.testing.assert_array_equal(twice.parts[rank], 2 * data[1 - rank])


@triton.jit
def signal_kernel(slot, mesh: tl.constexpr):
    tle.distributed_barrier(mesh)
    tle.signal(None, tle.shard_id(mesh, 0), slot + tl.arange(0, 8))


def test_a_signal_that_there_is_not(device):
    with simulated_mesh(1, 2):
        signal_kernel[(1,)](8184, PAIR, debug=True)
        with pytest.raises(triton.KernelError, match="must be below 8192"):
            signal_kernel[(1,)](8190, PAIR, debug=True)


@triton.jit
def reach_kernel(x_ptr, member, mesh: tl.constexpr, WHAT: tl.constexpr):
    tle.distributed_barrier(mesh)
    if WHAT == "signal":
        tle.signal(None, member, 0)
    elif WHAT == "remote":
        tl.store(tle.remote(x_ptr + tle.shard_id(mesh, 0), member, mesh), 1.0)
    elif WHAT == "rank":
        tl.store(tle.remote(x_ptr + tle.shard_id(mesh, 0), member, space="device"), 1.0)
    else:
        tl.store(tle.remote(x_ptr + tle.shard_id(mesh, 0), (member,), mesh), 1.0)


@pytest.mark.parametrize("what", ["signal", "remote", "rank", "coordinate"])
def test_members_that_there_are_not(device, what):
    message = {"signal": "peer of tle.signal must be a rank", "rank": "shard_id of tle.remote must be a rank"}
    message = message.get(what, "shard_id of tle.remote must be below 2")
    with simulated_mesh(1, 2):
        x = distributed.zeros(2)
        reach_kernel[(1,)](x, 1, PAIR, what, debug=True)
        for member in (-1, 2):
            with pytest.raises(triton.KernelError, match=message):
                reach_kernel[(1,)](x, member, PAIR, what, debug=True)
