"""Tensors that are distributed over the programs of a cluster: transitions through its shared memory, and products."""

import itertools

import numpy as np
import pytest
from test_sharded import array, flat, parts_of, whole_of

import tilewright as triton
import tilewright.language as tl
from tilewright import tle

PAIR = tle.device_mesh({"block_cluster": 2})
GRID = tle.device_mesh({"block_cluster": [("x", 2), ("y", 2)]})

STATES = {
    "B": {},
    "S0": {"split": ["x"]},
    "S1": {"split": [None, "x"]},
    "S0 both": {"split": [["x", "y"]]},
    "S mixed": {"split": ["x", "y"]},
    "P": {"partial": ["y"]},
    "P and S": {"split": ["x"], "partial": ["y"]},
}


@triton.jit
def reshard_kernel(
    x_ptr,
    out_ptr,
    source: tl.constexpr,
    to: tl.constexpr,
    shape: tl.constexpr,
    IN_SIZE: tl.constexpr,
    OUT_SIZE: tl.constexpr,
):
    rank = 0
    for d in tl.static_range(source.mesh.ndim):
        rank = rank * source.mesh.shape[d] + tle.shard_id(source.mesh, d)
    x = tle.make_sharded_tensor(x_ptr + rank * IN_SIZE, sharding=source, shape=shape)
    part = tl.load(tle.reshard(x, spec=to))
    tl.store(out_ptr + rank * OUT_SIZE + flat(part.shape), part)


def check(device, source, to, shape, dtype=np.float32):
    x = array(shape, dtype)
    parts = np.stack(parts_of(x, source))
    local = to.local_shape(shape)
    out = device.array(np.zeros((source.mesh.size, *local), dtype))
    reshard_kernel[(1,)](device.array(parts), out, source, to, shape, parts[0].size, int(np.prod(local)))
    np.testing.assert_array_equal(whole_of(list(device.numpy(out)), to, shape), x)


@pytest.mark.parametrize("source", STATES)
def test_every_transition(device, source):
    specs = {name: tle.sharding(GRID, **{k: list(v) for k, v in how.items()}) for name, how in STATES.items()}
    for to in STATES:
        a, b = specs[source], specs[to]
        if all(b.axis_state(axis) != "P" or a.axis_state(axis) == "P" for axis in GRID.dim_names):
            check(device, a, b, (16, 24))


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.int64])
def test_dtypes(device, dtype):
    for source, to in ((["block_cluster"], []), ([], ["block_cluster"])):
        check(device, tle.sharding(PAIR, source), tle.sharding(PAIR, to), (8, 16), dtype)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 2), (2, 1)])
def test_axes_of_one_member(device, sizes):
    """A kernel whose cluster is a parameter may have one program alone: nothing goes to others then."""
    mesh = tle.device_mesh({"block_cluster": list(zip("xy", sizes))})
    specs = [tle.sharding(mesh, **{k: list(v) for k, v in how.items()}) for how in STATES.values()]
    for a, b in itertools.product(specs, specs):
        if all(b.axis_state(axis) != "P" or a.axis_state(axis) == "P" for axis in mesh.dim_names):
            check(device, a, b, (16, 24))


@triton.jit
def dot_kernel(
    a_ptr, b_ptr, out_ptr,
    a_how: tl.constexpr, b_how: tl.constexpr, to: tl.constexpr, a_shape: tl.constexpr, b_shape: tl.constexpr,
    A_SIZE: tl.constexpr, B_SIZE: tl.constexpr, OUT_SIZE: tl.constexpr,
):  # fmt: skip
    rank = tl.program_id(0)
    a = tle.make_sharded_tensor(a_ptr + rank * A_SIZE, a_how, a_shape)
    b = tle.make_sharded_tensor(b_ptr + rank * B_SIZE, b_how, b_shape)
    part = tl.load(tle.reshard(tle.distributed_dot(a, b), to))
    tl.store(out_ptr + rank * OUT_SIZE + flat(part.shape), part)


SPLITS = ([], ["block_cluster"], [None, "block_cluster"])


@pytest.mark.parametrize(("a_split", "b_split"), list(itertools.product(SPLITS, SPLITS)))
def test_distributed_dot(device, a_split, b_split):
    a_how, b_how = tle.sharding(PAIR, a_split), tle.sharding(PAIR, b_split)
    shapes = (32, 64), (64, 32)
    a, b = (array(shape, np.float16, seed) for seed, shape in enumerate(shapes))
    for to in (tle.sharding(PAIR), tle.sharding(PAIR, ["block_cluster"])):
        local = to.local_shape((32, 32))
        parts = [np.stack(parts_of(x, how)) for x, how in ((a, a_how), (b, b_how))]
        out = device.array(np.zeros((2, *local), np.float32))
        sizes = (*(p[0].size for p in parts), int(np.prod(local)))
        dot_kernel[(1,)](*map(device.array, parts), out, a_how, b_how, to, *shapes, *sizes)
        want = a.astype(np.float32) @ b.astype(np.float32)
        np.testing.assert_array_equal(whole_of(list(device.numpy(out)), to, (32, 32)), want)


