"""Programs of a cluster that copy blocks to each other (`multicast` of `tle.gpu.copy`) and arrive at each other's barriers (`tle.remote`)."""

import numpy as np
import order
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle

PAIR = tle.device_mesh({"block_cluster": 2})
FOUR = tle.device_mesh({"block_cluster": 4})
SQUARE = tle.device_mesh({"block_cluster": [("row", 2), ("column", 2)]})
THREE = tle.device_mesh({"block_cluster": 3})
CLUSTERS = tle.device_mesh({"block": 2, "block_cluster": 2})


@triton.jit
def bring(
    x_desc,
    y_desc,
    x,
    y,
    full,
    empty,
    n,
    M: tl.constexpr,
    N: tl.constexpr,
    SLOTS: tl.constexpr,
    MESH: tl.constexpr,
):
    """Of x each program has its own blocks, of y all the same."""
    first = tl.program_id(0) * n
    for i in range(n):
        tle.gpu.barrier_wait(empty[i % SLOTS], phaseIdx=i // SLOTS)
        tle.gpu.copy(x_desc, x.slot(i % SLOTS), [M, N], [(first + i) * M, 0], barrier=full[i % SLOTS])
        tle.gpu.copy(
            y_desc, y.slot(i % SLOTS), [M, N], [i * M, 0], barrier=full[i % SLOTS], multicast=(MESH, 0)
        )


@triton.jit
def add(
    out_desc, x, y, full, empty, n, M: tl.constexpr, N: tl.constexpr, SLOTS: tl.constexpr, MESH: tl.constexpr
):
    first = tl.program_id(0) * n
    for i in range(n):
        tle.gpu.barrier_wait(full[i % SLOTS], phaseIdx=i // SLOTS)
        total = x.slot(i % SLOTS).load() + y.slot(i % SLOTS).load()
        for member in tl.static_range(MESH.size):
            tle.gpu.barrier_arrive(tle.remote(empty[i % SLOTS], member, MESH), phaseIdx=i // SLOTS)
        out_desc.store([(first + i) * M, 0], total)


@triton.jit
def sums(
    x_ptr,
    y_ptr,
    out_ptr,
    n,
    M: tl.constexpr,
    N: tl.constexpr,
    SLOTS: tl.constexpr,
    WARPS: tl.constexpr,
    MESH: tl.constexpr,
):
    programs = tl.num_programs(0)
    x_desc = tl.make_tensor_descriptor(x_ptr, [programs * n * M, N], [N, 1], [M, N])
    y_desc = tl.make_tensor_descriptor(y_ptr, [n * M, N], [N, 1], [M, N])
    out_desc = tl.make_tensor_descriptor(out_ptr, [programs * n * M, N], [N, 1], [M, N])
    x, y = tle.gpu.alloc([SLOTS, M, N], tl.float32), tle.gpu.alloc([SLOTS, M, N], tl.float32)
    full = tle.gpu.alloc_barriers(SLOTS, expect_bytes=2 * M * N * 4)
    empty = tle.gpu.alloc_barriers(SLOTS, arrive_count=MESH.size, init=tle.gpu.READY)
    tle.gpu.warp_specialize(
        [
            (add, (out_desc, x, y, full, empty, n, M, N, SLOTS, MESH)),
            (bring, (x_desc, y_desc, x, y, full, empty, n, M, N, SLOTS, MESH)),
        ],
        [WARPS],
        [40],
    )


@pytest.mark.parametrize(("mesh", "clusters"), [(PAIR, 1), (PAIR, 3), (FOUR, 2)])
@pytest.mark.parametrize(("shape", "slots", "warps"), [((32, 64), 2, 1), ((64, 32), 3, 4)])
def test_blocks_that_all_get(device, mesh, clusters, shape, slots, warps):
    (m, n), steps = shape, 5
    rng = np.random.default_rng(0)
    x = rng.integers(0, 9, (clusters * mesh.size, steps, m, n)).astype(np.float32)
    y = rng.integers(0, 9, (steps, m, n)).astype(np.float32)
    out = device.array(np.zeros((clusters * mesh.size * steps * m, n), np.float32))
    given = device.array(x.reshape(-1, n)), device.array(y.reshape(-1, n))
    sums[(clusters,)](*given, out, steps, m, n, slots, warps, mesh)
    np.testing.assert_array_equal(device.numpy(out).reshape(x.shape), x + y)


@triton.jit
def of_rows_and_columns(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, MESH: tl.constexpr):
    """Without partitions: a block for each row of the mesh and one for each column."""
    row, column = tle.shard_id(MESH, "row"), tle.shard_id(MESH, "column")
    x_desc = tl.make_tensor_descriptor(x_ptr, [2 * M, N], [N, 1], [M, N])
    y_desc = tl.make_tensor_descriptor(y_ptr, [2 * M, N], [N, 1], [M, N])
    x, y = tle.gpu.alloc([M, N], tl.float16), tle.gpu.alloc([M, N], tl.float16)
    full = tle.gpu.alloc_barrier(expect_bytes=2 * M * N * 2)
    tle.gpu.copy(x_desc, x, [M, N], [row * M, 0], barrier=full, multicast=(MESH, "column"))
    tle.gpu.copy(y_desc, y, [M, N], [column * M, 0], barrier=full, multicast=(MESH, "row"))
    tle.gpu.barrier_wait(full, phaseIdx=0)
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + (row * 2 + column) * M * N + at, x.load() - y.load())


def test_along_each_axis(device):
    m, n = 64, 64
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 9, (2, m, n)).astype(np.float16) for _ in range(2))
    out = device.array(np.zeros((2, 2, m, n), np.float16))
    of_rows_and_columns[(1,)](
        device.array(x.reshape(-1, n)), device.array(y.reshape(-1, n)), out, m, n, SQUARE
    )
    np.testing.assert_array_equal(device.numpy(out), x[:, None] - y[None])


