"""`device_mesh`: shapes, names, parts, other shapes, on the host and in kernels; `shard_id` of a mesh of blocks."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle

TOPOLOGY = {
    "node": [("node_x", 2), ("node_y", 2)],
    "device": 4,
    "block_cluster": [("cluster_x", 2), ("cluster_y", 2)],
    "block": 4,
}
NAMES = ("node_x", "node_y", "device", "cluster_x", "cluster_y", "block")


def test_shape_and_names():
    mesh = tle.device_mesh(topology=TOPOLOGY)
    assert (mesh.shape, mesh.ndim, mesh.size) == ((2, 2, 4, 2, 2, 4), 6, 256)
    assert mesh.dim_names == NAMES == mesh.launch_dim_names
    assert mesh.launch_shape == mesh.shape
    assert mesh.physical_ids == tuple(range(256))
    assert repr(mesh) == f"DeviceMesh(shape=(2, 2, 4, 2, 2, 4), names={NAMES})"
    same = tle.MeshConfig(node=TOPOLOGY["node"], device=4, block_cluster=TOPOLOGY["block_cluster"], block=4)
    assert tle.device_mesh(same) == mesh and hash(tle.device_mesh(same)) == hash(mesh)
    assert tle.device_mesh({"block": 4}) != tle.device_mesh({"device": 4})


INDICES = [
    np.s_[0],
    np.s_[-1],
    np.s_[1, :, 2],
    np.s_[..., 3],
    np.s_[1, ..., 0],
    np.s_[:, 1, 1:3, 0],
    np.s_[::-1, :, ::2],
    np.s_[0, 1, 2, 1, 0, 3],
    np.s_[...],
    np.s_[np.int64(1)],
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_parts_have_the_ids_that_numpy_selects(index):
    mesh = tle.device_mesh(TOPOLOGY)
    ids = np.arange(256).reshape(mesh.shape)
    part, want = mesh[index], np.asarray(ids[index])
    assert part.shape == want.shape and part.physical_ids == tuple(want.ravel())
    assert part.launch_shape == mesh.shape and part.launch_dim_names == NAMES
    keys = index if isinstance(index, tuple) else (index,)
    at = next((i for i, k in enumerate(keys) if k is ...), len(keys))
    full = (*keys[:at], *[slice(None)] * (6 - sum(k is not ... for k in keys)), *keys[at + 1 :])
    assert part.dim_names == tuple(n for n, k in zip(NAMES, full) if isinstance(k, slice))


def test_parts_of_parts_and_other_shapes():
    mesh = tle.device_mesh({"block_cluster": [("x", 2), ("y", 4)]})
    part = mesh[:, 1:3]
    assert part[1].physical_ids == (5, 6) and part[1].dim_names == ("y",)
    flat = part.flatten()
    assert (flat.shape, flat.physical_ids, flat.ndim) == ((4,), (1, 2, 5, 6), 1)
    assert mesh.reshape(4, 2) == mesh.reshape((4, 2))
    assert mesh.reshape(4, 2)[3].physical_ids == (6, 7)
    assert mesh.reshape(2, 4) == mesh
    assert mesh[1, 1].reshape(1, 1).physical_ids == (5,)
    assert mesh.flatten().launch_shape == (2, 4)


@pytest.mark.parametrize(
    ("topology", "kind", "message"),
    [
        ([("block", 2)], TypeError, "a dict or a MeshConfig"),
        ({}, ValueError, "is empty"),
        (tle.MeshConfig(), ValueError, "is empty"),
        ({"block": []}, ValueError, "'block' of a mesh has no axes"),
        ({"blocks": 2}, ValueError, "no level 'blocks'"),
        ({"block": "2"}, TypeError, "must be an int, not '2'"),
        ({"block": True}, TypeError, "must be an int, not True"),
        ({"block": [("x", 2.0)]}, TypeError, "must be an int, not 2.0"),
        ({"block": 0}, ValueError, "must be positive, not 0"),
        ({"block": [("x", -1)]}, ValueError, "must be positive, not -1"),
        ({"block": ["x"]}, ValueError, r"must be \(name, size\)"),
        ({"block": [("x", 1, 2)]}, ValueError, r"must be \(name, size\)"),
        ({"block": [(1, 2)]}, ValueError, r"must be \(name, size\)"),
        ({"block": [("x", 1)], "device": [("x", 1)]}, ValueError, "two axes of a mesh are named 'x'"),
    ],
)
def test_wrong_topologies(topology, kind, message):
    with pytest.raises(kind, match=message):
        tle.device_mesh(topology)


@pytest.mark.parametrize(
    ("use", "kind", "message"),
    [
        (lambda m: m[2], IndexError, "out of range for axis 'x' of size 2"),
        (lambda m: m[0, -5], IndexError, "out of range for axis 'y' of size 4"),
        (lambda m: m[0, 0, 0], IndexError, "3 indices for a mesh of 2 axes"),
        (lambda m: m[..., ...], IndexError, "one ellipsis"),
        (lambda m: m["x"], TypeError, "must be an int, a slice or an ellipsis"),
        (lambda m: m[True], TypeError, "must be an int, a slice or an ellipsis"),
        (lambda m: m[None], TypeError, "must be an int, a slice or an ellipsis"),
        (lambda m: m[2:], ValueError, "selects nothing of axis 'x'"),
        (lambda m: m.reshape(3, 3), ValueError, "8 members cannot be reshaped"),
        (lambda m: m.reshape(-1, 8), ValueError, "positive size"),
        (lambda m: m.reshape(4.0, 2), TypeError, "must be ints"),
    ],
)
def test_wrong_uses(use, kind, message):
    with pytest.raises(kind, match=message):
        use(tle.device_mesh({"block": [("x", 2), ("y", 4)]}))


GRID = tle.device_mesh({"block": [("row", 2), ("one", 1), ("column", 3)]})


@triton.jit
def member_kernel(out_ptr, mesh: tl.constexpr):
    number = tl.program_id(0) + tl.num_programs(0) * tl.program_id(1)
    tl.store(out_ptr + 4 * number, tle.shard_id(mesh, "row"))
    tl.store(out_ptr + 4 * number + 1, tle.shard_id(mesh, 1))
    tl.store(out_ptr + 4 * number + 2, tle.shard_id(mesh, -1))
    flat: tl.constexpr = mesh.flatten()
    tl.store(out_ptr + 4 * number + 3, tle.shard_id(flat, 0))


@pytest.mark.parametrize("grid", [(6,), (3, 4)])
def test_members(device, grid):
    count = int(np.prod(grid))
    out = device.empty((count, 4), np.int32)
    member_kernel[grid](out, GRID)
    number = np.arange(count) % 6
    want = np.stack([number // 3, 0 * number, number % 3, number], 1)
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def facts_kernel(out_ptr, mesh: tl.constexpr):
    part: tl.constexpr = mesh[1, :, 1:]
    other: tl.constexpr = mesh.reshape(3, 2)[2]
    tl.static_assert(mesh.dim_names == ("row", "one", "column"))
    tl.static_assert(part.shape == (1, 2) and part.ndim == 2)
    tl.store(out_ptr, mesh.size)
    tl.store(out_ptr + 1, part.physical_ids[0])
    tl.store(out_ptr + 2, part.physical_ids[1])
    tl.store(out_ptr + 3, other.physical_ids[0])
    tl.store(out_ptr + 4, GRID.shape[2])


def test_what_kernels_read_of_a_mesh(device):
    for _ in range(2):
        out = device.empty(5, np.int32)
        facts_kernel[(1,)](out, GRID)
        np.testing.assert_array_equal(device.numpy(out), [6, 4, 5, 4, 3])


@triton.jit
def ids_kernel(out_ptr, mesh: tl.constexpr):
    tl.store(out_ptr, mesh.physical_ids[0])


def test_each_mesh_has_its_kernel(device):
    # They print alike.
    for i in (2, 0, 1):
        out = device.empty(1, np.int32)
        ids_kernel[(1,)](out, GRID[:, :, i : i + 1])
        assert device.numpy(out)[0] == i


@triton.jit(noinline=True)
def first_id(out_ptr, mesh: tl.constexpr):
    tl.store(out_ptr, mesh.physical_ids[0])


@triton.jit
def calling_kernel(out_ptr, mesh: tl.constexpr):
    first_id(out_ptr, mesh[:2])
    first_id(out_ptr + 1, mesh[2:])


def test_each_mesh_has_its_called_function(device):
    out = device.empty(2, np.int32)
    calling_kernel[(1,)](out, tle.device_mesh({"block": 4}))
    np.testing.assert_array_equal(device.numpy(out), [0, 2])


@triton.jit
def wrong_kernel(out_ptr, mesh: tl.constexpr, axis: tl.constexpr):
    tl.store(out_ptr, tle.shard_id(mesh, axis))


@triton.jit
def part_out_of_range(out_ptr, mesh: tl.constexpr, axis: tl.constexpr):
    part: tl.constexpr = mesh[7]


@triton.jit
def made_in_a_kernel(out_ptr, mesh: tl.constexpr, axis: tl.constexpr):
    inner: tl.constexpr = tle.device_mesh({"block": 2}, axis)


@pytest.mark.parametrize(
    ("kernel", "mesh", "axis", "message"),
    [
        (wrong_kernel, GRID, "rows", "its axes are `row`, `one`, `column`"),
        (wrong_kernel, GRID, 3, "axis 3 is out of range for a mesh of 3 axes"),
        (wrong_kernel, GRID, 1.5, "`axis` of tle.shard_id must be the name of an axis"),
        (wrong_kernel, (2, 3), 0, "`mesh` of tle.shard_id must be a device_mesh"),
        (
            wrong_kernel,
            GRID.reshape(2, 3)[:, ::2].flatten(),
            0,
            "not supported yet: tle.shard_id along `dim0`",
        ),
        (wrong_kernel, tle.device_mesh({"chiplet": 2, "block": 2}), 1, "axes of the level `chiplet`"),
        (part_out_of_range, GRID, 0, "index 7 is out of range for axis 'row' of size 2"),
        (made_in_a_kernel, GRID, 0, "takes one argument, the topology"),
    ],
)
def test_errors_in_kernels(kernel, mesh, axis, message, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.CompilationError) as caught:
        kernel[(1,)](np.zeros(1, np.int32), mesh, axis)
    assert message in str(caught.value) and "^" in str(caught.value)
