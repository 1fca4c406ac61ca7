"""``tle.reshard`` from memory to memory: every transition by several programs, every algorithm, and what is refused."""

import math
import os
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest
from test_sharded import MESH, STATES, allowed, array, parts_of, random_chain, spec, whole_of

import tilewright as triton
import tilewright.language as tl
from tilewright import distributed, tle
from tilewright.testing import simulated_mesh
from tilewright.tle import _cost

pytestmark = pytest.mark.parametrize("device", ["interp", "ptxsim"], indirect=True)


@triton.jit
def move_kernel(
    x_ptr, out_ptr, source: tl.constexpr, to: tl.constexpr, shape: tl.constexpr, HOW: tl.constexpr
):
    tle.reshard(tle.make_sharded_tensor(x_ptr, source, shape), to, out=out_ptr, algorithm=HOW)


def check(source, to, shape, dtype=np.float32, how=None, programs=3, launches=1):
    x = array(shape, dtype)
    out = distributed.zeros(to.local_shape(shape), dtype)
    data = distributed.from_parts(parts_of(x, source))
    for _ in range(launches):
        move_kernel[(programs,)](data, out, source, to, shape, how)
    np.testing.assert_array_equal(whole_of(out.parts, to, shape), x)


@pytest.mark.parametrize("source", STATES)
def test_every_transition(device, source):
    for to in STATES:
        a, b = spec(**STATES[source]), spec(**STATES[to])
        if allowed(a, b):
            with simulated_mesh(2, 4):
                check(a, b, (16, 24))


def test_parts_that_straddle(device):
    # Four parts become six: a new part is made of two.
    mesh = tle.device_mesh({"device": [("a", 2), ("b", 2), ("c", 3)]})
    with simulated_mesh(1, 12):
        check(spec([["a", "b"]], mesh=mesh), spec([["b", "c"]], mesh=mesh), (24, 8))


@pytest.mark.parametrize("how", _cost.ALGORITHMS["all-reduce"])
@pytest.mark.parametrize(
    ("partial", "split", "shape", "dtype"),
    [
        (["device"], [None, "node"], (40, 24), np.float32),
        (["node", "device"], [], (7, 3), np.int64),
        (["node"], ["device"], (64, 260), np.float16),
    ],
)
def test_sums_that_become_whole(device, how, partial, split, shape, dtype):
    with simulated_mesh(2, 4):
        # Flags are as they were after each launch.
        check(spec(split, partial), spec(split), shape, dtype, how, launches=2)


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize("how", [None, *_cost.ALGORITHMS["all-reduce"]])
def test_sums_of_8_bit_floats(device, how, dtype):
    """They are added up in float32: no arithmetic of the language takes them."""
    mesh = tle.device_mesh({"device": 3})
    sums, whole = spec(partial=["device"], mesh=mesh), spec(mesh=mesh)
    parts = [(np.arange(3000) % 3 * 0.5 * (rank - 1)).astype(dtype) for rank in range(3)]
    with simulated_mesh(1, 3):
        out = distributed.zeros(3000, dtype)
        move_kernel[(2,)](distributed.from_parts(parts), out, sums, whole, (3000,), how)
    for part in out.parts:
        np.testing.assert_array_equal(part.astype(float), sum(p.astype(float) for p in parts))


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("transition", list(_cost.ALGORITHMS))
def test_every_algorithm(device, ranks, transition):
    """Random shapes, by as many programs as come: parts of less than a tile, of several, and such as end within one."""
    mesh = tle.device_mesh({"device": ranks})
    rng = np.random.default_rng(ranks)
    for dim, rows, columns in ((0, 1, 5), (1, 3, 7), (0, 2, 1201), (1, 37, 163)):
        split = [["device"]] if dim == 0 else [None, "device"]
        shape = (rows * ranks, columns) if dim == 0 else (rows, columns * ranks)
        whole, parts, sums = spec(mesh=mesh), spec(split, mesh=mesh), spec(partial=["device"], mesh=mesh)
        a, b = {
            "all-gather": (parts, whole),
            "reduce-scatter": (sums, parts),
            "all-reduce": (sums, whole),
            "all-to-all": (parts, spec([None, "device"] if dim == 0 else ["device"], mesh=mesh)),
        }[transition]
        if transition == "all-to-all":
            shape = (rows * ranks, columns * ranks)
        assert a.transition(b) == transition
        dtype = rng.choice([np.float16, np.float32, np.int64])
        for how in _cost.ALGORITHMS[transition]:
            with simulated_mesh(1, ranks, memory=1 << 22):
                check(a, b, shape, dtype, how, programs=int(rng.integers(1, 4)), launches=2)


