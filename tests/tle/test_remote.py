"""Buffers of other programs of the cluster: read, written and added to."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle

PAIR = tle.device_mesh({"block_cluster": 2})
FOUR = tle.device_mesh({"block_cluster": 4})
GRID = tle.device_mesh({"block_cluster": [("row", 2), ("column", 3)]})


@triton.jit
def program_number():
    return tl.program_id(0) + tl.num_programs(0) * tl.program_id(1)


@triton.jit
def shift_kernel(x_ptr, out_ptr, mesh: tl.constexpr, N: tl.constexpr, BY: tl.constexpr):
    at = tl.arange(0, N)
    rank = tle.shard_id(mesh, 0)
    program = tl.program_id(0)
    buffer = tle.gpu.alloc([N], dtype=x_ptr.dtype.element_ty)
    buffer.store(tl.load(x_ptr + program * N + at))
    tle.distributed_barrier(mesh)
    theirs = tle.remote(buffer, (rank + BY) % mesh.size, mesh)
    tl.store(out_ptr + program * N + at, tl.load(tle.gpu.local_ptr(theirs, (N - 1 - at,))))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64])
@pytest.mark.parametrize("n", [64, 96, 1])
def test_reads_a_neighbour(device, dtype, n):
    x = (np.arange(8 * n) % 100).astype(dtype)
    out = device.empty(8 * n, dtype)
    shift_kernel[(2,)](device.array(x), out, FOUR, n, 1)
    want = np.roll(x.reshape(2, 4, n), -1, 1)[:, :, ::-1].ravel()
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def both_kernel(x_ptr, LAST: tl.constexpr, mesh: tl.constexpr):
    at = tl.arange(0, 32)
    buffer = tle.gpu.alloc([32], dtype=tl.int32)
    buffer.store(at)
    tle.distributed_barrier(mesh)
    if LAST == "barrier":
        x = tl.load(tle.remote(tle.gpu.local_ptr(buffer, (at,)), 1 - tle.shard_id(mesh, 0), mesh))
        tle.distributed_barrier(mesh)
        tl.store(x_ptr + at, x)
    elif LAST == "access":
        tl.store(x_ptr + at, tl.load(tle.remote(tle.gpu.local_ptr(buffer, (at,)), 0, mesh)))
    else:
        for _ in range(tl.load(x_ptr)):
            tl.store(x_ptr + at, tl.load(tle.remote(tle.gpu.local_ptr(buffer, (at,)), 0, mesh)))
            tle.distributed_barrier(mesh)


@pytest.mark.parametrize(("last", "barriers"), [("barrier", 2), ("access", 2), ("loop", 3)])
def test_nobody_ends_early(last, barriers):
    """By a barrier at the end, where none stands behind the last access."""
    ptx = both_kernel.warmup(np.zeros(32, np.int32), last, PAIR, grid=(1,), target="cuda:90").asm["ptx"]
    assert ptx.count("barrier.cluster.arrive") == barriers
    assert ".explicitcluster" in ptx


@triton.jit
def relaxed_kernel(out_ptr, EARLY: tl.constexpr, mesh: tl.constexpr):
    """All have begun before they write to each other."""
    at = tl.arange(0, 64)
    rank = tle.shard_id(mesh, 0)
    own = tle.gpu.alloc([64], dtype=tl.int32)
    buffer = tle.gpu.alloc([64], dtype=tl.int32)
    own.store(at)
    there = tle.remote(tle.gpu.local_ptr(buffer, (at,)), 1 - rank, mesh)
    if EARLY:
        buffer.store(at)
        tle.distributed_barrier(mesh, order=tle.MemoryOrder.RELAXED)
        x = tl.load(there)
    else:
        tle.distributed_barrier(mesh, order=tle.MemoryOrder.RELAXED)
        # The program's own threads see what was written before.
        tl.store(there, tl.load(tle.gpu.local_ptr(own, (63 - at,))) + 100 * rank)
        x = at * 0
    tle.distributed_barrier(mesh)
    tl.store(out_ptr + rank * 64 + at, buffer.load() + x)


def test_relaxed(device):
    out = device.empty((2, 64), np.int32)
    relaxed_kernel[(1,)](out, False, PAIR)
    at = 63 - np.arange(64)
    np.testing.assert_array_equal(device.numpy(out), np.stack([at + 100, at]))


def test_relaxed_orders_nothing(monkeypatch):
    args = np.zeros((2, 64), np.int32), False, PAIR
    ptx = relaxed_kernel.warmup(*args, grid=(1,), target="cuda:90").asm["ptx"]
    assert ptx.count("barrier.cluster.arrive.relaxed") == 1 and ptx.count("barrier.cluster.arrive") == 2
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    with pytest.raises(triton.KernelError, match="shared-memory race"):
        relaxed_kernel[(1,)](np.zeros((2, 64), np.int32), True, PAIR)


@triton.jit
def give_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, mesh: tl.constexpr):
    # Each program hands a row to each of the others.
    rank = tle.shard_id(mesh, 0)
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    got = tle.gpu.alloc([M, N], dtype=tl.float32)
    mine = tl.program_id(0) * M * N
    tle.distributed_barrier(mesh)
    for to in range(M):
        row = tl.load(x_ptr + mine + to * N + columns)
        there = tle.remote(got.slot(rank), to)
        tl.store(tle.gpu.local_ptr(there, (columns,)), row)
    tle.distributed_barrier(mesh)
    tl.store(out_ptr + mine + rows[:, None] * N + columns[None, :], got.load())


def test_writes_to_all(device):
    x = np.random.default_rng(0).standard_normal((3, 4, 4, 40)).astype(np.float32)
    out = device.empty(x.shape, np.float32)
    give_kernel[(3,)](device.array(x), out, 4, 40, FOUR)
    np.testing.assert_array_equal(device.numpy(out), x.swapaxes(1, 2))


@triton.jit
def count_kernel(x_ptr, out_ptr, BINS: tl.constexpr, N: tl.constexpr, mesh: tl.constexpr):
    bins = tle.gpu.alloc([BINS], dtype=tl.int32, init_value=tl.zeros([BINS], tl.int32))
    tle.distributed_barrier(mesh)
    x = tl.load(x_ptr + program_number() * N + tl.arange(0, N))
    first = tle.remote(tle.gpu.local_ptr(bins, (x,)), (0, 0), mesh)
    old = tl.atomic_add(first, 1, mask=x != 3, sem="relaxed")
    tl.device_assert(old >= 0)
    tle.distributed_barrier(mesh)
    if tle.shard_id(mesh, "row") + tle.shard_id(mesh, "column") == 0:
        tl.store(out_ptr + tl.arange(0, BINS), bins.load())


def test_adds_to_the_first(device):
    x = np.random.default_rng(1).integers(0, 16, 6 * 128, dtype=np.int32)
    out = device.empty(16, np.int32)
    count_kernel[(1,)](device.array(x), out, 16, 128, GRID)
    want = np.bincount(x, minlength=16)
    want[3] = 0
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def member_kernel(out_ptr, part: tl.constexpr, whole: tl.constexpr, k, l, HOW: tl.constexpr):
    mine = tle.gpu.alloc([1], dtype=tl.int32)
    mine.store(tle.shard_id(whole, 0) * whole.shape[1] + tle.shard_id(whole, 1))
    tle.distributed_barrier(whole)
    if HOW == 0:
        theirs = tle.remote(mine, k, part)
    elif HOW == 1:
        theirs = tle.remote(mine, (k, l), part)
    else:
        theirs = tle.remote(mine, (1, l), part)
    tl.store(out_ptr + program_number(), tl.load(tle.gpu.local_ptr(theirs, (0,))))


@pytest.mark.parametrize(
    ("part", "how", "member"),
    [
        (GRID, 0, 4),
        (GRID, 1, 1 * 3 + 2),
        (GRID, 2, 1 * 3 + 2),
        (GRID[:, ::2], 0, 3),
        (GRID[1], 0, 5),
        (GRID[:, 1:], 1, 5),
        (GRID.flatten(), 0, 4),
        (GRID[:, ::2].flatten(), 0, 3),
    ],
    ids=range(8),
)
def test_members(device, part, how, member):
    # The number k: the last but one of six, the second of four, the last of three.
    k = {6: 4, 4: 2, 3: 2}[part.size] if how == 0 else 1
    last = part.shape[-1] - 1
    out = device.empty(6, np.int32)
    member_kernel[(1,)](out, part, GRID, k, last, how)
    np.testing.assert_array_equal(device.numpy(out), [member] * 6)


@triton.jit
def static_kernel(out_ptr, mesh: tl.constexpr):
    # The leader's flags, without a mesh; booleans, and a part of a buffer in several dimensions.
    flags = tle.gpu.alloc([2, 3, 8], dtype=tl.int1)
    at = tl.arange(0, 8)
    rank = tle.shard_id(mesh, 0)
    pointers = tle.gpu.local_ptr(flags.slot(1), (2, at))
    tl.store(pointers, (at + rank) % 2 == 0)
    tle.distributed_barrier()
    theirs = tl.load(tle.remote(pointers, 1))
    tl.store(out_ptr + tl.program_id(0) * 8 + at, theirs.to(tl.int32))


def test_booleans_of_a_rank(device):
    out = device.empty((2, 8), np.int32)
    static_kernel[(1,)](out, PAIR)
    np.testing.assert_array_equal(device.numpy(out), [[0, 1] * 4] * 2)


@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, mesh: tl.constexpr
):
    # Each of two programs has half of b, and both need all of it.
    rank = tle.shard_id(mesh, 0)
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    half = tle.gpu.alloc([K, N], dtype=tl.float16)
    half.store(tl.load(b_ptr + (rank * K + k)[:, None] * N + n[None, :]))
    tle.distributed_barrier(mesh)
    total = tl.zeros([M, N], tl.float32)
    for of in range(2):
        a = tl.load(a_ptr + (rank * M + m)[:, None] * 2 * K + (of * K + k)[None, :])
        b = tl.load(tle.gpu.local_ptr(tle.remote(half, of), (k[:, None], n[None, :])))
        total = tl.dot(a, b, total)
    tl.store(c_ptr + (rank * M + m)[:, None] * N + n[None, :], total)


def test_product_of_shared_halves(device):
    m, n, k = 64, 64, 32
    random = np.random.default_rng(2)
    a = random.standard_normal((2 * m, 2 * k)).astype(np.float16)
    b = random.standard_normal((2 * k, n)).astype(np.float16)
    out = device.empty((2 * m, n), np.float32)
    product_kernel[(1,)](device.array(a), device.array(b), out, m, n, k, PAIR)
    want = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(device.numpy(out), want, rtol=1e-3, atol=1e-3)


@triton.jit
def late_kernel(out_ptr, mesh: tl.constexpr):
    # The first one has nothing left to do when the other begins to read.
    mine = tle.gpu.alloc([32], dtype=tl.int32)
    at = tl.arange(0, 32)
    mine.store(at + 7)
    tle.distributed_barrier(mesh)
    if tle.shard_id(mesh, 0) == 1:
        total = tl.zeros([32], tl.int32)
        for _ in range(20):
            total += tl.load(tle.gpu.local_ptr(tle.remote(mine, 0), (at,)))
        tl.store(out_ptr + at, total)


def test_buffers_are_there_to_the_end(device):
    out = device.empty(32, np.int32)
    late_kernel[(1,)](out, PAIR)
    np.testing.assert_array_equal(device.numpy(out), 20 * (np.arange(32) + 7))


@triton.jit
def no_barrier_kernel(out_ptr, mesh: tl.constexpr):
    mine = tle.gpu.alloc([32], dtype=tl.int32)
    at = tl.arange(0, 32)
    mine.store(at)
    theirs = tl.load(tle.gpu.local_ptr(tle.remote(mine, 1 - tle.shard_id(mesh, 0)), (at,)))
    tl.store(out_ptr + at, theirs)


def test_the_simulator_finds_a_missing_barrier(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    out = np.zeros(32, np.int32)
    with pytest.raises(triton.KernelError, match=r"race|uninitialized"):
        no_barrier_kernel[(1,)](out, PAIR)


@triton.jit
def out_of_range_kernel(out_ptr, mesh: tl.constexpr, rank):
    mine = tle.gpu.alloc([4], dtype=tl.int32)
    tl.store(out_ptr, tl.load(tle.gpu.local_ptr(tle.remote(mine, rank), (0,))))
    tle.distributed_barrier(mesh)


def test_a_rank_that_is_out_of_range(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.KernelError, match="program 5 of a cluster that has 2"):
        out_of_range_kernel[(1,)](np.zeros(1, np.int32), PAIR, 5)


ERRORS = [
    ("tle.remote(b, -1, MESH)", "`shard_id` must be >= 0"),
    ("tle.remote(b, 2, MESH)", "`shard_id` 2 is out of range for the mesh, which has 2"),
    ("tle.remote(b, (0, 0), MESH)", "`shard_id` has 2 coordinates, and the mesh 1 axes"),
    ("tle.remote(b, (0,))", "needs `scope`"),
    ("tle.remote(b, 1.5, MESH)", "a scalar integer"),
    ("tle.remote(b, tl.arange(0, 2), MESH)", "a scalar integer"),
    ("tle.remote(tle.remote(b, 0, MESH), 1, MESH)", "is another program's already"),
    ("tle.remote(tle.remote(tle.gpu.local_ptr(b), 0, MESH), 1)", "is another program's already"),
    ("tle.remote(p, 0, MESH)", "a buffered_tensor, pointers into one, or barriers"),
    ("tle.remote(b, 0, MESH, space='device')", "which programs of other devices cannot reach"),
    ("tle.remote(b, 0, MESH, space='moon')", '"cluster", "device" or "node"'),
    ("tle.remote(b, 0, MESH, offset=1)", "`offset` of tle.remote is for memory of other devices"),
    ("tle.remote(b, 0, MESH).load()", "reached by pointers alone"),
    ("tle.remote(b, 0, MESH).store(1)", "reached by pointers alone"),
    ("tle.remote(b, 0)", "this kernel's form none"),
    ("tle.remote(b, 0, tle.device_mesh({'block': 2}))", "is no mesh of one"),
    ("tle.remote(b, 0, tle.device_mesh({'block': 2, 'block_cluster': 2}))", "has members of several"),
    ("tle.remote(b, 5); tle.distributed_barrier(MESH)", "there is no program 5 in the kernel's clusters"),
]


@pytest.mark.parametrize(("body", "message"), ERRORS, ids=range(len(ERRORS)))
def test_errors(body, message, tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text(
        "import tilewright as triton\nimport tilewright.language as tl\nfrom tilewright import tle\n\n\n@triton.jit\n"
        f"def kernel(p, MESH: tl.constexpr):\n    b = tle.gpu.alloc([4, 8], dtype=tl.int32)\n    {body}\n"
    )
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("wrong", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(triton.CompilationError) as error:
        module.kernel.warmup(np.zeros(1, np.int32), PAIR, grid=(1,))
    assert message in str(error.value) and "wrong.py:9" in str(error.value)


def test_older_gpus_have_no_clusters():
    with pytest.raises(triton.CompilationError, match="cluster"):
        late_kernel.warmup(np.zeros(32, np.int32), PAIR, grid=(1,), target="cuda:80")
