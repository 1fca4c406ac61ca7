"""Whole tensors distributed otherwise from the host, and the names of the document's host side."""

from itertools import pairwise

import numpy as np
import pytest
from test_sharded import MESH, STATES, allowed, array, parts_of, random_chain, spec, whole_of

import tilewright as triton
import tilewright.language as tl
from tilewright import distributed, tle
from tilewright.runtime.reshard import Step, steps
from tilewright.testing import simulated_mesh


@pytest.mark.parametrize("source", STATES)
def test_every_transition(source):
    x = array((16, 24), np.int32)
    for to in STATES:
        a, b = spec(**STATES[source]), spec(**STATES[to])
        with simulated_mesh(2, 4):
            data = distributed.from_parts(parts_of(x, a))
            if allowed(a, b):
                made = distributed.reshard(data, a, b)
                np.testing.assert_array_equal(whole_of(made.parts, b, x.shape), x)
            else:
                with pytest.raises(ValueError, match="cannot become a partial sum"):
                    distributed.reshard(data, a, b)


@pytest.mark.parametrize("seed", range(40))
def test_random_chains(seed):
    mesh, specs, _, shape = random_chain(seed, 64)
    x = array(shape, np.int64, seed)
    with simulated_mesh(1, mesh.size, programs=1):
        parts = distributed.from_parts(parts_of(x, specs[0], seed))
        for a, b in pairwise(specs):
            parts = distributed.reshard(parts, a, b)
            np.testing.assert_array_equal(whole_of(parts.parts, b, shape), x)


@pytest.mark.parametrize("how", STATES)
def test_sharded_and_gathered(how):
    x, how = array((16, 24), np.int16), spec(**STATES[how])
    with simulated_mesh(2, 4):
        if how.partial:
            with pytest.raises(ValueError, match="cannot become a partial sum"):
                distributed.shard(x, how)
            parts = distributed.from_parts(parts_of(x, how))
        else:
            parts = distributed.shard(x, how)
            for part, want in zip(parts.parts, parts_of(x, how)):
                np.testing.assert_array_equal(part, want)
        whole = distributed.gather(parts, how)
        np.testing.assert_array_equal(whole, x)
        # It is one of its own.
        whole[...] = 0
        np.testing.assert_array_equal(distributed.gather(parts, how), x)


def test_steps():
    # As few bytes as a collective can move: partial sums are scattered, and what both begin with stays.
    assert steps(spec(partial=["device"]), spec(["device"])) == [Step("sum_part", "device", 0)]
    assert steps(spec([["node", "device"]]), spec(["node"])) == [Step("gather", "device", 0)]
    assert steps(spec(["device"]), spec([None, "device"])) == [
        Step("gather", "device", 0),
        Step("part", "device", 1),
    ]


def test_what_is_refused():
    with simulated_mesh(2, 4):
        x = distributed.zeros((6, 4))
        with pytest.raises(ValueError, match="does not divide into the 4 parts"):
            distributed.shard(np.zeros((6, 4)), spec(["device"]))
        with pytest.raises(ValueError, match="has 4 members, and there are 8 ranks"):
            distributed.gather(x, spec(["device"], mesh=MESH[0]))
        with pytest.raises(ValueError, match="does not divide into the 4 parts"):
            distributed.reshard(x, spec(), spec(["device"]))
        part = tle.sharding(MESH[0], split=["device"])
        with pytest.raises(ValueError, match="has 4 members, and there are 8 ranks"):
            distributed.reshard(x, part, part)
        with pytest.raises(ValueError, match="does not lie in symmetric memory"):
            tle.create_dist_tensor(np.zeros(4, np.float32))
        with pytest.raises(TypeError, match=r"is said by a tle\.sharding, not by 'device'"):
            distributed.shard(np.zeros((6, 4)), "device")
        with pytest.raises(TypeError, match="one of a SymmetricTensor, not"):
            distributed.gather(np.zeros((6, 4)), spec())
        with pytest.raises(ValueError, match="are not negative"):
            distributed.zeros((3, -1))
        with pytest.raises(TypeError, match="interpreted as an integer"):
            distributed.zeros(1.5)
        assert distributed.zeros(np.int64(3)).shape == (3,)
    with (
        pytest.raises(TypeError, match="n_nodes of a simulated mesh is an integer, not"),
        simulated_mesh(1.5),
    ):
        pass


@triton.jit
def context_kernel(context, out_ptr, mesh: tl.constexpr):
    peer = (tle.shard_id(mesh, "device") + 1) % mesh.size
    there = tle.remote(context, peer, space="device", dtype=tl.int32, offset=2)
    tle.distributed_barrier(mesh)
    tl.store(out_ptr, tl.load(there))
    tle.distributed_barrier(mesh)


@pytest.mark.parametrize("device", ["interp", "ptxsim"], indirect=True)
def test_a_tensor_as_the_memory_of_other_ranks(device):
    mesh = tle.device_mesh({"device": 3})
    with simulated_mesh(1, 3):
        words = [np.arange(4, dtype=np.int32) + 10 * rank for rank in range(3)]
        context = tle.create_dist_tensor(distributed.from_parts([w.view(np.int8) for w in words]))
        out = distributed.zeros(1, np.int32)
        context_kernel[(1,)](context, out, mesh)
    np.testing.assert_array_equal(out.numpy()[:, 0], [12, 22, 2])
