"""Matrix products over several devices, whose transfers go on while tiles are multiplied: c = a bᵀ with a of (M, K) and b of (N, K).

======================  =====================================  ==========================================================================
product                 each device has                        what is moved
======================  =====================================  ==========================================================================
``all_gather_gemm``     rows of a, and its own b and c         the rows of the others: some programs copy them, or store their own there, and say of each block of rows when it is there
``gemm_reduce_scatter`` columns of a and b                     sums: each device gets rows of c; tiles of others' rows are multiplied ahead of its own, and handed over
``gemm_all_reduce``     columns of a and b                     the same, and whoever has added up a tile stores it at all
======================  =====================================  ==========================================================================

As many programs as the GPU has multiprocessors take tiles, one after the other; all are there at once. Signals tell of single tiles: who needs what others bring
has been busy with what it had itself, and what is sent goes its way behind the next product. Every signal is taken off by who has waited for it, so that launches can follow each other, in CUDA graphs, too. Run by
itself the program checks all three on a simulated mesh.
"""

from gemm import place_of

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
def bring(
    a_ptr, copier, K, rows, mesh: tl.constexpr, COPIERS: tl.constexpr, M: tl.constexpr, SIZE: tl.constexpr
):
    """Copies this program's share of each block of rows of the other devices, in the order in which tiles want them."""
    me = tle.shard_id(mesh, 0)
    for at in range(rows // M, mesh.size * (rows // M)):
        owner = (me + at // (rows // M)) % mesh.size
        block = owner * (rows // M) + at % (rows // M)
        here = a_ptr + block.to(tl.int64) * M * K
        there = tle.remote(here, owner, mesh)
        for begin in range(copier * SIZE, M * K, COPIERS * SIZE):
            place = begin + tl.arange(0, SIZE)
            tl.store(here + place, tl.load(there + place, mask=place < M * K), mask=place < M * K)
        tle.signal(None, me, block)


@triton.jit
def send(
    a_ptr, copier, K, rows, mesh: tl.constexpr, COPIERS: tl.constexpr, M: tl.constexpr, SIZE: tl.constexpr
):
    """The other way round: stores this program's share of each block of its own device's rows at the others, in the order in which they want them."""
    me = tle.shard_id(mesh, 0)
    for at in range(rows // M, mesh.size * (rows // M)):
        other = (me + mesh.size - at // (rows // M)) % mesh.size
        block = me * (rows // M) + at % (rows // M)
        here = a_ptr + block.to(tl.int64) * M * K
        there = tle.remote(here, other, mesh)
        for begin in range(copier * SIZE, M * K, COPIERS * SIZE):
            place = begin + tl.arange(0, SIZE)
            tl.store(there + place, tl.load(here + place, mask=place < M * K), mask=place < M * K)
        tle.signal(None, other, block)


@triton.jit
def all_gather_kernel(
    a_ptr, a_desc, b_desc, c_desc, counts_ptr, rows, columns, K,
    mesh: tl.constexpr, PUSH: tl.constexpr, COPIERS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr, GROUP: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """``rows`` are those that each device has; at ``counts_ptr`` are the next tile, and how many programs are done."""
    me = tle.shard_id(mesh, 0)
    tle.distributed_barrier(mesh)
    if tl.program_id(0) < COPIERS:
        if PUSH:
            send(a_ptr, tl.program_id(0), K, rows, mesh, COPIERS, M, SIZE)
        else:
            bring(a_ptr, tl.program_id(0), K, rows, mesh, COPIERS, M, SIZE)
    of_device, num_n = rows // M, tl.cdiv(columns, N)
    tile = next_tile(counts_ptr)
    while tile < mesh.size * of_device * num_n:
        # The device's own rows first, then those of the next ones.
        owner = (me + tile // (of_device * num_n)) % mesh.size
        tile_m, tile_n = place_of(tile % (of_device * num_n), of_device, num_n, GROUP)
        block = owner * of_device + tile_m
        if owner != me:
            tle.signal_wait(None, block, target=COPIERS)
        acc = product(a_desc, b_desc, block * M, tile_n * N, K, M, N, STEP)
        left, right = tl.split(tl.permute(tl.reshape(acc, (M, 2, N // 2)), (0, 2, 1)))
        c_desc.store([block * M, tile_n * N], left.to(c_desc.dtype))
        c_desc.store([block * M, tile_n * N + N // 2], right.to(c_desc.dtype))
        tile = next_tile(counts_ptr)
    if is_last(counts_ptr):
        # It leaves the signals as they were.
        for block in range(mesh.size * of_device):
            if block // of_device != me:
                tle.signal(None, me, block, -COPIERS, op="add")
    tle.distributed_barrier(mesh)


def all_gather_gemm(
    a, b, c, counts, mesh, block=(128, 256, 64), programs=132, copiers=16, push=False, group=8, **options
):
    """``c = a @ b.T`` on each device of ``mesh``, whose own rows of ``a`` are where they belong in it; the others come there, too.

    :param a: (M, K), in symmetric memory; each device's rows are multiples of the tile's.
    :param counts: two 32-bit integers, zero before the first launch.
    :param copiers: how many programs copy before they multiply.
    :param push: whether they store the device's own rows at the others, or fetch those of the others.
    """
    (rows, inner), columns = a.shape, b.shape[0]
    m, n, step = block
    own = rows // mesh.size
    if own * mesh.size != rows or own % m:
        raise ValueError(f"{rows} rows do not divide into blocks of {m} on each of {mesh.size} devices")
    programs = min(programs, triton.cdiv(rows, m) * triton.cdiv(columns, n))
    copiers = min(copiers, programs)
    all_gather_kernel[(programs,)](
        a,
        TensorDescriptor.from_tensor(a, [m, step]),
        TensorDescriptor.from_tensor(b, [n, step]),
        TensorDescriptor.from_tensor(c, [m, n // 2]),
        counts, own, columns, inner, mesh, push, copiers, m, n, step, group, min(m * inner // copiers, 1 << 14), **options,
    )  # fmt: skip


# ---- the product, then sums --------------------------------------------------------------------------------------


@triton.jit
def tile_of(turn, tiles, ahead, me, DEVICES: tl.constexpr):
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
        owner, tile = tile_of(turn, tiles, ahead, me, mesh.size)
        tile_m, tile_n = place_of(tile, of_device, num_n, GROUP)
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
    a, b, parts, c, counts, mesh, to_all, block=(128, 256, 64), programs=132, group=8, ahead=264, **options
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
            all_gather_gemm(gathered, b, c, counts, mesh, copiers=2, push=push, **how)
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