@pytest.mark.parametrize(
    ("source", "to", "what"),
    [
        ({"split": [["node", "device"]]}, {"split": ["node"]}, "all-gather"),
        ({"split": ["node", "device"]}, {"split": ["node"]}, "all-gather"),
        ({"split": ["device", "node"]}, {}, "all-gather"),
        ({"split": [None, "device"], "partial": ["node"]}, {"partial": ["node"]}, "all-gather"),
        ({"split": ["node"], "partial": ["device"]}, {"split": [["node", "device"]]}, "reduce-scatter"),
        ({"partial": ["node", "device"]}, {"split": ["device", "node"]}, "reduce-scatter"),
        ({"partial": ["node", "device"]}, {"split": [None, "device"], "partial": ["node"]}, "reduce-scatter"),
        # What would be in several pieces, or is of two kinds.
        ({"split": [["node", "device"]]}, {"split": ["device"]}, None),
        ({"partial": ["node", "device"]}, {"split": ["node"]}, None),
        ({"split": [["node", "device"]]}, {"split": ["device", "node"]}, None),
        ({"split": ["device"]}, {"split": [None, "device"]}, "all-to-all"),
        ({"split": [["node", "device"]]}, {"split": ["node", "device"]}, "all-to-all"),
        ({"split": ["device", "node"]}, {"split": [None, ["node", "device"]]}, "all-to-all"),
        ({"split": [["device", "node"]], "partial": []}, {"split": [None, ["device", "node"]]}, "all-to-all"),
    ],
)
def test_around_some_axes(device, source, to, what):
    a, b = spec(**source), spec(**to)
    assert a.transition(b) == what
    with simulated_mesh(2, 4):
        if what is None:
            with pytest.raises(triton.CompilationError, match="has no algorithm 'ring': it is no all-gather"):
                check(a, b, (16, 24), how="ring")
        else:
            for how in _cost.ALGORITHMS[what][1:]:
                check(a, b, (16, 24), np.int32, how, launches=2)


