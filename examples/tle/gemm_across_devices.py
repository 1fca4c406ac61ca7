"""Matrix products over several devices, whose transfers go on while tiles are multiplied: c = a bᵀ with a of (M, K) and b of (N, K).

======================  =====================================  ==========================================================================
product                 each device has                        what is moved
======================  =====================================  ==========================================================================
``all_gather_gemm``     rows of a, and its own b and c         the rows of the others: some warps copy them, or store their own there, and say of each block of rows when it is there
``gemm_reduce_scatter`` columns of a and b                     sums: each device gets rows of c; a warp hands tiles over to their owner, whose own come last, and two add up what has come
``gemm_all_reduce``     columns of a and b                     the same, and whoever has added up a tile stores it at all
======================  =====================================  ==========================================================================

As many programs as the GPU has multiprocessors take tiles, one after the other; all are there at once. Signals tell of single tiles: who needs what others bring
has been busy with what it had itself, and what is sent goes its way beside the next product. Every signal is taken off by who has waited for it, so that launches can follow each other, in CUDA graphs, too. Run by
itself the program checks all three on a simulated mesh.
"""

import math

from gemm import tile_of
from gemm_pipe import add_slots, fill_slots

import tilewright as triton
import tilewright.language as tl
from tilewright import distributed, tle
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def is_last(counts_ptr):
    """Whether all other programs are done; then the counts are zero again."""
    last = tl.atomic_add(counts_ptr + 1, 1, sem="acq_rel") == tl.num_programs(0) - 1
    if last:
        tl.store(counts_ptr, 0)
        tl.store(counts_ptr + 1, 0)
    return last


