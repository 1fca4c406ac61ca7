"""``tle.reshard`` from memory to memory: every transition by several programs, every algorithm, and what is refused."""

import math
import os
from itertools import pairwise

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


@pytest.mark.parametrize("how", ["one_shot", "two_shot", "ring"])
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


def test_an_axis_of_one(device):
    mesh = tle.device_mesh({"device": [("a", 2), ("b", 1)]})
    for how in ("one_shot", "two_shot", "ring"):
        with simulated_mesh(1, 2):
            check(spec(["a"], ["b"], mesh), spec(["a"], mesh=mesh), (8, 8), how=how)


def test_a_part_of_a_mesh(device):
    mesh, x = MESH[1], array((8, 40))
    for how in ("one_shot", "two_shot", "ring"):
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
                how = str(rng.choice(_cost.ALGORITHMS["all-reduce"])) if adds_up(a, b) else None
                move_kernel[(int(rng.integers(1, 5)),)](data, out, a, b, shape, how)
                data = out
        np.testing.assert_array_equal(whole_of(data.parts, specs[-1], shape), x, f"seed {seed}")


def adds_up(a, b):
    return any(axis not in b.partial for axis in a.partial) and a.split == b.split


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
        if device.backend == "ptxsim":
            with pytest.raises(triton.KernelError, match="global-memory race"):
                early_kernel[(2,)](x, out, mesh, 4096)


@pytest.mark.parametrize(
    ("source", "to", "how", "message"),
    [
        ("S0", "B", "ring", r"has no algorithm 'ring': it is for what was partial and becomes whole"),
        ("P", "S0", "two_shot", r"has no algorithm 'two_shot'"),
        ("P", "B", "tree", r'must be "one_shot", "two_shot" or "ring", not \'tree\''),
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
        ("value", "takes a tensor that lies in memory; this one is a value"),
        ("dtype", "must be a pointer to the tensor's dtype"),
        ("algorithm", "goes with `out`"),
    ],
)
def test_what_does_not_go_together(device, what, message):
    dtype = np.float16 if what == "dtype" else np.float32
    with simulated_mesh(2, 4), pytest.raises(triton.CompilationError, match=message):
        wrong_kernel[(1,)](distributed.zeros(64), distributed.zeros(64, dtype), spec(), what)


def test_costs(device):
    # Two shots move less from three ranks on; a ring writes what others read, and where neighbours alone are linked, goes the shortest way.
    assert _cost.pick("all-reduce", 1 << 16, devices=2) == "one_shot"
    assert _cost.pick("all-reduce", 1 << 26, devices=2) == "ring"
    assert _cost.pick("all-reduce", 1 << 24, devices=8) == "two_shot"
    assert _cost.pick("all-reduce", 1 << 10, devices=8) == "one_shot"
    assert _cost.pick("all-reduce", 1 << 28, devices=16, links=_cost.Links(switched=False)) == "ring"
    assert _cost.cost("all-gather", "one_shot", 1 << 20) == 0
    with pytest.raises(ValueError, match="'all-gather' has no algorithm 'ring'"):
        _cost.cost("all-gather", "ring", 1 << 20, devices=8)
