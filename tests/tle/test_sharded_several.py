"""Tensors that are distributed over devices and the programs of each: parts are moved along axes of one kind, all others stay."""

import numpy as np
import pytest
from test_sharded import array, flat, parts_of, whole_of

import tilewright as triton
import tilewright.language as tl
from tilewright import distributed, tle
from tilewright.testing import simulated_mesh

MESH = tle.device_mesh({"device": 2, "block_cluster": 2, "block": 2})
pytestmark = pytest.mark.parametrize("device", ["interp", "ptxsim"], indirect=True)


@triton.jit
def number_of_program(mesh: tl.constexpr):
    """Of a program among those of its rank, row-major over the axes of a mesh."""
    number = 0
    for d in tl.static_range(mesh.ndim):
        if mesh.dim_levels[d] == "block" or mesh.dim_levels[d] == "block_cluster":
            number = number * mesh.shape[d] + tle.shard_id(mesh, d)
    return number


@triton.jit
def reshard_kernel(
    x_ptr, out_ptr, specs: tl.constexpr, shape: tl.constexpr, IN_SIZE: tl.constexpr, OUT_SIZE: tl.constexpr, AS_VALUE: tl.constexpr,
):  # fmt: skip
    source: tl.constexpr = specs[0]
    program = number_of_program(source.mesh)
    x = tle.make_sharded_tensor(x_ptr + program * IN_SIZE, source, shape)
    if AS_VALUE:
        x = tle.make_sharded_tensor(tl.load(x), source)
    for to in tl.static_range(1, len(specs)):
        x = tle.reshard(x, specs[to])
    part = tl.load(x)
    tl.store(out_ptr + program * OUT_SIZE + flat(part.shape), part)


def check(specs, shape, as_value):
    mesh = specs[0].mesh
    ranks = int(np.prod([n for n, level in zip(mesh.shape, mesh.dim_levels) if level in ("node", "device")]))
    programs = mesh.size // ranks
    clusters = int(np.prod([n for n, level in zip(mesh.shape, mesh.dim_levels) if level == "block_cluster"]))
    x = array(shape)
    parts = np.stack(parts_of(x, specs[0])).reshape(ranks, programs, -1)
    local = specs[-1].local_shape(shape)
    with simulated_mesh(1, ranks):
        data, out = distributed.from_parts(list(parts)), distributed.zeros((programs, *local))
        args = (specs, shape, parts.shape[2], int(np.prod(local)), as_value)
        reshard_kernel[(programs // clusters,)](data, out, *args)
    got = [part for of_rank in out.parts for part in of_rank]
    np.testing.assert_array_equal(whole_of(got, specs[-1], shape), x)


def spec(split=(), partial=(), mesh=MESH):
    return tle.sharding(mesh, split=list(split), partial=list(partial))


D, C, B = "device", "block_cluster", "block"


@pytest.mark.parametrize("as_value", [False, True])
@pytest.mark.parametrize(
    "specs",
    [
        (spec([[B, D]]), spec([B])),
        (spec([B, D]), spec([[B, D]])),
        (spec([C], [D]), spec([C])),
        (spec([[B, C], D]), spec([B, D])),
        (spec([B], [C, D]), spec([[B, D]], [C]), spec([[B, D], C])),
        (spec([D]), spec([[D, B]]), spec([[D, B], C])),
        (spec([None, C], [B]), spec([D, C], [B])),
    ],
)
def test_transitions(device, specs, as_value):
    check(specs, (16, 8), as_value)


def test_what_stays_as_it_is(device):
    mesh = tle.device_mesh({C: 2, B: 2})
    how = tle.sharding(mesh, split=[[C]])
    check((how, how), (16, 8), True)


def test_the_example_of_the_document(device):
    devices, blocks = (4, 4) if device.backend == "interp" else (2, 1)
    mesh = tle.device_mesh(
        {
            "node": [("node_x", 2), ("node_y", 2)],
            "device": devices,
            "block_cluster": [("cluster_x", 2), ("cluster_y", 2)],
            "block": blocks,
        }
    )
    x_shard = tle.sharding(mesh, split=[["cluster_x", "cluster_y"], "device"], partial=["block"])
    gathered = tle.sharding(mesh, split=[["cluster_x", "cluster_y"]], partial=["block"])
    check((x_shard, gathered), (4, 4), False)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ((spec([D, C]), spec()), "along axes of several kinds at once"),
        (
            (spec([[D, B]]), spec([B])),
            "axes of other kinds must come before those that change, in dimension 0",
        ),
        ((spec([B]), spec()), "between programs that are no cluster"),
        ((spec([D]), spec(partial=[D])), "cannot become a partial sum"),
        ((spec([D]), spec(mesh=tle.device_mesh({"device": 2}))), "tle.reshard between meshes"),
        ((spec(mesh=MESH[:, :1]), spec([D], mesh=MESH[:, :1])), "a part of a mesh of several kinds"),
    ],
)
def test_what_is_refused(device, specs, message):
    with pytest.raises(triton.CompilationError, match=message) as failed:
        check(specs, (16, 8), False)
    assert "test_sharded_several.py" in str(failed.value)


@triton.jit
def remote_kernel(x_ptr, how: tl.constexpr):
    x = tle.make_sharded_tensor(x_ptr, how, (16, 8))
    tl.store(x_ptr, tl.sum(tl.load(tle.remote(x, 1, space="device"))))


def test_parts_of_others_are_refused(device):
    with simulated_mesh(1, 2), pytest.raises(triton.CompilationError, match="sharded over programs, too"):
        remote_kernel[(2,)](distributed.zeros(32), spec([B, D]))


def test_the_host_wants_ranks(device):
    with simulated_mesh(2, 4), pytest.raises(ValueError, match="other members than nodes and devices"):
        distributed.reshard(distributed.zeros((4, 4)), spec([D]), spec())