@triton.jit
def hand_on(x_ptr, out_ptr, turns, N: tl.constexpr, MESH: tl.constexpr):
    """Each program writes to the next one's buffer, and tells it by a barrier; that one says when it has read it."""
    at = tl.arange(0, N)
    rank = tle.shard_id(MESH, 0)
    behind, before = (rank + 1) % MESH.size, (rank + MESH.size - 1) % MESH.size
    got = tle.gpu.alloc([N], dtype=tl.int32)
    full, empty = tle.gpu.alloc_barrier(), tle.gpu.alloc_barriers(1, init=tle.gpu.READY)
    x = tl.load(x_ptr + rank * N + at)
    for turn in range(turns):
        tle.gpu.barrier_wait(empty[0], phaseIdx=turn)
        tl.store(tle.gpu.local_ptr(tle.remote(got, behind, MESH), (at,)), x)
        tle.gpu.barrier_arrive(tle.remote(full, behind, MESH), phaseIdx=turn)
        tle.gpu.barrier_wait(full, phaseIdx=turn)
        x = tl.load(tle.gpu.local_ptr(got, (N - 1 - at,))) + 1
        tle.gpu.barrier_arrive(tle.remote(empty, before, MESH)[0], phaseIdx=turn)
    tl.store(out_ptr + rank * N + at, x)


@pytest.mark.parametrize("mesh", [PAIR, THREE, FOUR])
def test_barriers_of_others(device, mesh):
    x = np.arange(mesh.size * 96, dtype=np.int32).reshape(mesh.size, 96)
    out = device.array(np.zeros_like(x))
    hand_on[(1,)](device.array(x), out, 5, 96, mesh)
    want = x
    for _ in range(5):
        want = np.roll(want, 1, 0)[:, ::-1] + 1
    np.testing.assert_array_equal(device.numpy(out), want)


def test_writes_are_released_to_the_cluster():
    x = np.zeros((2, 96), np.int32)
    ptx = hand_on.warmup(x, x, 5, 96, PAIR, grid=(1,), target="cuda:90").asm["ptx"]
    assert ptx.count("mbarrier.arrive.release.cluster.shared::cluster") == 2
    assert ptx.count("mbarrier.try_wait.parity.acquire.cluster") == 2


