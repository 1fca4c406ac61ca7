"""Alignment of tokens to experts: one kernel in place of several, by buffers in shared memory and a barrier.

A mixture of experts multiplies each token by the weights of its expert. A product of blocks wants the tokens of an expert side by
side, each expert's padded to whole blocks. Given the expert of each token, ``align`` gives the tokens so ordered, the expert of
each block, and how many places there are.

Every program counts the experts of its share of the tokens by atomics in shared memory, and hands its counts to the others through
global memory. Behind the barrier it knows where the tokens of each expert begin and how many of them the programs before it have;
from there on atomics in shared memory number its own. The barrier is that of a cluster, or of the grid; or, since a second launch costs
less than the grid's barrier, the two halves are kernels of their own, of which the second begins while the first still runs, and waits for it.
Where the tokens are few each program counts all of them by itself, and nobody waits.
"""

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.constexpr_function
def bits_of(n):
    """How many binary digits ``n`` has."""
    return n.bit_length()


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
def place_blocks(
    sorted_ptr,
    block_experts_ptr,
    total_ptr,
    num_tokens,
    count,
    BLOCK: tl.constexpr,
    PROGRAMS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Writes this program's part of what so many tokens of each expert make of all results but the tokens' places; where each expert's begin."""
    NUM_EXPERTS: tl.constexpr = count.shape[0]
    program = tl.program_id(0)
    start, total = tle.cumsum(tl.cdiv(count, BLOCK) * BLOCK)
    tl.store(total_ptr, total, mask=program == 0)
    # Each program completes some experts: the places that nobody has.
    starts = tle.gpu.alloc([NUM_EXPERTS], dtype=tl.int32, init_value=start)
    ends = tle.gpu.alloc([NUM_EXPERTS], dtype=tl.int32, init_value=start + count)
    each: tl.constexpr = (NUM_EXPERTS + PROGRAMS - 1) // PROGRAMS
    completed = program * each + tl.arange(0, each)
    begun = tl.load(tle.gpu.local_ptr(starts, (completed,)), mask=completed < NUM_EXPERTS, other=0)
    ended = tl.load(tle.gpu.local_ptr(ends, (completed,)), mask=completed < NUM_EXPERTS, other=0)
    filled = begun + tl.cdiv(ended - begun, BLOCK) * BLOCK
    rest = ended[:, None] + tl.arange(0, BLOCK)[None, :]
    tl.store(sorted_ptr + rest, num_tokens, mask=rest < filled[:, None])
    # And it finds whom some of the blocks belong to: the last expert that begins there or before.
    halves: tl.constexpr = bits_of(NUM_EXPERTS - 1)
    for first in range(program * TILE, total // BLOCK, PROGRAMS * TILE):
        block = first + tl.arange(0, TILE)
        owner = tl.zeros([TILE], tl.int32)
        for half in tl.static_range(halves):
            later = owner + (1 << (halves - 1 - half))
            begins = tl.load(tle.gpu.local_ptr(starts, (later,)), mask=later < NUM_EXPERTS, other=0x7FFFFFFF)
            owner = tl.where(begins <= block * BLOCK, later, owner)
        tl.store(block_experts_ptr + block, owner, mask=block < total // BLOCK)
    return start


@triton.jit
def place_tokens(
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
    start = place_blocks(sorted_ptr, block_experts_ptr, total_ptr, num_tokens, count, BLOCK, PROGRAMS, TILE)
    places = tle.gpu.alloc(count.shape, dtype=tl.int32, init_value=start + before)
    begin, end = share_of(num_tokens, PROGRAMS)
    for first in range(begin, end, TILE):
        token = first + tl.arange(0, TILE)
        expert = tl.load(experts_ptr + token, mask=token < num_tokens, other=0)
        place = tl.atomic_add(tle.gpu.local_ptr(places, (expert,)), 1, mask=token < end, sem="relaxed")
        tl.store(sorted_ptr + place, token, mask=token < end)


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
    the members of ``MESH``, a mesh of blocks or of one cluster.
    """
    programs: tl.constexpr = MESH.size
    counts = tle.gpu.alloc([NUM_EXPERTS], dtype=tl.int32)
    count_tokens(experts_ptr, num_tokens, counts, programs, TILE)
    count = counts.load()
    before = tl.zeros([NUM_EXPERTS], tl.int32)
    if programs > 1:
        tl.store(counts_ptr + tl.program_id(0) * NUM_EXPERTS + tl.arange(0, NUM_EXPERTS), count)
        tle.distributed_barrier(MESH)
        count, before = sum_counts(counts_ptr, NUM_EXPERTS, programs)
    place_tokens(
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
def align_alone_kernel(
    experts_ptr,
    sorted_ptr,
    block_experts_ptr,
    total_ptr,
    num_tokens,
    NUM_EXPERTS: tl.constexpr,
    BLOCK: tl.constexpr,
    PROGRAMS: tl.constexpr,
    COUNT_TILE: tl.constexpr,
    TILE: tl.constexpr,
):
    """The same by programs that count the experts of all tokens, ``COUNT_TILE`` at a time, each for itself. A program's own tokens are at most ``TILE``."""
    begin, end = share_of(num_tokens, PROGRAMS)
    own = begin + tl.arange(0, TILE)
    own_expert = tl.load(experts_ptr + own, mask=own < end, other=0)
    # Of the tokens before its own, and of the others.
    counts = tle.gpu.alloc([2, NUM_EXPERTS], dtype=tl.int32, init_value=tl.zeros([2, NUM_EXPERTS], tl.int32))
    for first in range(0, num_tokens, COUNT_TILE):
        token = first + tl.arange(0, COUNT_TILE)
        expert = tl.load(experts_ptr + token, mask=token < num_tokens, other=0)
        place = tle.gpu.local_ptr(counts, ((token >= begin).to(tl.int32), expert))
        tl.atomic_add(place, 1, mask=token < num_tokens, sem="relaxed")
    before = counts.slot(0).load()
    count = before + counts.slot(1).load()
    start = place_blocks(sorted_ptr, block_experts_ptr, total_ptr, num_tokens, count, BLOCK, PROGRAMS, TILE)
    places = tle.gpu.alloc([NUM_EXPERTS], dtype=tl.int32, init_value=start + before)
    place = tl.atomic_add(tle.gpu.local_ptr(places, (own_expert,)), 1, mask=own < end, sem="relaxed")
    tl.store(sorted_ptr + place, own, mask=own < end)


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
    place_tokens(
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


def align_into(out, counts, experts, num_experts, block, by, programs, tile=1024, num_warps=8):
    """``align`` into arrays: ``out``, and ``counts`` with room for ``programs * num_experts``.

    ``by`` is what keeps counts and places apart: "cluster" (of at most 16 programs), "grid" or "kernels"; "alone" are programs that need no others' counts.
    """
    n = experts.shape[0]
    if by == "alone":
        count_tile = min(triton.next_power_of_2(n), 512 * num_warps)
        share = triton.next_power_of_2(triton.cdiv(n, programs * 16) * 16)
        align_alone_kernel[(programs,)](
            experts, *out, n, num_experts, block, programs, count_tile, share, num_warps=num_warps
        )
        return
    if by == "kernels":
        count_kernel[(programs,)](experts, counts, n, num_experts, programs, tile, num_warps=num_warps)
        place_kernel[(programs,)](
            experts, *out, counts, n, num_experts, block, programs, tile, num_warps=num_warps, launch_pdl=True
        )
        return
    mesh = tle.device_mesh({"block_cluster" if by == "cluster" else "block": programs})
    grid = (1 if by == "cluster" else programs,)
    align_kernel[grid](experts, *out, counts, n, num_experts, block, mesh, tile, num_warps=num_warps)


def align(experts, num_experts, block, empty, programs=None, by=None):
    """The tokens by expert, the expert of each block and the number of places, as arrays that ``empty(size)`` makes."""
    num_tokens = experts.shape[0]
    few = num_tokens <= 16384
    programs = programs or (max(8, triton.cdiv(num_tokens, 256)) if few else 64)
    places = most_places(num_tokens, num_experts, block)
    out = empty(places), empty(places // block), empty(1)
    counts = empty(programs * num_experts)
    by = by or ("alone" if few else "kernels")
    num_warps = 16 if by == "alone" and num_tokens > 4096 else 8
    align_into(out, counts, experts, num_experts, block, by, programs, num_warps=num_warps)
    return out


def main():
    """Aligns some tokens on the CPU and checks the order."""
    import numpy as np

    experts = np.random.default_rng(0).integers(0, 24, 3000, dtype=np.int32)
    for by in ("alone", "cluster", "grid", "kernels"):
        tokens, of_blocks, total = align(experts, 24, 16, lambda n: np.full(n, -1, np.int32), 4, by)
        places = int(total[0])
        owners = np.repeat(of_blocks[: places // 16], 16)
        there = tokens[:places] < len(experts)
        assert (np.sort(tokens[:places][there]) == np.arange(len(experts))).all()
        assert (experts[tokens[:places][there]] == owners[there]).all()
        assert places == sum(-(-n // 16) * 16 for n in np.bincount(experts, minlength=24))
        print(f"{len(experts)} tokens of 24 experts in {places} places, by {by}")


if __name__ == "__main__":
    main()
