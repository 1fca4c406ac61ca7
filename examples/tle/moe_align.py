"""Alignment of tokens to experts: one kernel in place of several, by buffers in shared memory and a barrier over the grid.

A mixture of experts multiplies each token by the weights of its expert. A product of blocks wants the tokens of an expert side by
side, each expert's padded to whole blocks. Given the expert of each token, ``align`` gives the tokens so ordered, the expert of
each block, and how many places there are.

Every program counts the experts of its share of the tokens by atomics in shared memory, and hands its counts to the others through
global memory. Behind the barrier it knows where the tokens of each expert begin and how many of them the programs before it have;
from there on atomics in shared memory number its own.
"""

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


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
    program = tl.program_id(0)
    programs: tl.constexpr = MESH.size
    experts = tl.arange(0, NUM_EXPERTS)
    share = tl.cdiv(num_tokens, programs)
    begin = program * share
    end = tl.minimum(begin + share, num_tokens)

    places = tle.gpu.alloc([NUM_EXPERTS], dtype=tl.int32, init_value=tl.zeros([NUM_EXPERTS], tl.int32))
    for first in range(begin, end, TILE):
        token = first + tl.arange(0, TILE)
        expert = tl.load(experts_ptr + token, mask=token < end, other=0)
        tl.atomic_add(tle.gpu.local_ptr(places, (expert,)), 1, mask=token < end, sem="relaxed")
    tl.store(counts_ptr + program * NUM_EXPERTS + experts, places.load())
    tle.distributed_barrier(MESH)

    number = tl.arange(0, programs)[:, None]
    counts = tl.load(counts_ptr + number * NUM_EXPERTS + experts[None, :])
    count = tl.sum(counts, 0)
    before = tl.sum(tl.where(number < program, counts, 0), 0)
    padded = tl.cdiv(count, BLOCK) * BLOCK
    start, total = tle.cumsum(padded)
    tl.store(total_ptr, total, mask=program == 0)
    places.store(start + before)

    # Each program completes some experts: the places that nobody has, and what blocks belong to.
    starts = tle.gpu.alloc([NUM_EXPERTS], dtype=tl.int32, init_value=start)
    ends = tle.gpu.alloc([NUM_EXPERTS], dtype=tl.int32, init_value=start + count)
    for expert in range(program, NUM_EXPERTS, programs):
        begun = tl.load(tle.gpu.local_ptr(starts, (expert,)))
        ended = tl.load(tle.gpu.local_ptr(ends, (expert,)))
        filled = begun + tl.cdiv(ended - begun, BLOCK) * BLOCK
        rest = ended + tl.arange(0, BLOCK)
        tl.store(sorted_ptr + rest, num_tokens, mask=rest < filled)
        for block in range(begun // BLOCK, filled // BLOCK, TILE):
            block += tl.arange(0, TILE)
            tl.store(block_experts_ptr + block, expert, mask=block < filled // BLOCK)

    for first in range(begin, end, TILE):
        token = first + tl.arange(0, TILE)
        expert = tl.load(experts_ptr + token, mask=token < end, other=0)
        place = tl.atomic_add(tle.gpu.local_ptr(places, (expert,)), 1, mask=token < end, sem="relaxed")
        tl.store(sorted_ptr + place, token, mask=token < end)


def most_places(num_tokens, num_experts, block):
    """How many places tokens may take, padding included."""
    return triton.cdiv(num_tokens + num_experts * (block - 1), block) * block


def align(experts, num_experts, block, empty, programs=None):
    """The tokens by expert, the expert of each block and the number of places, as arrays that ``empty(size)`` makes."""
    num_tokens = experts.shape[0]
    programs = programs or min(32, triton.next_power_of_2(triton.cdiv(num_tokens, 4096)))
    places = most_places(num_tokens, num_experts, block)
    out = empty(places), empty(places // block), empty(1)
    counts = empty(programs * num_experts)
    mesh = tle.device_mesh({"block": programs})
    align_kernel[(programs,)](experts, *out, counts, num_tokens, num_experts, block, mesh, 1024, num_warps=8)
    return out


def main():
    """Aligns some tokens on the CPU and checks the order."""
    import numpy as np

    experts = np.random.default_rng(0).integers(0, 24, 3000, dtype=np.int32)
    tokens, of_blocks, total = align(experts, 24, 16, lambda n: np.full(n, -1, np.int32), programs=4)
    places = int(total[0])
    owners = np.repeat(of_blocks[: places // 16], 16)
    there = tokens[:places] < len(experts)
    assert (np.sort(tokens[:places][there]) == np.arange(len(experts))).all()
    assert (experts[tokens[:places][there]] == owners[there]).all()
    assert places == sum(-(-n // 16) * 16 for n in np.bincount(experts, minlength=24))
    print(f"{len(experts)} tokens of 24 experts in {places} places")


if __name__ == "__main__":
    main()