def test_several_arrivals_are_behind_one_barrier():
    x = np.zeros((4 * 32, 64), np.float32)
    ptx = sums.warmup(x, x, x, 2, 32, 64, 2, 1, PAIR, grid=(1,), target="cuda:90").asm["ptx"]
    arrivals = [
        line for line in ptx.splitlines() if "mbarrier.arrive.shared::cluster" in line or "bar.sync" in line
    ]
    at = [i for i, line in enumerate(arrivals) if "arrive" in line]
    assert len(at) == 2 and at[1] == at[0] + 1
    assert ptx.count(".multicast::cluster") == 1


@pytest.mark.parametrize(
    ("kernel", "shapes", "args"),
    [
        (sums, [(2 * 5 * 32, 64), (5 * 32, 64), (2 * 5 * 32, 64)], (5, 32, 64, 2, 1, PAIR)),
        (of_rows_and_columns, [(128, 64), (128, 64), (256, 64)], (64, 64, SQUARE)),
        (hand_on, [(2, 96), (2, 96)], (3, 96, PAIR)),
    ],
)
def test_the_simulator_asks_for_each_of_them(kernel, shapes, args):
    dtype = {sums: np.float32, of_rows_and_columns: np.float16, hand_on: np.int32}[kernel]
    arrays = [np.zeros(shape, dtype) for shape in shapes]
    compiled = kernel.warmup(*arrays, *args, grid=(1,), target="cuda:90")
    ints = [] if kernel is of_rows_and_columns else args[:1]
    dims = tuple(compiled.metadata.cluster_dims)
    reported = order.reported(compiled, [*arrays, *ints], dims)
    silent = [order.kind(line) for line, kinds in reported if not kinds]
    assert silent == SILENT[kernel.__name__], reported


# No program here ends before it has all that it gets.
SILENT = {"sums": [], "of_rows_and_columns": ["barrier.cluster.wait"], "hand_on": []}


@triton.jit
def stuck(x_ptr, MESH: tl.constexpr, CASE: tl.constexpr):
    full = tle.gpu.alloc_barrier(arrive_count=2)
    rank = tle.shard_id(MESH, 0)
    if CASE == "nobody":
        tle.gpu.barrier_wait(full, phaseIdx=0)
    elif CASE == "one":
        tle.gpu.barrier_arrive(tle.remote(full, 1 - rank, MESH), phaseIdx=0)
        tle.gpu.barrier_wait(full, phaseIdx=0)
    elif CASE == "ended":
        if rank == 0:
            tle.gpu.barrier_wait(full, phaseIdx=0)
        else:
            tle.gpu.barrier_arrive(tle.remote(full, 0, MESH), phaseIdx=0)


