"""Matrix products over several devices, whose transfers go on while tiles are multiplied: c = a bᵀ with a of (M, K) and b of (N, K).

======================  =====================================  ==========================================================================
product                 each device has                        what is moved
======================  =====================================  ==========================================================================
``all_gather_gemm``     rows of a, and its own b and c         the rows of the others: some warps copy them, or store their own there, and say of each block of rows when it is there
``gemm_reduce_scatter`` columns of a and b                     sums: each device gets rows of c; tiles of others' rows are multiplied ahead of its own, and handed over
``gemm_all_reduce``     columns of a and b                     the same, and whoever has added up a tile stores it at all
======================  =====================================  ==========================================================================

As many programs as the GPU has multiprocessors take tiles, one after the other; all are there at once. Signals tell of single tiles: who needs what others bring
has been busy with what it had itself, and what is sent goes its way behind the next product. Every signal is taken off by who has waited for it, so that launches can follow each other, in CUDA graphs, too. Run by
itself the program checks all three on a simulated mesh.
"""

from gemm import tile_of
from gemm_pipe import add_slots, fill_slots
from persistent_matmul import store_tile

import tilewright as triton
import tilewright.language as tl
from tilewright import distributed, tle
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def product(a_desc, b_desc, row, column, K, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr):
    """A tile of a bᵀ."""
    acc = tl.zeros([M, N], tl.float32)
    for k in range(0, K, STEP):
        acc = tl.dot(a_desc.load([row, k]), b_desc.load([column, k]).T, acc)
    return acc


@triton.jit
def places(tile_m, tile_n, columns, M: tl.constexpr, N: tl.constexpr):
    """Where the elements of a tile are in a matrix of so many columns, and which there are."""
    along = tile_n * N + tl.arange(0, N)[None, :]
    return (tile_m * M + tl.arange(0, M)[:, None]) * columns + along, along < columns


@triton.jit
def next_tile(counts_ptr):
    """The tiles of the launch are given out one by one: who has had to wait, or to copy, takes fewer."""
    return tl.atomic_add(counts_ptr, 1, sem="relaxed")


@triton.jit
def is_last(counts_ptr):
    """Whether all other programs are done; then the counts are zero again."""
    last = tl.atomic_add(counts_ptr + 1, 1, sem="acq_rel") == tl.num_programs(0) - 1
    if last:
        tl.store(counts_ptr, 0)
        tl.store(counts_ptr + 1, 0)
    return last


# ---- all-gather, then the product --------------------------------------------------------------------------------