@triton.jit
def shared_kernel(
    a_ptr, b_ptr, out_ptr,
    a_how: tl.constexpr, b_how: tl.constexpr, to: tl.constexpr, a_shape: tl.constexpr, b_shape: tl.constexpr,
    A_SIZE: tl.constexpr, B_SIZE: tl.constexpr, OUT_SIZE: tl.constexpr, MULTICAST: tl.constexpr,
):  # fmt: skip
    rank = 0
    for d in tl.static_range(to.mesh.ndim):
        rank = rank * to.mesh.shape[d] + tle.shard_id(to.mesh, d)
    a = tle.make_sharded_tensor(a_ptr + rank * A_SIZE, a_how, a_shape)
    b = tle.make_sharded_tensor(b_ptr + rank * B_SIZE, b_how, b_shape)
    product = tle.distributed_dot(a, b, multicast=MULTICAST)
    # What is in the buffers of the one has been read before those of the other are filled.
    product = tle.distributed_dot(a, b, product, multicast=MULTICAST)
    part = tl.load(tle.reshard(product, to))
    tl.store(out_ptr + rank * OUT_SIZE + flat(part.shape), part)


FOUR = tle.device_mesh({"block_cluster": 4})


@pytest.mark.parametrize(
    ("mesh", "a_split", "b_split", "copies"),
    [
        (PAIR, ["block_cluster"], [], 1),
        (PAIR, [], [None, "block_cluster"], 1),
        (PAIR, [], [], 2),
        (FOUR, ["block_cluster"], [], 1),
        (GRID, ["x"], [None, "y"], 2),
        (GRID, [None, "x"], ["x"], 2),
        # One is gathered beside it.
        (GRID, ["x"], [None, "x"], 1),
    ],
)
def test_operands_that_are_fetched_together(device, mesh, a_split, b_split, copies):
    a_how, b_how = tle.sharding(mesh, a_split), tle.sharding(mesh, b_split)
    shapes = (64, 128), (128, 64)
    a, b = (array(shape, np.float16, seed) for seed, shape in enumerate(shapes))
    to = tle.sharding(mesh)
    parts = [np.stack(parts_of(x, how)) for x, how in ((a, a_how), (b, b_how))]
    want = 2 * (a.astype(np.float32) @ b.astype(np.float32))
    for multicast in (False, True):
        out = device.array(np.zeros((mesh.size, 64, 64), np.float32))
        sizes = (*(p[0].size for p in parts), 64 * 64)
        given = map(device.array, parts)
        kernel = shared_kernel[(1,)](*given, out, a_how, b_how, to, *shapes, *sizes, multicast)
        np.testing.assert_array_equal(whole_of(list(device.numpy(out)), to, (64, 64)), want)
        if device.backend == "ptxsim":
            found = kernel.asm["ttgir"].count("ttg.multicast") if "ttgir" in kernel.asm else None
            assert found in (None, 2 * copies * multicast)
            assert ("multicast::cluster" in kernel.asm["ptx"]) == multicast


@pytest.mark.parametrize(
    ("a_split", "b_split", "shape", "message"),
    [
        (["block_cluster"], [None, "block_cluster"], (64, 64), "no operand lies in memory and is whole"),
        (["block_cluster"], [], (10, 10), "no copies bring `expect_bytes` = 200 bytes"),
    ],
)
def test_what_cannot_be_fetched_together(a_split, b_split, shape, message):
    a_how, b_how = tle.sharding(PAIR, a_split), tle.sharding(PAIR, b_split)
    x = np.zeros(shape, np.float16)
    with pytest.raises(triton.CompilationError, match=message):
        shared_kernel.warmup(
            x,
            x,
            x,
            a_how,
            b_how,
            tle.sharding(PAIR),
            shape,
            shape,
            1,
            1,
            1,
            True,
            grid=(1,),
            target="cuda:90",
        )


@triton.jit
def refused_kernel(x_ptr, how: tl.constexpr, to: tl.constexpr, INTO: tl.constexpr):
    x = tle.make_sharded_tensor(x_ptr, how, (8, 8))
    if INTO:
        tle.reshard(x, to, out=x_ptr)
    else:
        tle.reshard(x, to)


@pytest.mark.parametrize(
    ("mesh", "into", "message"),
    [
        (PAIR, True, "is for tensors over nodes and devices"),
        (GRID[0], False, "not supported yet: tensors moved over a part of a mesh of programs"),
        (
            tle.device_mesh({"block": 2}),
            False,
            "not supported yet: tensors moved between programs that are no cluster",
        ),
    ],
)
def test_what_is_refused(mesh, into, message):
    with pytest.raises(triton.CompilationError, match=message) as failed:
        how = tle.sharding(mesh, [mesh.dim_names[0]])
        refused_kernel[(1,)](np.zeros((8, 8), np.float32), how, tle.sharding(mesh), into)
    assert "test_sharded_cluster.py" in str(failed.value)