@pytest.mark.parametrize("case", ["nobody", "one", "ended"])
@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
def test_what_never_ends_is_an_error(backend, case, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    with pytest.raises(triton.KernelError, match="deadlock") as error:
        stuck[(1,)](np.zeros(1, np.int32), PAIR, case)
    if backend == "interp":
        assert "test_multicast.py" in str(error.value) and "^" in str(error.value)


@triton.jit
def disagreed(x_ptr, out_ptr, apart, M: tl.constexpr, N: tl.constexpr, MESH: tl.constexpr):
    """The second block is not the same to the two columns of a row."""
    column = tle.shard_id(MESH, "column")
    desc = tl.make_tensor_descriptor(x_ptr, [2 * M, N], [N, 1], [M, N])
    x = tle.gpu.alloc([2, M, N], tl.float32)
    full = tle.gpu.alloc_barriers(2, expect_bytes=M * N * 4)
    for i in range(2):
        tle.gpu.copy(
            desc, x.slot(i), [M, N], [column * i * apart, 0], barrier=full[i], multicast=(MESH, "column")
        )
    for i in range(2):
        tle.gpu.barrier_wait(full[i], phaseIdx=0)
    tl.store(out_ptr, tl.sum(x.slot(0).load()))


def test_programs_that_disagree_are_an_error(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    x = np.ones((64, 64), np.float32)
    disagreed[(3,)](x, x, 0, 32, 64, SQUARE)
    with pytest.raises(triton.KernelError, match="share this copy, and give it different offsets") as error:
        disagreed[(3,)](x, x, 8, 32, 64, SQUARE)
    assert "test_multicast.py" in str(error.value)
    assert "[0, 0]" in str(error.value) and "[8, 0]" in str(error.value)


PART = SQUARE[0]


@triton.jit
def wrong(x_ptr, CASE: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, [64, 32], [32, 1], [16, 32])
    x = tle.gpu.alloc([16, 32], dtype=tl.float32)
    full, plain = tle.gpu.alloc_barrier(expect_bytes=2048), tle.gpu.alloc_barrier()
    if CASE == 0:
        tle.gpu.copy(desc, x, [16, 32], [0, 0], multicast=(PAIR, 0))
    elif CASE == 1:
        tle.gpu.copy(desc, x, [16, 32], [0, 0], barrier=full, multicast=PAIR)
    elif CASE == 2:
        tle.gpu.copy(desc, x, [16, 32], [0, 0], barrier=full, multicast=(PAIR, "row"))
    elif CASE == 3:
        tle.gpu.copy(desc, x, [16, 32], [0, 0], barrier=full, multicast=(THREE, 0))
    elif CASE == 4:
        tle.gpu.copy(desc, x, [16, 32], [0, 0], barrier=full, multicast=(PART, 0))
    elif CASE == 5:
        tle.gpu.copy(desc, x, [16, 32], [0, 0], barrier=full, multicast=(CLUSTERS, 0))
    elif CASE == 6:
        tle.gpu.barrier_wait(tle.remote(plain, 0, PAIR), phaseIdx=0)
    elif CASE == 7:
        tle.gpu.barrier_arrive(tle.remote(plain, 0, PAIR))
    elif CASE == 8:
        tle.gpu.copy(desc, x, [16, 32], [0, 0], barrier=tle.remote(full, 0, PAIR))
    elif CASE == 9:
        tle.gpu.barrier_arrive(tle.remote(tle.remote(plain, 0, PAIR), 1, PAIR), phaseIdx=0)
    elif CASE == 10:
        for _i in range(2):
            late = tle.gpu.alloc_barrier()
            tle.gpu.barrier_arrive(tle.remote(late, 0, PAIR), phaseIdx=0)
    elif CASE == 11:
        tle.gpu.barrier_arrive(tle.remote(plain, 2, PAIR), phaseIdx=0)
    elif CASE == 12:
        tle.gpu.copy(x, desc, [16, 32], [0, 0], multicast=(PAIR, 0))


WRONG = [
    "`multicast` needs a `barrier`",
    "`multicast` of tle.gpu.copy must be a mesh of a cluster and the name or index of one of its axes",
    "the mesh has no axis `row`",
    "not supported yet: a copy that 3 programs share: their number must be a power of two",
    "goes along an axis of a whole mesh, and this is a part of one",
    "are of several clusters",
    "barrier_wait of a barrier of another program",
    "give its phase",
    "copy of a barrier of another program",
    "is another program's already",
    "not supported yet: barriers that are made in a loop",
    "`shard_id` 2 is out of range",
    "`multicast` needs a `barrier`",
]


@pytest.mark.parametrize(("case", "message"), list(enumerate(WRONG)))
def test_errors(device, case, message):
    with pytest.raises(triton.CompilationError, match=message) as error:
        wrong[(1,)](device.array(np.zeros((64, 32), np.float32)), case)
    assert "test_multicast.py" in str(error.value) and "^" in str(error.value)


def test_blocks_without_equal_parts():
    x = np.zeros((64, 64), np.float16)
    with pytest.raises(triton.CompilationError, match="no equal parts of whole swizzles") as error:
        of_rows_and_columns.warmup(x, x, x, 8, 64, SQUARE, grid=(1,), target="cuda:90")
    assert "multicast=(MESH" in str(error.value)
