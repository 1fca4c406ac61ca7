"""Alignment of tokens to experts: one kernel in place of several, by buffers in shared memory and a barrier.

A mixture of experts multiplies each token by the weights of its expert. A product of blocks wants the tokens of an expert side by
side, each expert's padded to whole blocks. Given the expert of each token, ``align`` gives the tokens so ordered, the expert of
each block, and how many places there are.

Programs share out the tokens. Each counts the experts of its share by atomics in shared memory, and hands its counts to the others. Behind a barrier it knows
where the tokens of each expert begin and how many of them the programs before it have; from there on atomics in shared memory number its own.
The barrier is that of the grid; or, since a second launch costs less than that, the two halves are kernels of their own, of which the second
begins while the first still runs, and waits for it. Where tokens are fewer, clusters count all of them each for itself, so that none waits for another one: the members of a
cluster share out the counting, and write their counts into each other's shared memory.

The first place of a block is never empty: whoever puts a token there says whom the block belongs to.
"""

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.constexpr_function
def _rows(rows, experts, num_warps):
    """A layout in which each warp has whole rows of numbers of experts, and a thread neighbours."""
    each = triton.next_power_of_2(triton.cdiv(experts, 32))
    return tle.gpu.BlockEncoding([triton.next_power_of_2(rows), each], [1, 32], [1, num_warps], [1, 0])


@triton.jit
def share_of(num_tokens, PROGRAMS: tl.constexpr):
    """Where this program's tokens begin and end."""
    share = tl.cdiv(num_tokens, PROGRAMS * 16) * 16
    begin = tl.program_id(0) * share
    return begin, tl.minimum(begin + share, num_tokens)


@triton.jit
def count_tokens(experts_ptr, num_tokens, counts, PROGRAMS: tl.constexpr, TILE: tl.constexpr):
    """Counts the experts of this program's tokens in the buffer ``counts``."""
    begin, end = share_of(num_tokens, PROGRAMS)
    counts.store(tl.zeros(counts.shape, tl.int32))
    for first in range(begin, end, TILE):
        token = first + tl.arange(0, TILE)
        expert = tl.load(experts_ptr + token, mask=token < num_tokens, other=0)
        tl.atomic_add(tle.gpu.local_ptr(counts, (expert,)), 1, mask=token < end, sem="relaxed")


@triton.jit
def sum_counts(counts_ptr, NUM_EXPERTS: tl.constexpr, PROGRAMS: tl.constexpr):
    """How many tokens each expert has, and how many of them the programs before this one."""
    number = tl.arange(0, PROGRAMS)[:, None]
    counts = tl.load(counts_ptr + number * NUM_EXPERTS + tl.arange(0, NUM_EXPERTS)[None, :])
    return tl.sum(counts, 0), tl.sum(tl.where(number < tl.program_id(0), counts, 0), 0)


@triton.jit
def begin_experts(total_ptr, count, before, BLOCK: tl.constexpr):
    """Buffers that say for each expert, which has so many tokens, where this program's go, where all end, and where its last block does."""
    padded = tl.cdiv(count, BLOCK) * BLOCK
    start, total = tle.cumsum(padded)
    tl.store(total_ptr, total, mask=tl.program_id(0) == 0)
    places = tle.gpu.alloc(count.shape, dtype=tl.int32, init_value=start + before)
    ends = tle.gpu.alloc(count.shape, dtype=tl.int32, init_value=start + count)
    filled = tle.gpu.alloc(count.shape, dtype=tl.int32, init_value=start + padded)
    return places, ends, filled


