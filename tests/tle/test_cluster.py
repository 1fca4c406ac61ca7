"""Meshes with axes of clusters, and members that wait for each other: of a cluster, of a grid, of parts of either."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def place_kernel(out_ptr, mesh: tl.constexpr):
    number = tl.program_id(0) + tl.num_programs(0) * (
        tl.program_id(1) + tl.num_programs(1) * tl.program_id(2)
    )
    for d in tl.static_range(mesh.ndim):
        tl.store(out_ptr + number * mesh.ndim + d, tle.shard_id(mesh, d))


def programs(grid, dims):
    """Each program's number of its cluster and rank, in the order of numbers in the grid."""
    grid = (*grid, 1, 1)[:3]
    whole = [n * d for n, d in zip(grid, dims)]
    z, y, x = np.indices(whole[::-1])
    at = [(i.ravel() // d, i.ravel() % d) for i, d in zip((x, y, z), dims)]
    cluster = at[0][0] + grid[0] * (at[1][0] + grid[1] * at[2][0])
    return cluster, at[0][1] + dims[0] * (at[1][1] + dims[1] * at[2][1])


CLUSTERS = [
    ({"block_cluster": 2}, (2, 1, 1)),
    ({"block_cluster": [("a", 2), ("b", 2)]}, (2, 2, 1)),
    ({"block_cluster": [("a", 2), ("b", 1), ("c", 2)]}, (2, 1, 2)),
    ({"block_cluster": [("a", 1), ("b", 2), ("c", 2), ("d", 2)]}, (8, 1, 1)),
    ({"block": [("cluster_x", 3)]}, (3, 1, 1)),
    ({"block_cluster": 16}, (16, 1, 1)),
]


@pytest.mark.parametrize(("topology", "dims"), CLUSTERS, ids=str)
@pytest.mark.parametrize("grid", [(2,), (1, 3, 2)], ids=str)
def test_places_in_clusters(device, topology, dims, grid):
    mesh = tle.device_mesh(topology)
    _, rank = programs(grid, dims)
    out = device.empty((len(rank), mesh.ndim), np.int32)
    kernel = place_kernel[grid](out, mesh)
    np.testing.assert_array_equal(device.numpy(out), np.stack(np.unravel_index(rank, mesh.shape), 1))
    assert kernel.metadata.cluster_dims == dims


MIXED = tle.device_mesh({"block_cluster": [("a", 2), ("b", 2)], "block": [("row", 2), ("column", 3)]})


def test_blocks_number_clusters(device):
    grid = (4, 3)
    cluster, rank = programs(grid, (2, 2, 1))
    out = device.empty((len(rank), 4), np.int32)
    place_kernel[grid](out, MIXED)
    row, column = np.unravel_index(cluster % 6, (2, 3))
    a, b = np.unravel_index(rank, (2, 2))
    np.testing.assert_array_equal(device.numpy(out), np.stack([a, b, row, column], 1))


PARTS = [
    MIXED[1],
    MIXED[:, 0, :, 1:],
    MIXED[..., ::2],
    MIXED[:, ::-1, 1],
    MIXED.flatten(),
    MIXED.reshape(8, 3),
    MIXED[1].reshape(2, 2, 3),
    tle.device_mesh({"block": 12})[2:10:2],
    tle.device_mesh({"block": 12})[2:10].reshape(2, 4),
    tle.device_mesh({"block": 12}).reshape(3, 4)[1:, ::3],
]


@pytest.mark.parametrize("mesh", PARTS, ids=range(len(PARTS)))
def test_places_in_parts(device, mesh):
    dims = (2, 2, 1) if len(mesh.launch_shape) > 1 else (1, 1, 1)
    cluster, rank = programs((12,), dims)
    size = int(np.prod(dims))
    # The id of each program: its coordinates along the axes of the whole mesh.
    if size > 1:
        at = (*np.unravel_index(rank, (2, 2)), *np.unravel_index(cluster % 6, (2, 3)))
        ids = np.ravel_multi_index(at, mesh.launch_shape)
    else:
        ids = cluster
    out = device.empty((len(ids), mesh.ndim), np.int32)
    place_kernel[(12,)](out, mesh)
    out = device.numpy(out)
    for i, id in enumerate(ids):
        if id in mesh.physical_ids:
            want = np.unravel_index(mesh.physical_ids.index(id), mesh.shape)
            np.testing.assert_array_equal(out[i], want)


@triton.jit
def made_kernel(out_ptr, X: tl.constexpr):
    mesh: tl.constexpr = tle.device_mesh({"block_cluster": [("x", X), ("y", 2)]})
    other: tl.constexpr = tle.device_mesh(tle.MeshConfig(block=X * 2, block_cluster=[("x", X), ("y", 2)]))
    number = tl.program_id(0)
    row = tl.num_programs(0) * tl.program_id(1)
    tl.store(out_ptr + 3 * (row + number), tle.shard_id(mesh, "x"))
    tl.store(out_ptr + 3 * (row + number) + 1, tle.shard_id(mesh[:, 1:], 0))
    tl.store(out_ptr + 3 * (row + number) + 2, other.size)


@pytest.mark.parametrize("x", [2, 4])
def test_meshes_made_in_kernels(device, x):
    for _ in range(2):
        _, rank = programs((2,), (x, 2, 1))
        out = device.empty((len(rank), 3), np.int32)
        made_kernel[(2,)](out, x)
        out = device.numpy(out)
        np.testing.assert_array_equal(out[:, 0], rank // 2)
        np.testing.assert_array_equal(out[rank % 2 == 1, 1], rank[rank % 2 == 1] // 2)
        assert (out[:, 2] == 4 * x * x).all()


# Each member writes, all wait, and each reads what the one behind it has written; several times, so that a barrier that lets
# somebody go too early shows.
@triton.jit
def ring_kernel(seen_ptr, buffer_ptr, next_ptr, mesh: tl.constexpr, N: tl.constexpr, ROUNDS: tl.constexpr):
    number = tl.program_id(0) + tl.num_programs(0) * tl.program_id(1)
    at = tl.arange(0, N)
    behind = tl.load(next_ptr + number)
    for r in range(ROUNDS):
        if behind >= 0:
            tl.store(buffer_ptr + (number * ROUNDS + r) * N + at, at + 1000 * r + number)
        tle.distributed_barrier(mesh)
        if behind >= 0:
            x = tl.load(buffer_ptr + (behind * ROUNDS + r) * N + at)
            tl.store(seen_ptr + (number * ROUNDS + r) * N + at, x)


def ring(device, mesh, grid, groups, dims=(1, 1, 1), launches=1):
    """Runs it with groups of programs that wait for each other; all others are no members."""
    n, rounds, count = 64, 3, int(np.prod(grid)) * int(np.prod(dims))
    behind = np.full(count, -1, np.int32)
    for group in groups:
        behind[list(group)] = np.roll(group, -1)
    want = np.arange(n) + 1000 * np.arange(rounds)[:, None] + behind[:, None, None]
    want[behind < 0] = 0
    seen = device.array(np.zeros((count, rounds, n), np.int32))
    buffer = device.array(np.zeros((count, rounds, n), np.int32))
    for _ in range(launches):
        kernel = ring_kernel[grid](seen, buffer, device.array(behind), mesh, n, rounds)
        np.testing.assert_array_equal(device.numpy(seen), want)
    return kernel.metadata


CLUSTER = tle.device_mesh({"block_cluster": [("x", 2), ("y", 4)]})


@pytest.mark.parametrize(
    "mesh",
    [CLUSTER, CLUSTER.flatten(), CLUSTER[::-1], tle.device_mesh({"block": 1, "block_cluster": 8})],
    ids=range(4),
)
def test_a_cluster_waits(device, mesh):
    dims = (8, 1, 1) if mesh.launch_shape == (1, 8) else (2, 4, 1)
    cluster, _ = programs((3,), dims)
    launch = ring(device, mesh, (3,), [np.flatnonzero(cluster == c) for c in range(3)], dims)
    assert launch.cluster_dims == dims and not launch.cooperative


@pytest.mark.parametrize(
    "part",
    [CLUSTER[0], CLUSTER[:, 1:3], CLUSTER[1, 2], CLUSTER.flatten()[1::3], CLUSTER.reshape(4, 2)[1:, 1]],
    ids=range(5),
)
def test_parts_of_clusters_wait(device, part):
    cluster, rank = programs((3,), (2, 4, 1))
    members = np.isin(rank, part.physical_ids)
    groups = [np.flatnonzero(members & (cluster == c)) for c in range(3)]
    assert not ring(device, part, (3,), groups, (2, 4, 1), launches=2).cooperative


BLOCKS = tle.device_mesh({"block": [("row", 2), ("column", 3)]})


@pytest.mark.parametrize("grid", [(6,), (2, 3), (7, 2)], ids=str)
def test_a_grid_waits(device, grid):
    launch = ring(device, BLOCKS, grid, [range(int(np.prod(grid)))], launches=3)
    assert launch.cluster_dims == (1, 1, 1) and launch.cooperative


@pytest.mark.parametrize(
    "part", [BLOCKS[1], BLOCKS[:, 1], BLOCKS.flatten()[1:4], BLOCKS.reshape(3, 2)[::2]], ids=range(4)
)
@pytest.mark.parametrize("grid", [(6,), (4, 3), (9,), (5,)], ids=str)
def test_parts_of_grids_wait(device, part, grid):
    # Where the grid is larger than the mesh its programs are members again and again.
    number = np.arange(int(np.prod(grid))) % 6
    group = np.flatnonzero(np.isin(number, part.physical_ids))
    assert ring(device, part, grid, [group], launches=2).cooperative


@pytest.mark.parametrize("part", [np.s_[...], np.s_[0, 1], np.s_[:, :, 1], np.s_[1, :, :, 1:]], ids=str)
def test_clusters_of_a_grid_wait(device, part):
    part = MIXED[part]
    cluster, rank = programs((6,), (2, 2, 1))
    ids = np.ravel_multi_index(
        (*np.unravel_index(rank, (2, 2)), *np.unravel_index(cluster, (2, 3))), (2, 2, 2, 3)
    )
    group = np.flatnonzero(np.isin(ids, part.physical_ids))
    launch = ring(device, part, (6,), [group], (2, 2, 1))
    assert launch.cluster_dims == (2, 2, 1) and launch.cooperative


@triton.jit
def wait_in_place(mesh: tl.constexpr):
    tle.distributed_barrier(mesh)


@triton.jit(noinline=True)
def wait_elsewhere(mesh: tl.constexpr):
    tle.distributed_barrier(mesh)


@triton.jit
def several_kernel(out_ptr, memory_ptr, cluster: tl.constexpr, blocks: tl.constexpr):
    # Sums of what all have, and of what the even ones of a cluster have; places of the barriers differ.
    number = tl.program_id(0)
    rank = tle.shard_id(cluster, 0)
    tl.atomic_add(memory_ptr, number)
    if number % 2 == 0:
        wait_in_place(blocks)
    else:
        wait_elsewhere(blocks)
    tl.store(out_ptr + 3 * number, tl.load(memory_ptr))
    mine = memory_ptr + 1 + number // 4
    even: tl.constexpr = cluster[::2]
    if rank % 2 == 0:
        tl.atomic_add(mine, number)
        tle.distributed_barrier(even)
        tl.store(out_ptr + 3 * number + 1, tl.load(mine))
    tle.distributed_barrier()
    tl.atomic_max(mine, 1000 + number)
    tle.distributed_barrier()
    tl.store(out_ptr + 3 * number + 2, tl.load(mine))


@pytest.mark.parametrize("warps", [1, 4])
def test_several_meshes_in_one_kernel(device, warps):
    out, memory = device.array(np.zeros((8, 3), np.int32)), device.array(np.zeros(3, np.int32))
    cluster, blocks = tle.device_mesh({"block_cluster": 4}), tle.device_mesh({"block": 8})
    several_kernel[(2,)](out, memory, cluster, blocks, num_warps=warps)
    number = np.arange(8)
    want = np.stack(
        [0 * number + 28, np.where(number < 4, 2, 10) * (number % 2 == 0), 1003 + number // 4 * 4], 1
    )
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def blocks_kernel(
    x_ptr, y_ptr, out_ptr, N: tl.constexpr, mesh: tl.constexpr, STORE: tl.constexpr, LOAD: tl.constexpr
):
    member = tl.program_id(0)
    behind = (member + 1) % mesh.size
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    y = tl.make_tensor_descriptor(y_ptr, [mesh.size * N, N], [N, 1], [N, N])
    for r in range(2):
        value = tl.load(x_ptr + member * N * N + at) * (r + 2)
        if STORE:
            y.store([member * N, 0], value)
        else:
            tl.store(y_ptr + member * N * N + at, value)
        tle.distributed_barrier(mesh)
        if LOAD:
            value = y.load([behind * N, 0])
        else:
            value = tl.load(y_ptr + behind * N * N + at)
        tl.store(out_ptr + (r * mesh.size + member) * N * N + at, value)
        tle.distributed_barrier(mesh)


@pytest.mark.parametrize("level", ["block", "block_cluster"])
@pytest.mark.parametrize(("store", "load"), [(True, False), (False, True), (True, True)])
def test_blocks_that_are_copied(device, level, store, load):
    x = np.arange(4 * 32 * 32, dtype=np.float32).reshape(4, 32, 32)
    y, out = device.empty((4, 32, 32), np.float32), device.empty((2, 4, 32, 32), np.float32)
    mesh = tle.device_mesh({level: 4})
    blocks_kernel[(4 if level == "block" else 1,)](device.array(x), y, out, 32, mesh, store, load)
    want = np.roll(x, -1, 0)
    np.testing.assert_array_equal(device.numpy(out), [2 * want, 3 * want])


@triton.jit
def deadlock_kernel(x_ptr, mesh: tl.constexpr, CASE: tl.constexpr):
    number = tl.program_id(0)
    if CASE == "ended":
        if number != 1:
            tle.distributed_barrier(mesh)
    else:
        part: tl.constexpr = mesh[:2]
        if number < 1:
            tle.distributed_barrier(mesh)
        else:
            tle.distributed_barrier(part)
    tl.store(x_ptr, 1)


@pytest.mark.parametrize(
    ("mesh", "case", "messages"),
    [
        (
            tle.device_mesh({"block": 3}),
            "ended",
            ["2 of 3 programs have come", "program (1, 0, 0) has ended"],
        ),
        (
            tle.device_mesh({"block_cluster": 3}),
            "ended",
            ["2 of 3 programs have come", "program (2, 0, 0) waits"],
        ),
        (
            tle.device_mesh({"block_cluster": 3}),
            "elsewhere",
            ["1 of 3 programs have come", "program (1, 0, 0) waits at"],
        ),
    ],
    ids=range(3),
)
def test_deadlocks_are_errors(mesh, case, messages, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    grid = (1,) if "block_cluster" in mesh.dim_names else (3,)
    with pytest.raises(triton.KernelError) as caught:
        deadlock_kernel[grid](np.zeros(1, np.int32), mesh, case)
    text = str(caught.value)
    assert "deadlock" in text and "in program (0, 0, 0)" in text and "^" in text
    assert all(message in text for message in messages), text


def test_deadlocks_of_grids_are_found_in_the_simulator(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    with pytest.raises(triton.KernelError, match="deadlock"):
        deadlock_kernel[(3,)](np.zeros(1, np.int32), tle.device_mesh({"block": 3}), "ended")


@triton.jit
def barrier_kernel(mesh: tl.constexpr):
    tle.distributed_barrier(mesh)


@triton.jit
def order_kernel(mesh: tl.constexpr):
    tle.distributed_barrier(mesh, order="relaxed")


@triton.jit
def conflict_kernel(mesh: tl.constexpr):
    tle.distributed_barrier(mesh)
    other: tl.constexpr = tle.device_mesh({"block_cluster": 4})
    tle.distributed_barrier(other)


@triton.jit
def level_kernel(mesh: tl.constexpr):
    other: tl.constexpr = tle.device_mesh({"blocks": 4})


@pytest.mark.parametrize(
    ("kernel", "mesh", "options", "messages"),
    [
        (barrier_kernel, None, {}, ["this kernel's form none", "block_cluster"]),
        (barrier_kernel, 3, {}, ["`mesh` of tle.distributed_barrier must be a device_mesh"]),
        (barrier_kernel, CLUSTER, {"num_ctas": 2}, ["clusters of 8 programs, with num_ctas=2"]),
        (barrier_kernel, BLOCKS, {"num_ctas": 2}, ["wait for each other, with num_ctas=2"]),
        (
            barrier_kernel,
            tle.device_mesh({"block_cluster": 32}),
            {},
            ["clusters of 32 programs", "16 at most"],
        ),
        (
            barrier_kernel,
            tle.device_mesh({"chiplet": 2, "block": 2}),
            {},
            ["not supported yet", "level `chiplet`"],
        ),
        (conflict_kernel, CLUSTER, {}, ["[4, 1, 1]", "[2, 4, 1]", "clusters of one shape"]),
        (order_kernel, CLUSTER[0], {}, ["not supported yet: a relaxed tle.distributed_barrier"]),
        (level_kernel, CLUSTER, {}, ["a mesh has no level 'blocks'"]),
    ],
    ids=range(9),
)
def test_errors(kernel, mesh, options, messages, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.CompilationError) as caught:
        kernel[(8,)](mesh, **options)
    assert "^" in str(caught.value) and all(message in str(caught.value) for message in messages), str(
        caught.value
    )


@pytest.mark.parametrize("arch", ["cuda:80", "cuda:89"])
def test_targets_without_clusters(arch, monkeypatch):
    with pytest.raises(triton.CompilationError, match="has no clusters of CTAs"):
        barrier_kernel.warmup(CLUSTER, grid=(1,), target=arch)
    assert "atom.acq_rel.gpu" in barrier_kernel.warmup(BLOCKS, grid=(1,), target=arch).asm["ptx"]
