"""``tle.reshard`` by words with flags: epoch after epoch, groups in turn, flags that begin again, and what goes wrong."""

import numpy as np
import pytest
from test_sharded import spec

import tilewright as triton
import tilewright.language as tl
from tilewright import distributed, tle
from tilewright.testing import simulated_mesh

pytestmark = pytest.mark.parametrize("device", ["interp", "ptxsim"], indirect=True)

SQUARE = tle.device_mesh({"device": [("a", 2), ("b", 2)]})


@triton.jit
def sums_kernel(x_ptr, y_ptr, out_ptr, mesh: tl.constexpr, N: tl.constexpr, TURNS: tl.constexpr):
    # Along one axis and the other, so that a pair of ranks exchanges more often than another; what is summed is what was.
    both: tl.constexpr = tle.sharding(mesh, partial=["a", "b"])
    one: tl.constexpr = tle.sharding(mesh, partial=["b"])
    whole: tl.constexpr = tle.sharding(mesh)
    for turn in tl.static_range(TURNS):
        x = tle.make_sharded_tensor(x_ptr, both, [N])
        y = tle.reshard(x, one, out=y_ptr, algorithm="low_latency")
        tl.debug_barrier()
        tle.reshard(y, whole, out=out_ptr + turn * N, algorithm="low_latency")
        tl.debug_barrier()
        if turn % 2:
            tle.reshard(x, whole, out=out_ptr + turn * N, algorithm="low_latency")
            tl.debug_barrier()


@pytest.mark.parametrize("epoch", [0, 2**32 - 3])
def test_epoch_after_epoch(device, epoch):
    n, turns = 200, 2
    parts = [np.arange(n, dtype=np.int32) * 7 + rank**3 for rank in range(4)]
    with simulated_mesh(1, 4) as ranks:
        for rank in range(4):
            ranks.view(rank, ranks._epochs, (ranks._slot_programs * 4,), np.uint32)[...] = epoch
        x, y = distributed.from_parts(parts), distributed.zeros(n, np.int32)
        for _ in range(2):
            out = distributed.zeros((turns, n), np.int32)
            sums_kernel[(1,)](x, y, out, SQUARE, n, turns)
            for part in out.parts:
                assert (part == sum(parts)).all()


@triton.jit
def move_kernel(x_ptr, out_ptr, source: tl.constexpr, to: tl.constexpr, shape: tl.constexpr):
    tle.reshard(tle.make_sharded_tensor(x_ptr, source, shape), to, out=out_ptr, algorithm="low_latency")


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float16, np.float32, np.float64])
def test_every_size_of_elements(device, dtype):
    mesh = tle.device_mesh({"device": 3})
    whole, rows = spec(mesh=mesh), spec(["device"], mesh=mesh)
    x = (np.arange(3 * 5 * 7).reshape(15, 7) % 5).astype(dtype)
    with simulated_mesh(1, 3):
        data, out = distributed.from_parts(np.split(x, 3)), distributed.zeros((15, 7), dtype)
        move_kernel[(2,)](data, out, rows, whole, (15, 7))
    for part in out.parts:
        np.testing.assert_array_equal(part, x)


@triton.jit
def deserter_kernel(x_ptr, out_ptr, mesh: tl.constexpr, N: tl.constexpr):
    if tle.shard_id(mesh, 0) != 2:
        x = tle.make_sharded_tensor(x_ptr, tle.sharding(mesh, partial=["device"]), [N])
        tle.reshard(x, tle.sharding(mesh), out=out_ptr, algorithm="low_latency")


def test_a_rank_that_does_not_come(device):
    mesh = tle.device_mesh({"device": 3})
    with simulated_mesh(1, 3), pytest.raises(triton.KernelError, match="deadlock") as failed:
        deserter_kernel[(1,)](distributed.zeros(64), distributed.zeros(64), mesh, 64)
    text = str(failed.value)
    # (The simulator names the library's line.)
    assert "low_latency.py" in text
    if device.backend == "interp":
        assert "rank 2 has ended" in text and "what another rank sends has not come" in text


@triton.jit
def written_by_another_kernel(x_ptr, out_ptr, mesh: tl.constexpr, N: tl.constexpr):
    # It is the others' words that come with flags, and nothing else is ordered by them.
    at = tl.arange(0, N)
    x = tle.make_sharded_tensor(x_ptr, tle.sharding(mesh, partial=["device"]), [N])
    tle.reshard(x, tle.sharding(mesh), out=out_ptr, algorithm="low_latency")
    tl.store(tle.remote(x_ptr + at, 1 - tle.shard_id(mesh, 0), mesh), at.to(tl.float32) + 1)


def test_flags_order_nothing_else(device):
    mesh = tle.device_mesh({"device": 2})
    with simulated_mesh(1, 2):
        with pytest.raises(triton.KernelError, match="race"):
            written_by_another_kernel[(1,)](distributed.zeros(64), distributed.zeros(64), mesh, 64)