@triton.jit
def place_tokens(sorted_ptr, block_experts_ptr, token, expert, there, places, BLOCK: tl.constexpr):
    """Puts tokens where they go."""
    place = tl.atomic_add(tle.gpu.local_ptr(places, (expert,)), 1, mask=there, sem="relaxed")
    tl.store(sorted_ptr + place, token, mask=there)
    tl.store(block_experts_ptr + place // BLOCK, expert, mask=there & (place % BLOCK == 0))


@triton.jit
def complete_experts(sorted_ptr, num_tokens, ends, filled, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    """Writes the places that nobody has, of some experts each program."""
    NUM_EXPERTS: tl.constexpr = ends.shape[0]
    each: tl.constexpr = (NUM_EXPERTS + PROGRAMS - 1) // PROGRAMS
    expert = tl.program_id(0) * each + tl.arange(0, each)
    end = tl.load(tle.gpu.local_ptr(ends, (expert,)), mask=expert < NUM_EXPERTS, other=0)
    fill = tl.load(tle.gpu.local_ptr(filled, (expert,)), mask=expert < NUM_EXPERTS, other=0)
    rest = end[:, None] + tl.arange(0, BLOCK)[None, :]
    tl.store(sorted_ptr + rest, num_tokens, mask=rest < fill[:, None])


@triton.jit
def place_share(
    experts_ptr,
    sorted_ptr,
    block_experts_ptr,
    total_ptr,
    num_tokens,
    count,
    before,
    BLOCK: tl.constexpr,
    PROGRAMS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Writes this program's part of all results, given what ``sum_counts`` gives."""
    places, ends, filled = begin_experts(total_ptr, count, before, BLOCK)
    complete_experts(sorted_ptr, num_tokens, ends, filled, BLOCK, PROGRAMS)
    begin, end = share_of(num_tokens, PROGRAMS)
    for first in range(begin, end, TILE):
        token = first + tl.arange(0, TILE)
        expert = tl.load(experts_ptr + token, mask=token < num_tokens, other=0)
        place_tokens(sorted_ptr, block_experts_ptr, token, expert, token < end, places, BLOCK)


@triton.jit
def align_kernel(
    experts_ptr,
    sorted_ptr,
    block_experts_ptr,
    total_ptr,
    counts_ptr,
    num_tokens,
    NUM_EXPERTS: tl.constexpr,
    BLOCK: tl.constexpr,
    MESH: tl.constexpr,
    TILE: tl.constexpr,
):
    """Orders tokens by expert.

    ``experts_ptr``: the expert of each of ``num_tokens`` tokens, int32. ``sorted_ptr``: the numbers of the tokens by expert, with
    ``num_tokens`` in places that nobody has, int32; ``block_experts_ptr``: the expert of each ``BLOCK`` places, int32;
    ``total_ptr``: how many places there are, int32. ``counts_ptr``: room for ``NUM_EXPERTS`` int32 per program. The programs are
    the members of ``MESH``, a mesh of blocks.
    """
    programs: tl.constexpr = MESH.size
    counts = tle.gpu.alloc([NUM_EXPERTS], dtype=tl.int32)
    count_tokens(experts_ptr, num_tokens, counts, programs, TILE)
    tl.store(counts_ptr + tl.program_id(0) * NUM_EXPERTS + tl.arange(0, NUM_EXPERTS), counts.load())
    tle.distributed_barrier(MESH)
    count, before = sum_counts(counts_ptr, NUM_EXPERTS, programs)
    place_share(
        experts_ptr,
        sorted_ptr,
        block_experts_ptr,
        total_ptr,
        num_tokens,
        count,
        before,
        BLOCK,
        programs,
        TILE,
    )


@triton.jit
def sum_over_members(mine, member, MESH: tl.constexpr):
    """The sum of what the programs of a cluster have for each expert, and that over the programs before this one."""
    members: tl.constexpr = MESH.size
    NUM_EXPERTS: tl.constexpr = mine.shape[0]
    counts = tle.gpu.alloc([members, NUM_EXPERTS], dtype=tl.int32)
    at = tle.gpu.local_ptr(counts, (member, tl.arange(0, NUM_EXPERTS)))
    for other in tl.static_range(members):
        tl.store(tle.remote(at, other, MESH), mine)
    tle.distributed_barrier(MESH)
    all = tle.gpu.set_layout(counts.load(), _rows(members, NUM_EXPERTS, tl.num_warps()))
    number = tl.arange(0, members)[:, None]
    return tl.sum(all, 0), tl.sum(tl.where(number < member, all, 0), 0)


@triton.jit
def align_by_clusters_kernel(
    experts_ptr,
    sorted_ptr,
    block_experts_ptr,
    total_ptr,
    num_tokens,
    NUM_EXPERTS: tl.constexpr,
    BLOCK: tl.constexpr,
    MESH: tl.constexpr,
    CLUSTERS: tl.constexpr,
    COUNT_TILE: tl.constexpr,
    TILE: tl.constexpr,
):
    """The same by ``CLUSTERS`` clusters that count all tokens, each program ``COUNT_TILE`` at a time. The programs of ``MESH``, a mesh of one cluster, share out the
    counting; a program's own tokens, at most ``TILE``, are among those that it counts."""
    members: tl.constexpr = MESH.size
    member = tle.shard_id(MESH, 0)
    share = tl.cdiv(num_tokens, members * CLUSTERS * 16) * 16
    first_counted = member * CLUSTERS * share
    counted = tl.minimum(first_counted + CLUSTERS * share, num_tokens)
    begin = first_counted + tl.program_id(0) // members * share
    own = begin + tl.arange(0, TILE)
    there = own < tl.minimum(begin + share, num_tokens)
    own_expert = tl.load(experts_ptr + own, mask=there, other=0)
    # Of the tokens before its own, of the others, and of those that it does not count: no addition is masked.
    zeros = tl.zeros([4, NUM_EXPERTS], tl.int32)
    counts = tle.gpu.alloc([4, NUM_EXPERTS], dtype=tl.int32, init_value=zeros)
    if members > 1:
        # Before they write to each other all have begun.
        tle.distributed_barrier(MESH, order=tle.MemoryOrder.RELAXED)
    for first in range(first_counted, counted, COUNT_TILE):
        token = first + tl.arange(0, COUNT_TILE)
        expert = tl.load(experts_ptr + token, mask=token < num_tokens, other=0)
        row = (token >= begin).to(tl.int32) + (token >= counted).to(tl.int32)
        tl.atomic_add(tle.gpu.local_ptr(counts, (row, expert)), 1, sem="relaxed")
    if members > 1:
        count, before = sum_over_members(counts.slot(0).load() + counts.slot(1).load(), member, MESH)
        before += tl.load(tle.gpu.local_ptr(counts, (0, tl.arange(0, NUM_EXPERTS))))
    else:
        rows = tle.gpu.set_layout(counts.load(), _rows(4, NUM_EXPERTS, tl.num_warps()))
        row = tl.arange(0, 4)[:, None]
        count = tl.sum(tl.where(row < 2, rows, 0), 0)
        before = tl.sum(tl.where(row == 0, rows, 0), 0)
    places, ends, filled = begin_experts(total_ptr, count, before, BLOCK)
    place_tokens(sorted_ptr, block_experts_ptr, own, own_expert, there, places, BLOCK)
    complete_experts(sorted_ptr, num_tokens, ends, filled, BLOCK, members * CLUSTERS)


@triton.jit
def count_kernel(
    experts_ptr, counts_ptr, num_tokens, NUM_EXPERTS: tl.constexpr, PROGRAMS: tl.constexpr, TILE: tl.constexpr
):
    """The first half of ``align_kernel``."""
    if tl.target_info.cuda_capability_geq(9, 0):
        tl.extra.cuda.gdc_launch_dependents()
    counts = tle.gpu.alloc([NUM_EXPERTS], dtype=tl.int32)
    count_tokens(experts_ptr, num_tokens, counts, PROGRAMS, TILE)
    tl.store(counts_ptr + tl.program_id(0) * NUM_EXPERTS + tl.arange(0, NUM_EXPERTS), counts.load())


@triton.jit
def place_kernel(
    experts_ptr,
    sorted_ptr,
    block_experts_ptr,
    total_ptr,
    counts_ptr,
    num_tokens,
    NUM_EXPERTS: tl.constexpr,
    BLOCK: tl.constexpr,
    PROGRAMS: tl.constexpr,
    TILE: tl.constexpr,
):
    """The second half of ``align_kernel``."""
    if tl.target_info.cuda_capability_geq(9, 0):
        tl.extra.cuda.gdc_wait()
    count, before = sum_counts(counts_ptr, NUM_EXPERTS, PROGRAMS)
    place_share(
        experts_ptr,
        sorted_ptr,
        block_experts_ptr,
        total_ptr,
        num_tokens,
        count,
        before,
        BLOCK,
        PROGRAMS,
        TILE,
    )


def most_places(num_tokens, num_experts, block):
    """How many places tokens may take, padding included."""
    return triton.cdiv(num_tokens + num_experts * (block - 1), block) * block


def align_into(out, counts, experts, num_experts, block, by, programs, tile=1024, num_warps=8, members=1):
    """``align`` into arrays: ``out``, and ``counts`` with room for ``programs * num_experts``.

    ``by`` is what keeps counts and places apart: "clusters", each of ``members`` (of at most 16 programs), of which every one counts all tokens, "grid" or "kernels".
    """
    n = experts.shape[0]
    if by == "clusters":
        clusters = programs // members
        share = triton.cdiv(n, programs * 16) * 16
        count_tile = min(triton.next_power_of_2(share * clusters), 512 * num_warps)
        mesh = tle.device_mesh({"block_cluster": members})
        align_by_clusters_kernel[(clusters,)](
            experts,
            *out,
            n,
            num_experts,
            block,
            mesh,
            clusters,
            count_tile,
            triton.next_power_of_2(share),
            num_warps=num_warps,
        )
        return
    if by == "kernels":
        count_kernel[(programs,)](experts, counts, n, num_experts, programs, tile, num_warps=num_warps)
        place_kernel[(programs,)](
            experts, *out, counts, n, num_experts, block, programs, tile, num_warps=num_warps, launch_pdl=True
        )
        return
    mesh = tle.device_mesh({"block": programs})
    align_kernel[(programs,)](experts, *out, counts, n, num_experts, block, mesh, tile, num_warps=num_warps)


def align(experts, num_experts, block, empty, programs=None, by=None, members=1):
    """The tokens by expert, the expert of each block and the number of places, as arrays that ``empty(size)`` makes."""
    num_tokens = experts.shape[0]
    few = num_tokens <= 16384
    programs = programs or (max(8, triton.cdiv(num_tokens, 256)) if few else 64)
    places = most_places(num_tokens, num_experts, block)
    out = empty(places), empty(places // block), empty(1)
    counts = empty(programs * num_experts)
    by = by or ("clusters" if few else "kernels")
    num_warps = 16 if by == "clusters" and num_tokens // members > 4096 else 8
    align_into(out, counts, experts, num_experts, block, by, programs, num_warps=num_warps, members=members)
    return out


def main():
    """Aligns some tokens on the CPU and checks the order."""
    import numpy as np

    experts = np.random.default_rng(0).integers(0, 24, 3000, dtype=np.int32)
    for by, members in (("clusters", 1), ("clusters", 4), ("grid", 1), ("kernels", 1)):
        tokens, of_blocks, total = align(experts, 24, 16, lambda n: np.full(n, -1, np.int32), 8, by, members)
        places = int(total[0])
        owners = np.repeat(of_blocks[: places // 16], 16)
        there = tokens[:places] < len(experts)
        assert (np.sort(tokens[:places][there]) == np.arange(len(experts))).all()
        assert (experts[tokens[:places][there]] == owners[there]).all()
        assert places == sum(-(-n // 16) * 16 for n in np.bincount(experts, minlength=24))
        print(f"{len(experts)} tokens of 24 experts in {places} places, by {by} of {members}")


if __name__ == "__main__":
    main()
