"""`tle.distributed_barrier` and `tle.reshard` in functions of `tle.gpu.warp_specialize`: partitions of one number wait for each other."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import distributed, tle
from tilewright.testing import simulated_mesh

N = 32


@triton.jit
def turns(x_ptr, mesh: tl.constexpr, n, N: tl.constexpr):
    """Each program hands a row on to its neighbour, ``n`` times; there are two places for a row of each."""
    me, size, at = tl.program_id(0), tl.num_programs(0), tl.arange(0, N)
    row = at + me * N
    for i in range(n):
        to = x_ptr + i % 2 * size * N
        tl.store(to + me * N + at, row)
        tle.distributed_barrier(mesh)
        row = tl.load(to + (me + 1) % size * N + at) + 1
    tl.store(x_ptr + (2 * size + me) * N + at, row)


@triton.jit
def several(x_ptr, y_ptr, z_ptr, mesh: tl.constexpr, N: tl.constexpr):
    turns(z_ptr, mesh, 2, N)
    tle.gpu.warp_specialize([(turns, (x_ptr, mesh, 5, N)), (turns, (y_ptr, mesh, 3, N))], [4], [40])
    turns(z_ptr, mesh, 2, N)


def handed_on(n, size):
    rows = np.arange(size * N).reshape(size, N)
    for _ in range(n):
        rows = np.roll(rows, -1, 0) + 1
    return rows


@pytest.mark.parametrize(
    ("topology", "grid"),
    [({"block": 4}, 4), ({"block_cluster": 4}, 1), ({"block_cluster": 2, "block": 2}, 2)],
)
def test_programs(device, topology, grid):
    x, y, z = (device.array(np.zeros((3, 4, N), np.int32)) for _ in range(3))
    several[(grid,)](x, y, z, tle.device_mesh(topology), N)
    for of, n in ((x, 5), (y, 3), (z, 2)):
        np.testing.assert_array_equal(device.numpy(of)[2], handed_on(n, 4))


@triton.jit
def turns_of_ranks(x_ptr, mesh: tl.constexpr, n, N: tl.constexpr):
    """The same between ranks, by the programs of each number."""
    me, program, at = tle.shard_id(mesh, 0), tl.program_id(0), tl.arange(0, N)
    row = at + me * N
    for i in range(n):
        to = x_ptr + (i % 2 * tl.num_programs(0) + program) * N + at
        tl.store(to, row)
        tle.distributed_barrier(mesh)
        row = tl.load(tle.remote(to, (me + 1) % mesh.shape[0], space="device")) + 1
    tl.store(x_ptr + (2 * tl.num_programs(0) + program) * N + at, row)


@triton.jit
def several_ranks(x_ptr, y_ptr, mesh: tl.constexpr, N: tl.constexpr):
    tle.gpu.warp_specialize(
        [(turns_of_ranks, (x_ptr, mesh, 5, N)), (turns_of_ranks, (y_ptr, mesh, 3, N))], [4], [40]
    )


@pytest.mark.parametrize("device", ["interp", "ptxsim"], indirect=True)
@pytest.mark.parametrize(
    ("topology", "ranks", "programs"), [({"device": 4}, 4, 1), ({"device": 2, "block": 2}, 2, 2)]
)
def test_ranks(device, topology, ranks, programs):
    with simulated_mesh(1, ranks):
        x, y = (distributed.zeros((3, programs, N), np.int32) for _ in range(2))
        several_ranks[(programs,)](x, y, tle.device_mesh(topology), N)
    for of, n in ((x, 5), (y, 3)):
        for program in range(programs):
            rows = np.stack([part[2, program] for part in of.parts])
            np.testing.assert_array_equal(rows, handed_on(n, ranks))


@triton.jit
def moves(x_ptr, out_ptr, source: tl.constexpr, to: tl.constexpr, N: tl.constexpr):
    whole = tle.reshard(tle.make_sharded_tensor(x_ptr, source, [N]) * 2, to)
    tl.store(out_ptr + tl.arange(0, N), tl.load(whole))


@triton.jit
def counts(count_ptr, n):
    for i in range(n):
        tl.store(count_ptr, i + 1)


@triton.jit
def moves_in_role(x_ptr, out_ptr, count_ptr, source: tl.constexpr, to: tl.constexpr, N: tl.constexpr, FIRST: tl.constexpr):  # fmt: skip
    if FIRST:
        tle.gpu.warp_specialize(
            [(moves, (x_ptr, out_ptr, source, to, N)), (counts, (count_ptr, 9))], [4], [40]
        )
    else:
        tle.gpu.warp_specialize(
            [(counts, (count_ptr, 9)), (moves, (x_ptr, out_ptr, source, to, N))], [4], [40]
        )


@pytest.mark.parametrize("device", ["interp", "ptxsim"], indirect=True)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("size", [256, 8192])
@pytest.mark.parametrize("how", [{"split": ["device"]}, {"partial": ["device"]}])
def test_moves(device, how, size, first):
    mesh = tle.device_mesh({"device": 4})
    source = tle.sharding(mesh, **how)
    parts = [np.arange(source.local_shape((size,))[0], dtype=np.float32) + rank for rank in range(4)]
    with simulated_mesh(1, 4):
        out, count = distributed.zeros(size), distributed.zeros(1, np.int32)
        x = distributed.from_parts(parts)
        moves_in_role[(1,)](x, out, count, source, tle.sharding(mesh), size, first)
    want = 2 * (sum(parts) if source.partial else np.concatenate(parts))
    for part, counted in zip(out.parts, count.parts):
        np.testing.assert_array_equal(part, want)
        assert counted[0] == 9


@triton.jit
def move_in_both(x_ptr, out_ptr, source: tl.constexpr, to: tl.constexpr, N: tl.constexpr):
    tle.gpu.warp_specialize(
        [(moves, (x_ptr, out_ptr, source, to, N)), (moves, (x_ptr, out_ptr + N, source, to, N))], [4], [40]
    )


@pytest.mark.parametrize("device", ["interp", "ptxsim"], indirect=True)
def test_one_function_moves(device):
    mesh = tle.device_mesh({"device": 2})
    with (
        simulated_mesh(1, 2),
        pytest.raises(triton.CompilationError, match="in several functions of") as failed,
    ):
        x, out = distributed.zeros(128), distributed.zeros(512)
        move_in_both[(1,)](x, out, tle.sharding(mesh, ["device"]), tle.sharding(mesh), 256)
    assert "test_partition_barriers.py" in str(failed.value)


@triton.jit
def spins(x_ptr, peer, n):
    i = 0
    while i < n:
        tl.atomic_add(x_ptr, 1)
        i += 1
    tle.signal(None, peer, 0)


@triton.jit
def waits(out_ptr):
    tle.signal_wait(None, 0, target=1)
    tl.store(out_ptr, 1)


@triton.jit
def spins_and_waits(x_ptr, out_ptr, mesh: tl.constexpr, n):
    peer = 1 - tle.shard_id(mesh, 0)
    tle.gpu.warp_specialize([(spins, (x_ptr, peer, n)), (waits, (out_ptr,))], [4], [40])


@pytest.mark.parametrize("device", ["interp", "ptxsim"], indirect=True)
def test_a_partition_that_works_is_no_deadlock(device):
    """What one partition waits for, another one of the other rank does much later: nobody waits in vain."""
    with simulated_mesh(1, 2):
        x, out = distributed.zeros(1, np.int32), distributed.zeros(1, np.int32)
        spins_and_waits[(1,)](x, out, tle.device_mesh({"device": 2}), 200)
    assert [int(part[0]) for part in out.parts] == [1, 1] and [int(part[0]) for part in x.parts] == [200, 200]


@triton.jit
def never(out_ptr, slot):
    tle.signal_wait(None, slot, target=1)
    tl.store(out_ptr + slot, 1)


@triton.jit
def waits_in_vain(out_ptr, mesh: tl.constexpr):
    tle.gpu.warp_specialize([(never, (out_ptr, 0)), (never, (out_ptr, 1))], [4], [40])


def test_all_partitions_wait():
    with (
        simulated_mesh(1, 2),
        pytest.raises(triton.KernelError, match="deadlock: the program waits") as failed,
    ):
        waits_in_vain[(1,)](distributed.zeros(2, np.int32), tle.device_mesh({"device": 2}))
    assert "tle.signal_wait(None, slot" in str(failed.value)