@triton.jit
def multiply(
    reader, writer, tiles, K,
    M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Adds up the products of the slots, and gives each tile on."""
    at, to = reader.cursor(0), writer.cursor(0)
    for _ in range(tl.program_id(0), tiles, tl.num_programs(0)):
        acc, at = add_slots(reader, at, K, M, N, STEP)
        writer.acquire(to).tile.store(acc)
        writer.commit(to)
        to.advance()


# ---- all-gather, then the product --------------------------------------------------------------------------------


@triton.jit
def carry(
    a_ptr, rows, K,
    mesh: tl.constexpr, PUSH: tl.constexpr, TEAM: tl.constexpr, M: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Copies this program's part of the blocks of rows of the other devices, in the order in which tiles want them, or the other way round stores its own
    device's at the others. A team of programs shares a block; each loads a piece ahead of the one that it stores. Nobody copies before all have come, nor
    leaves before all have copied: tiles are multiplied meanwhile."""
    me = tle.shard_id(mesh, 0)
    tle.distributed_barrier(mesh)
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
    tle.distributed_barrier(mesh)


@triton.jit
def gathered_tile(tile, of_device, num_n, me, DEVICES: tl.constexpr, GROUP: tl.constexpr):
    """The device whose rows a tile has, which of its blocks of rows, and which of columns: the device's own rows first, then those of the next ones."""
    owner = (me + tile // (of_device * num_n)) % DEVICES
    tile_m, tile_n = tile_of(tile % (of_device * num_n), of_device, num_n, GROUP)
    return owner, owner * of_device + tile_m, tile_n


@triton.jit
def bring(
    writer, a_desc, b_desc, counts_ptr, of_device, num_n, K,
    mesh: tl.constexpr, TEAM: tl.constexpr, M: tl.constexpr, N: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Fills the slots, tile after tile, with what is there. Who is the last to do so leaves the signals as they were."""
    me = tle.shard_id(mesh, 0)
    at = writer.cursor(0)
    for tile in range(tl.program_id(0), mesh.size * of_device * num_n, tl.num_programs(0)):
        owner, block, tile_n = gathered_tile(tile, of_device, num_n, me, mesh.size, GROUP)
        if owner != me:
            tle.signal_wait(None, block, target=TEAM)
        at = fill_slots(writer, at, a_desc, b_desc, block * M, tile_n * N, K)
    if is_last(counts_ptr):
        blocks = mesh.size * of_device
        for begin in range(0, blocks, 128):
            block = begin + tl.arange(0, 128)
            come = (block < blocks) & (block // of_device != me)
            tle.signal(None, me, block, tl.where(come, -TEAM, 0), op="add")


@triton.jit
def put(
    reader,
    c_desc,
    of_device,
    num_n,
    mesh: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Stores each tile."""
    me = tle.shard_id(mesh, 0)
    at = reader.cursor(0)
    for tile in range(tl.program_id(0), mesh.size * of_device * num_n, tl.num_programs(0)):
        _, block, tile_n = gathered_tile(tile, of_device, num_n, me, mesh.size, GROUP)
        tle.gpu.copy(reader.wait(at).slot.tile, c_desc, [M, N], [block * M, tile_n * N])
        reader.release(at)
        at.advance()


@triton.jit
def all_gather_kernel(
    a_ptr, a_desc, b_desc, c_desc, counts_ptr, rows, columns, K,
    mesh: tl.constexpr, PUSH: tl.constexpr, TEAM: tl.constexpr, SLOTS: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr, GROUP: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """``rows`` are those that each device has. Two warps of each program copy rows of others, one fills a ring of slots, eight multiply, and one stores."""
    of_device, num_n = rows // M, tl.cdiv(columns, N)
    a = tle.gpu.alloc([SLOTS, M, STEP], dtype=a_desc.dtype)
    b = tle.gpu.alloc([SLOTS, N, STEP], dtype=b_desc.dtype)
    tile = tle.gpu.alloc([1, M, N], dtype=c_desc.dtype)
    operands = tle.pipe(capacity=SLOTS, name="operands", a=a, b=b)
    made = tle.pipe(capacity=1, name="made", tile=tile)
    tle.gpu.warp_specialize(
        [
            (multiply, (operands.reader(), made.writer(), mesh.size * of_device * num_n, K, M, N, STEP)),
            (
                bring,
                (operands.writer(), a_desc, b_desc, counts_ptr, of_device, num_n, K, mesh, TEAM, M, N, GROUP),
            ),
            (put, (made.reader(), c_desc, of_device, num_n, mesh, M, N, GROUP)),
            (carry, (a_ptr, rows, K, mesh, PUSH, TEAM, M, SIZE)),
        ],
        [1, 1, 2],
        [96, 96, 96],
    )


def slots_for(m, n, step):
    """How many slots there is room for beside a tile that is to be stored, of 227 KB and elements of 16 bits."""
    return min(4, ((227 << 10) - 2 * m * n) // (2 * (m + n) * step))


def rows_of_each(rows, m, mesh):
    """How many rows each device has, in whole tiles."""
    if mesh.size < 2:
        raise ValueError("a mesh of one device has nobody to share the product with: use gemm.py")
    own = rows // mesh.size
    if own * mesh.size != rows or own % m:
        raise ValueError(f"{rows} rows do not divide into blocks of {m} on each of {mesh.size} devices")
    return own


def check_signals(count, of):
    """Each has a signal of its own."""
    if count > distributed.SIGNALS:
        raise ValueError(f"{count} {of}, and there are {distributed.SIGNALS} signals: take larger ones")


def all_gather_gemm(
    a, b, c, counts, mesh, block=(128, 192, 64), programs=132, team=11, push=False, group=8, num_warps=8
):
    """``c = a @ b.T`` on each device of ``mesh``, whose own rows of ``a`` are where they belong in it; the others come there, too.

    :param a: (M, K), in symmetric memory; each device's rows are multiples of the tile's.
    :param counts: two 32-bit integers, zero before the first launch.
    :param block: rows and columns of a tile, and what a slot has of the inner dimension.
    :param team: how many programs copy a block of rows together.
    :param push: whether they store the device's own rows at the others, or fetch those of the others.
    """
    (rows, inner), columns = a.shape, b.shape[0]
    m, n, step = block
    own = rows_of_each(rows, m, mesh)
    check_signals(rows // m, "blocks of rows")
    programs = min(programs, triton.cdiv(rows, m) * triton.cdiv(columns, n))
    team = min(team, programs)
    all_gather_kernel[(programs,)](
        a,
        TensorDescriptor.from_tensor(a, [m, step]),
        TensorDescriptor.from_tensor(b, [n, step]),
        TensorDescriptor.from_tensor(c, [m, n]),
        counts, own, columns, inner, mesh, push, team, slots_for(m, n, step), m, n, step, group, min(m * inner // team, 1 << 12),
        num_warps=num_warps,
    )  # fmt: skip


# ---- the product, then sums --------------------------------------------------------------------------------------


@triton.jit
def at_each(pointer, rows, columns, mesh: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """Descriptors of a matrix that each device has in symmetric memory, in the order of the devices."""
    found = ()
    for k in tl.static_range(mesh.size):
        there = tle.remote(pointer, k, mesh)
        found = found + (tl.make_tensor_descriptor(there, [rows, columns], [columns, 1], [M, N]),)
    return found


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
def bring_parts(
    writer, a_desc, b_desc, rows, columns, K, ahead,
    mesh: tl.constexpr, M: tl.constexpr, N: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Fills the slots, tile after tile."""
    of_device, num_n = rows // M, tl.cdiv(columns, N)
    at = writer.cursor(0)
    for turn in range(tl.program_id(0), mesh.size * of_device * num_n, tl.num_programs(0)):
        owner, tile = tile_at(turn, of_device * num_n, ahead, tle.shard_id(mesh, 0), mesh.size)
        tile_m, tile_n = tile_of(tile, of_device, num_n, GROUP)
        at = fill_slots(writer, at, a_desc, b_desc, owner * rows + tile_m * M, tile_n * N, K)


@triton.jit
def hand_over(
    reader, parts, rows, columns, ahead,
    mesh: tl.constexpr, M: tl.constexpr, N: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Stores each tile among its owner's ``parts``, where those of this device are, and tells the owner."""
    me = tle.shard_id(mesh, 0)
    of_device, num_n = rows // M, tl.cdiv(columns, N)
    at = reader.cursor(0)
    # Nobody hands over before the others are there.
    tle.distributed_barrier(mesh)
    for turn in range(tl.program_id(0), mesh.size * of_device * num_n, tl.num_programs(0)):
        owner, tile = tile_at(turn, of_device * num_n, ahead, me, mesh.size)
        tile_m, tile_n = tile_of(tile, of_device, num_n, GROUP)
        slot = reader.wait(at).slot
        for k in tl.static_range(mesh.size):
            if owner == k:
                tle.gpu.copy(slot.tile, parts[k], [M, N], [me * rows + tile_m * M, tile_n * N])
        reader.release(at)
        at.advance()
        tle.signal(None, owner, tile)


@triton.jit
def add_up(
    parts_ptr, c_ptr, rows, columns,
    mesh: tl.constexpr, TO_ALL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, GROUP: tl.constexpr, HIGH: tl.constexpr,
):  # fmt: skip
    """Adds up what has been handed over for this program's tiles of this device's rows."""
    me = tle.shard_id(mesh, 0)
    of_device, num_n, size = rows // M, tl.cdiv(columns, N), rows.to(tl.int64) * columns
    for tile in range(tl.program_id(0), of_device * num_n, tl.num_programs(0)):
        tile_m, tile_n = tile_of(tile, of_device, num_n, GROUP)
        tle.signal_wait(None, tile, target=mesh.size)
        tle.signal(None, me, tile, -mesh.size, op="add")
        column = tile_n * N + tl.arange(0, N)[None, :]
        for begin in range(tile_m * M, tile_m * M + M, HIGH):
            at = (begin + tl.arange(0, HIGH)[:, None]).to(tl.int64) * columns + column
            inside = column < columns
            total = tl.zeros([HIGH, N], tl.float32)
            for k in tl.static_range(mesh.size):
                total += tl.load(parts_ptr + k * size + at, mask=inside, other=0)
            value = total.to(c_ptr.dtype.element_ty)
            if TO_ALL:
                for k in tl.static_range(mesh.size):
                    there = tle.remote(c_ptr + me * size, (me + k) % mesh.size, mesh)
                    tl.store(there + at, value, mask=inside)
            else:
                tl.store(c_ptr + at, value, mask=inside)
    if TO_ALL:
        # What others store is there when the kernel ends.
        tle.distributed_barrier(mesh)


@triton.jit
def summed_kernel(
    a_desc, b_desc, parts_ptr, c_ptr, rows, columns, K, ahead,
    mesh: tl.constexpr, TO_ALL: tl.constexpr, SLOTS: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr, GROUP: tl.constexpr, HIGH: tl.constexpr,
):  # fmt: skip
    """``rows`` are those that each device adds up. One warp fills a ring of slots, eight multiply, one hands over, and two add up."""
    a = tle.gpu.alloc([SLOTS, M, STEP], dtype=a_desc.dtype)
    b = tle.gpu.alloc([SLOTS, N, STEP], dtype=b_desc.dtype)
    tile = tle.gpu.alloc([1, M, N], dtype=parts_ptr.dtype.element_ty)
    operands = tle.pipe(capacity=SLOTS, name="operands", a=a, b=b)
    made = tle.pipe(capacity=1, name="made", tile=tile)
    parts = at_each(parts_ptr, mesh.size * rows, columns, mesh, M, N)
    tiles = mesh.size * (rows // M) * tl.cdiv(columns, N)
    tle.gpu.warp_specialize(
        [
            (multiply, (operands.reader(), made.writer(), tiles, K, M, N, STEP)),
            (bring_parts, (operands.writer(), a_desc, b_desc, rows, columns, K, ahead, mesh, M, N, GROUP)),
            (hand_over, (made.reader(), parts, rows, columns, ahead, mesh, M, N, GROUP)),
            (add_up, (parts_ptr, c_ptr, rows, columns, mesh, TO_ALL, M, N, GROUP, HIGH)),
        ],
        [1, 1, 2],
        [96, 96, 96],
    )


def summed_gemm(
    a, b, parts, c, mesh, to_all, block=(128, 192, 64), programs=132, group=8, ahead=16, num_warps=8
):
    """``c = Σ a @ b.T`` over the devices of ``mesh``, each of which has some of the columns of both: its rows of ``c``, or with ``to_all`` all of it.

    :param parts: (devices, rows of each, N), in symmetric memory, for what the devices hand to each other.
    :param c: this device's rows; with ``to_all`` (M, N) in symmetric memory.
    :param ahead: by how many tiles those of the others are ahead of the device's own.
    """
    (rows, inner), columns = a.shape, b.shape[0]
    m, n, step = block
    own = rows_of_each(rows, m, mesh)
    tiles = own // m * triton.cdiv(columns, n)
    check_signals(tiles, "tiles of each device")
    summed_kernel[(min(programs, mesh.size * tiles),)](
        TensorDescriptor.from_tensor(a, [m, step]),
        TensorDescriptor.from_tensor(b, [n, step]),
        parts, c, own, columns, inner, min(ahead, tiles), mesh, to_all, slots_for(m, n, step), m, n, step, group, math.gcd(m, 8),
        num_warps=num_warps,
    )  # fmt: skip


def gemm_reduce_scatter(a, b, parts, c, mesh, **options):
    summed_gemm(a, b, parts, c, mesh, False, **options)


def gemm_all_reduce(a, b, parts, c, mesh, **options):
    summed_gemm(a, b, parts, c, mesh, True, **options)


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
            all_gather_gemm(gathered, b, c, counts, mesh, team=2, push=push, **how)
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
            for ahead in (1, 264):
                multiply(*map(distributed.from_parts, cut), parts, c, mesh, ahead=ahead, **how)
            for part, want in zip(c.parts, wanted):
                np.testing.assert_array_equal(part, want)
        print(f"{devices} devices: {name}")


def main():
    for devices in (2, 3):
        check(devices)


if __name__ == "__main__":
    main()