@triton.jit
def carry(
    a_ptr, rows, K,
    mesh: tl.constexpr, PUSH: tl.constexpr, TEAM: tl.constexpr, M: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Copies this program's part of the blocks of rows of the other devices, in the order in which tiles want them, or the other way round stores its own
    device's at the others. A team of programs shares a block; each loads a piece ahead of the one that it stores."""
    me = tle.shard_id(mesh, 0)
    of_device, teams = rows // M, tl.num_programs(0) // TEAM
    team, member = tl.program_id(0) // TEAM, tl.program_id(0) % TEAM
    # (Programs that make no team have nothing to copy.)
    blocks = mesh.size * of_device if team < teams else 0
    for at in range(of_device + team, blocks, teams):
        owner = (me + at // of_device) % mesh.size
        block = owner * of_device + at % of_device
        if PUSH:
            other = (me + mesh.size - at // of_device) % mesh.size
            block = me * of_device + at % of_device
            source = a_ptr + block.to(tl.int64) * M * K
            target = tle.remote(source, other, mesh)
        else:
            other = me
            target = a_ptr + block.to(tl.int64) * M * K
            source = tle.remote(target, owner, mesh)
        place = member * SIZE + tl.arange(0, SIZE)
        value = tl.load(source + place, mask=place < M * K)
        for _ in range(member * SIZE, M * K, TEAM * SIZE):
            ahead = place + TEAM * SIZE
            next = tl.load(source + ahead, mask=ahead < M * K)
            tl.store(target + place, value, mask=place < M * K)
            place, value = ahead, next
        tle.signal(None, other, block)


@triton.jit
def gathered_tile(tile, of_device, num_n, me, DEVICES: tl.constexpr, GROUP: tl.constexpr):
    """The device whose rows a tile has, which of its blocks of rows, and which of columns: the device's own rows first, then those of the next ones."""
    owner = (me + tile // (of_device * num_n)) % DEVICES
    tile_m, tile_n = tile_of(tile % (of_device * num_n), of_device, num_n, GROUP)
    return owner, owner * of_device + tile_m, tile_n


@triton.jit
def bring(
    writer, a_desc, b_desc, of_device, num_n, K,
    mesh: tl.constexpr, TEAM: tl.constexpr, M: tl.constexpr, N: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Fills the slots, tile after tile, with what is there."""
    me = tle.shard_id(mesh, 0)
    at = writer.cursor(0)
    for tile in range(tl.program_id(0), mesh.size * of_device * num_n, tl.num_programs(0)):
        owner, block, tile_n = gathered_tile(tile, of_device, num_n, me, mesh.size, GROUP)
        if owner != me:
            tle.signal_wait(None, block, target=TEAM)
        at = fill_slots(writer, at, a_desc, b_desc, block * M, tile_n * N, K)


@triton.jit
def multiply(
    reader, c_desc, of_device, num_n, K,
    mesh: tl.constexpr, HALVES: tl.constexpr, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Adds up the products of the slots, and stores each tile."""
    me = tle.shard_id(mesh, 0)
    at = reader.cursor(0)
    for tile in range(tl.program_id(0), mesh.size * of_device * num_n, tl.num_programs(0)):
        _, block, tile_n = gathered_tile(tile, of_device, num_n, me, mesh.size, GROUP)
        acc, at = add_slots(reader, at, K, M, N, STEP)
        store_tile(c_desc, acc, block * M, tile_n * N, HALVES)


@triton.jit
def all_gather_kernel(
    a_ptr, a_desc, b_desc, c_desc, counts_ptr, rows, columns, K,
    mesh: tl.constexpr, PUSH: tl.constexpr, TEAM: tl.constexpr, SLOTS: tl.constexpr, HALVES: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr, GROUP: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """``rows`` are those that each device has. Two warps of each program copy rows of others, one fills a ring of slots, the others multiply."""
    of_device, num_n = rows // M, tl.cdiv(columns, N)
    a = tle.gpu.alloc([SLOTS, M, STEP], dtype=a_desc.dtype)
    b = tle.gpu.alloc([SLOTS, N, STEP], dtype=b_desc.dtype)
    pipe = tle.pipe(capacity=SLOTS, name="operands", a=a, b=b)
    tle.distributed_barrier(mesh)
    tle.gpu.warp_specialize(
        [
            (multiply, (pipe.reader(), c_desc, of_device, num_n, K, mesh, HALVES, M, N, STEP, GROUP)),
            (bring, (pipe.writer(), a_desc, b_desc, of_device, num_n, K, mesh, TEAM, M, N, GROUP)),
            (carry, (a_ptr, rows, K, mesh, PUSH, TEAM, M, SIZE)),
        ],
        [1, 2],
        [96, 96],
    )
    if is_last(counts_ptr):
        # It leaves the signals as they were.
        me = tle.shard_id(mesh, 0)
        for block in range(mesh.size * of_device):
            if block // of_device != me:
                tle.signal(None, me, block, -TEAM, op="add")
    tle.distributed_barrier(mesh)


def fitting(rows, columns, programs):
    """The tile with which programs are done first, in columns: one of 224 needs 7/8 of the time of one of 256, and may fill the last round better."""
    return min(
        (256, 224, 192), key=lambda n: -(-triton.cdiv(rows, 128) * triton.cdiv(columns, n) // programs) * n
    )


def all_gather_gemm(
    a, b, c, counts, mesh, block=None, halves=None, programs=132, team=11, push=False, group=8, num_warps=8
):
    """``c = a @ b.T`` on each device of ``mesh``, whose own rows of ``a`` are where they belong in it; the others come there, too.

    :param a: (M, K), in symmetric memory; each device's rows are multiples of the tile's.
    :param counts: two 32-bit integers, zero before the first launch.
    :param block: rows and columns of a tile, and what a slot has of the inner dimension.
    :param halves: whether tiles are stored as two halves, which need half the buffer: where they are large.
    :param team: how many programs copy a block of rows together.
    :param push: whether they store the device's own rows at the others, or fetch those of the others.
    """
    (rows, inner), columns = a.shape, b.shape[0]
    m, n, step = block or (128, fitting(rows, columns, programs), 64)
    own = rows // mesh.size
    if own * mesh.size != rows or own % m:
        raise ValueError(f"{rows} rows do not divide into blocks of {m} on each of {mesh.size} devices")
    programs = min(programs, triton.cdiv(rows, m) * triton.cdiv(columns, n))
    team = min(team, programs)
    wide = n // 2 if (n > 224 if halves is None else halves) else n
    # What the tile leaves of 227 KB, for elements of 16 bits.
    slots = min(4, ((227 << 10) - 2 * m * wide) // (2 * (m + n) * step))
    all_gather_kernel[(programs,)](
        a,
        TensorDescriptor.from_tensor(a, [m, step]),
        TensorDescriptor.from_tensor(b, [n, step]),
        TensorDescriptor.from_tensor(c, [m, wide]),
        counts, own, columns, inner, mesh, push, team, slots, wide < n, m, n, step, group, min(m * inner // team, 1 << 12),
        num_warps=num_warps,
    )  # fmt: skip


# ---- the product, then sums --------------------------------------------------------------------------------------


@triton.jit
def tile_at(turn, tiles, ahead, me, DEVICES: tl.constexpr):
    """The device whose tile is multiplied at a turn, and which of its ``tiles`` it is: ``ahead`` tiles of each other device first, then one of each, its own last."""
    OTHERS: tl.constexpr = DEVICES - 1
    mixed = turn - ahead * OTHERS
    place, owner = mixed // DEVICES, mixed % DEVICES + 1
    if owner < DEVICES:
        place += ahead
    if mixed < 0:
        place, owner = turn // OTHERS, turn % OTHERS + 1
    if mixed >= (tiles - ahead) * DEVICES:
        place, owner = turn - tiles * OTHERS, DEVICES
    return (me + owner) % DEVICES, place


@triton.jit
def hand_over(parts_ptr, acc, at, inside, owner, size, me, mesh: tl.constexpr):
    """Stores a tile among the owner's parts, where those of this device are; ``size`` elements a device."""
    there = tle.remote(parts_ptr + me.to(tl.int64) * size, owner, mesh)
    tl.store(there + at, acc.to(parts_ptr.dtype.element_ty), mask=inside)


@triton.jit
def summed(parts_ptr, acc, at, inside, tile, size, me, mesh: tl.constexpr):
    """A tile of this device's rows, with what the others have handed over."""
    for _ in tl.static_range(mesh.size - 1):
        tle.signal_wait(None, tile)
    for k in tl.static_range(1, mesh.size):
        part = parts_ptr + ((me + k) % mesh.size).to(tl.int64) * size
        acc += tl.load(part + at, mask=inside, other=0)
    return acc.to(parts_ptr.dtype.element_ty)


@triton.jit
def summed_kernel(
    a_desc, b_desc, parts_ptr, c_ptr, counts_ptr, rows, columns, K, ahead,
    mesh: tl.constexpr, TO_ALL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """``rows`` are those that each device adds up. At ``parts_ptr`` are, of each device, its products for this one's rows."""
    me = tle.shard_id(mesh, 0)
    of_device, num_n = rows // M, tl.cdiv(columns, N)
    tiles, size = of_device * num_n, rows * columns
    tle.distributed_barrier(mesh)
    # What has been handed over is told only behind the next product: meanwhile it is on its way.
    told, told_tile = me, 0
    turn = next_tile(counts_ptr)
    while turn < mesh.size * tiles:
        owner, tile = tile_at(turn, tiles, ahead, me, mesh.size)
        tile_m, tile_n = tile_of(tile, of_device, num_n, GROUP)
        acc = product(a_desc, b_desc, owner * rows + tile_m * M, tile_n * N, K, M, N, STEP)
        if told != me:
            tle.signal(None, told, told_tile)
        at, inside = places(tile_m, tile_n, columns, M, N)
        if owner != me:
            hand_over(parts_ptr, acc, at, inside, owner, size, me, mesh)
        else:
            total = summed(parts_ptr, acc, at, inside, tile, size, me, mesh)
            if TO_ALL:
                for k in tl.static_range(mesh.size):
                    there = tle.remote(c_ptr + me.to(tl.int64) * size, (me + k) % mesh.size, mesh)
                    tl.store(there + at, total, mask=inside)
            else:
                tl.store(c_ptr + at, total, mask=inside)
        told, told_tile = owner, tile
        turn = next_tile(counts_ptr)
    if told != me:
        tle.signal(None, told, told_tile)
    is_last(counts_ptr)
    tle.distributed_barrier(mesh)


def summed_gemm(
    a, b, parts, c, counts, mesh, to_all, block=(128, 256, 64), programs=132, group=8, ahead=66, **options
):
    """``c = Σ a @ b.T`` over the devices of ``mesh``, each of which has some of the columns of both: its rows of ``c``, or with ``to_all`` all of it.

    :param parts: (devices, rows of each, N), in symmetric memory, for what the devices hand to each other.
    :param c: this device's rows; with ``to_all`` (M, N) in symmetric memory.
    :param counts: two 32-bit integers, zero before the first launch.
    :param ahead: by how many tiles those of the others are ahead of the device's own.
    """
    (rows, inner), columns = a.shape, b.shape[0]
    m, n, step = block
    own = rows // mesh.size
    if own * mesh.size != rows or own % m:
        raise ValueError(f"{rows} rows do not divide into blocks of {m} on each of {mesh.size} devices")
    tiles = own // m * triton.cdiv(columns, n)
    if tiles > distributed.SIGNALS:
        raise ValueError(
            f"{tiles} tiles of each device, and there are {distributed.SIGNALS} signals: take larger ones"
        )
    summed_kernel[(min(programs, mesh.size * tiles),)](
        TensorDescriptor.from_tensor(a, [m, step]),
        TensorDescriptor.from_tensor(b, [n, step]),
        parts, c, counts, own, columns, inner, min(ahead, tiles), mesh, to_all, m, n, step, group, **options,
    )  # fmt: skip


def gemm_reduce_scatter(a, b, parts, c, counts, mesh, **options):
    summed_gemm(a, b, parts, c, counts, mesh, False, **options)


def gemm_all_reduce(a, b, parts, c, counts, mesh, **options):
    summed_gemm(a, b, parts, c, counts, mesh, True, **options)


def check(devices):
    """Compares the three on a simulated mesh with NumPy."""
    import numpy as np

    from tilewright.testing import simulated_mesh

    own, columns, inner = 64, 80, 64
    rows = devices * own
    mesh = tle.device_mesh({"device": devices})
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (n, devices * inner)).astype(np.float16) for n in (rows, columns))
    whole = a.astype(np.float32) @ b.T.astype(np.float32)
    how = dict(block=(32, 32, 32), programs=3)

    with simulated_mesh(1, devices):
        # Each has its rows of a, and all of b.
        filled = [np.where(np.arange(rows)[:, None] // own == rank, a, 0) for rank in range(devices)]
        counts = distributed.zeros(2, np.int32)
        for push in (False, True):
            gathered, c = distributed.from_parts(filled), distributed.zeros((rows, columns), np.float16)
            all_gather_gemm(gathered, b, c, counts, mesh, halves=push, team=2, push=push, **how)
            for part in c.parts:
                np.testing.assert_array_equal(part, whole)
    print(f"{devices} devices: all-gather, then the product")

    cut = [[np.ascontiguousarray(part) for part in np.split(x, devices, 1)] for x in (a, b)]
    for name, multiply, wanted in (
        ("the product, then reduce-scatter", gemm_reduce_scatter, np.split(whole, devices)),
        ("the product, then all-reduce", gemm_all_reduce, [whole] * devices),
    ):
        with simulated_mesh(1, devices):
            parts = distributed.zeros((devices, own, columns), np.float16)
            c = distributed.zeros(wanted[0].shape, np.float16)
            counts = distributed.zeros(2, np.int32)
            for ahead in (1, 264):
                multiply(*map(distributed.from_parts, cut), parts, c, counts, mesh, ahead=ahead, **how)
            for part, want in zip(c.parts, wanted):
                np.testing.assert_array_equal(part, want)
        print(f"{devices} devices: {name}")


def main():
    for devices in (2, 3):
        check(devices)


if __name__ == "__main__":
    main()