@triton.jit
def one_after_the_other_kernel(x_ptr, y_ptr, out_ptr, mesh: tl.constexpr, N: tl.constexpr):
    # What goes around in one lies in scratch that the next one uses, and the values behind it.
    whole: tl.constexpr = tle.sharding(mesh)
    parts: tl.constexpr = tle.sharding(mesh, split=["device"])
    sums: tl.constexpr = tle.sharding(mesh, partial=["device"])
    x = tle.make_sharded_tensor(x_ptr, sums, [N])
    for _ in tl.static_range(2):
        y = tle.reshard(x, parts, out=y_ptr, algorithm="ring")
        tle.distributed_barrier(mesh)
        tle.reshard(y, whole, out=out_ptr, algorithm="ring")
        tle.distributed_barrier(mesh)
    value = tle.make_sharded_tensor(tl.load(y), parts)
    tl.store(out_ptr + tl.arange(0, N), tl.load(tle.reshard(value + value, whole)))


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_one_after_the_other(device, ranks):
    mesh, n = tle.device_mesh({"device": ranks}), 64 * ranks
    with simulated_mesh(1, ranks):
        parts = [np.arange(n, dtype=np.int32) * (rank + 1) for rank in range(ranks)]
        x, y = distributed.from_parts(parts), distributed.zeros(n // ranks, np.int32)
        out = distributed.zeros(n, np.int32)
        one_after_the_other_kernel[(1,)](x, y, out, mesh, n)
    for part in out.parts:
        np.testing.assert_array_equal(part, 2 * sum(parts))


def test_an_axis_of_one(device):
    mesh = tle.device_mesh({"device": [("a", 2), ("b", 1)]})
    for how in _cost.ALGORITHMS["all-reduce"]:
        with simulated_mesh(1, 2):
            check(spec(["a"], ["b"], mesh), spec(["a"], mesh=mesh), (8, 8), how=how)


def test_a_part_of_a_mesh(device):
    mesh, x = MESH[1], array((8, 40))
    for how in _cost.ALGORITHMS["all-reduce"]:
        with simulated_mesh(2, 4):
            data = distributed.from_parts([np.zeros((8, 40), np.float32)] * 4 + [x, x, x, x])
            out = distributed.zeros((8, 40))
            member_kernel[(2,)](data, out, spec(partial=["device"], mesh=mesh), spec(mesh=mesh), (8, 40), how)
        for rank, part in enumerate(out.parts):
            np.testing.assert_array_equal(part, 4 * x if rank >= 4 else 0 * x)


@triton.jit
def member_kernel(
    x_ptr, out_ptr, source: tl.constexpr, to: tl.constexpr, shape: tl.constexpr, HOW: tl.constexpr
):
    if tle.shard_id(MESH_OF_ALL, "node") == 1:
        tle.reshard(tle.make_sharded_tensor(x_ptr, source, shape), to, out=out_ptr, algorithm=HOW)


MESH_OF_ALL = tl.constexpr(MESH)


@pytest.mark.parametrize("transition", list(_cost.ALGORITHMS))
def test_ranks_outside_the_mesh_do_nothing(device, transition):
    # They come there as the members do.
    mesh, shape = tle.device_mesh({"node": 2, "device": 2})[1], (8, 12)
    rows, whole = spec(["device"], mesh=mesh), spec(mesh=mesh)
    source, to = {
        "all-gather": (rows, whole),
        "reduce-scatter": (spec(partial=["device"], mesh=mesh), rows),
        "all-to-all": (rows, spec([None, "device"], mesh=mesh)),
        "all-reduce": (spec(partial=["device"], mesh=mesh), whole),
    }[transition]
    x = array(shape)
    parts = parts_of(x, source)
    for how in (None, *_cost.ALGORITHMS[transition]):
        with simulated_mesh(2, 2):
            data = distributed.from_parts([0 * part for part in parts] + parts)
            out = distributed.zeros(to.local_shape(shape))
            move_kernel[(2,)](data, out, source, to, shape, how)
        np.testing.assert_array_equal(whole_of(out.parts[2:], to, shape), x)
        assert not any(part.any() for part in out.parts[:2])


def test_random_chains(device):
    """As many as in ``test_sharded.py``, each transition a launch, by any algorithm that there is for it."""
    count, first = int(os.environ.get("TILEWRIGHT_SHARDED_CHAINS", "12")), int(os.environ.get("SEED", "0"))
    simulated = device.backend == "ptxsim"
    for seed in range(first, first + (count // 4 if simulated else count)):
        mesh, specs, _, shape = random_chain(seed, 8 if simulated else 64)
        x, rng = array(shape, np.int32, seed), np.random.default_rng(seed)
        nodes = math.prod(n for n, level in zip(mesh.shape, mesh.dim_levels) if level == "node")
        with simulated_mesh(nodes, mesh.size // nodes, programs=4):
            data = distributed.from_parts(parts_of(x, specs[0], seed))
            for a, b in pairwise(specs):
                out = distributed.zeros(b.local_shape(shape), np.int32)
                what = a.transition(b)
                how = str(rng.choice(_cost.ALGORITHMS[what])) if what else None
                move_kernel[(int(rng.integers(1, 5)),)](data, out, a, b, shape, how)
                data = out
        np.testing.assert_array_equal(whole_of(data.parts, specs[-1], shape), x, f"seed {seed}")


@triton.jit
def early_kernel(x_ptr, out_ptr, mesh: tl.constexpr, N: tl.constexpr):
    # What this program reads another has stored.
    at = tl.arange(0, N)
    x = tle.make_sharded_tensor(x_ptr, tle.sharding(mesh, partial=["device"]), [2 * N])
    tle.reshard(x, tle.sharding(mesh), out=out_ptr, algorithm="two_shot")
    tl.store(x_ptr + at, tl.load(out_ptr + (1 - tl.program_id(0)) * N + at))


def test_what_others_have_stored_is_seen_behind_a_barrier_of_all(device):
    mesh = tle.device_mesh({"device": 2})
    with simulated_mesh(1, 2):
        x, out = distributed.zeros(8192), distributed.zeros(8192)
        with pytest.raises(triton.KernelError, match="race"):
            early_kernel[(2,)](x, out, mesh, 4096)


@pytest.mark.parametrize(
    ("source", "to", "how", "message"),
    [
        (
            "S0",
            "S1",
            "ring",
            r"has no algorithm 'ring': it is all-to-all, for which there is one_shot, push, low_latency",
        ),
        (
            "S0",
            "B",
            "two_shot",
            r"has no algorithm 'two_shot': it is all-gather, for which there is one_shot, ring, push, low_latency",
        ),
        ("P", "S0", "two_shot", r"has no algorithm 'two_shot'"),
        (
            "P",
            "B",
            "tree",
            r"must be one of one_shot, two_shot, ring, push, low_latency, low_latency_two_shot, not 'tree'",
        ),
        ("B", "P", None, "cannot become a partial sum"),
    ],
)
def test_what_is_refused(device, source, to, how, message):
    with simulated_mesh(2, 4), pytest.raises(triton.CompilationError, match=message) as failed:
        move_kernel[(1,)](
            distributed.zeros(64),
            distributed.zeros(64),
            spec(**STATES[source]),
            spec(**STATES[to]),
            (8, 8),
            how,
        )
    assert "test_transfer.py" in str(failed.value) and "^" in str(failed.value)


@triton.jit
def wrong_kernel(x_ptr, out_ptr, how: tl.constexpr, WHAT: tl.constexpr):
    x = tle.make_sharded_tensor(x_ptr, how, (8, 8))
    if WHAT == "value":
        tle.reshard(x + x, how, out=out_ptr)
    elif WHAT == "dtype":
        tle.reshard(x, how, out=out_ptr)
    elif WHAT == "algorithm":
        tle.reshard(x, how, algorithm="ring")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            "value",
            "takes a tensor that lies in memory, by the pointer to its first element; this one is a value",
        ),
        ("dtype", "must be a pointer to the tensor's dtype"),
        ("algorithm", "goes with `out`"),
    ],
)
def test_what_does_not_go_together(device, what, message):
    dtype = np.float16 if what == "dtype" else np.float32
    with simulated_mesh(2, 4), pytest.raises(triton.CompilationError, match=message):
        wrong_kernel[(1,)](distributed.zeros(64), distributed.zeros(64, dtype), spec(), what)


def test_costs(device):
    # What is small goes in words with flags, what is large by stores.
    for ranks in (2, 4, 8):
        for transition in ("all-gather", "reduce-scatter", "all-reduce"):
            assert _cost.pick(transition, 1 << 10, devices=ranks) == "low_latency"
            assert _cost.pick(transition, 1 << 28, devices=ranks) != "low_latency"
    # Of sums of middle size members have a share each, in words at first.
    sizes = {14: "low_latency", 17: "low_latency_two_shot", 18: "low_latency_two_shot", 20: "two_shot"}
    assert {k: _cost.pick("all-reduce", 1 << k, devices=4) for k in sizes} == sizes
    assert _cost.pick("all-gather", 1 << 28, devices=2) == "push"
    # Two ranks push few bytes a turn; what four push is added up from memory, which takes longer than to read it from there.
    for ranks in (2, 4):
        assert _cost.pick("reduce-scatter", 1 << 28, devices=ranks) == "one_shot"
    assert _cost.pick("all-reduce", 1 << 28, devices=2) == "ring"
    # Where neighbours alone are linked, a ring goes the shortest way.
    assert _cost.pick("all-reduce", 1 << 28, devices=16, links=_cost.Links(switched=False)) == "ring"
    assert _cost.cost("all-gather", "one_shot", 1 << 20) == 0
    # As is a network that the ranks of a node share.
    for transition in ("all-gather", "reduce-scatter"):
        shared = _cost.Links(shared_network=True)
        assert _cost.pick(transition, 1 << 28, nodes=2, devices=8, links=shared) == "ring"
    with pytest.raises(ValueError, match="'all-to-all' has no algorithm 'ring'"):
        _cost.cost("all-to-all", "ring", 1 << 20, devices=8)
