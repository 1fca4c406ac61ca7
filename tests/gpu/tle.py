"""Kernels of ``examples/tle`` against Triton.

``python tests/gpu/tle.py [WORKLOAD …]`` prints a line a size: median times of competitors that take turns, and how many times longer than
ours the others took. Results are checked first.

``moe_align``: tokens by expert (S000 4.2): ours is one kernel with buffers and a barrier over the grid; Triton's are four kernels,
since it has neither: counts by ``tl.histogram``, a sum over programs, a sum over experts, and places by atomics in global memory.
"""

import argparse
import sys
from pathlib import Path

import timing
import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "tle"))

import moe_align


@triton.jit
def count_kernel(experts_ptr, counts_ptr, num_tokens, E: tl.constexpr, TILE: tl.constexpr):
    program = tl.program_id(0)
    token = program * TILE + tl.arange(0, TILE)
    expert = tl.load(experts_ptr + token, mask=token < num_tokens, other=0)
    tl.store(counts_ptr + program * E + tl.arange(0, E), tl.histogram(expert, E, mask=token < num_tokens))


@triton.jit
def before_kernel(counts_ptr, count_ptr, programs, E: tl.constexpr, P: tl.constexpr):
    expert = tl.program_id(0)
    program = tl.arange(0, P)
    count = tl.load(counts_ptr + program * E + expert, mask=program < programs, other=0)
    after = tl.cumsum(count, 0)
    tl.store(counts_ptr + program * E + expert, after - count, mask=program < programs)
    tl.store(count_ptr + expert, tl.sum(count, 0))


@triton.jit
def start_kernel(count_ptr, start_ptr, total_ptr, E: tl.constexpr, BLOCK: tl.constexpr):
    expert = tl.arange(0, E)
    padded = tl.cdiv(tl.load(count_ptr + expert), BLOCK) * BLOCK
    after = tl.cumsum(padded, 0)
    tl.store(start_ptr + expert, after - padded)
    tl.store(total_ptr, tl.sum(padded, 0))


@triton.jit
def place_kernel(experts_ptr, counts_ptr, count_ptr, start_ptr, sorted_ptr, blocks_ptr, num_tokens,
                 E: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr):  # fmt: skip
    program = tl.program_id(0)
    token = program * TILE + tl.arange(0, TILE)
    inside = token < num_tokens
    expert = tl.load(experts_ptr + token, mask=inside, other=0)
    start = tl.load(start_ptr + expert, mask=inside, other=0)
    place = tl.atomic_add(counts_ptr + program * E + expert, 1, mask=inside, sem="relaxed")
    tl.store(sorted_ptr + start + place, token, mask=inside)
    for e in range(program, E, tl.num_programs(0)):
        begun, count = tl.load(start_ptr + e), tl.load(count_ptr + e)
        filled = begun + tl.cdiv(count, BLOCK) * BLOCK
        rest = begun + count + tl.arange(0, BLOCK)
        tl.store(sorted_ptr + rest, num_tokens, mask=rest < filled)
        for first in range(begun // BLOCK, filled // BLOCK, TILE):
            block = first + tl.arange(0, TILE)
            tl.store(blocks_ptr + block, e, mask=block < filled // BLOCK)


def triton_align(experts, num_experts, block, out, scratch, tile):
    n = experts.shape[0]
    programs = triton.cdiv(n, tile)
    counts, count, start = scratch
    count_kernel[(programs,)](experts, counts, n, num_experts, tile)
    before_kernel[(num_experts,)](counts, count, programs, num_experts, triton.next_power_of_2(programs))
    start_kernel[(1,)](count, start, out[2], num_experts, block)
    place_kernel[(programs,)](experts, counts, count, start, out[0], out[1], n, num_experts, block, tile)


def check(experts, num_experts, block, out):
    tokens, of_blocks, total = out
    places = int(total)
    want = torch.bincount(experts, minlength=num_experts)
    assert places == int(((want + block - 1) // block * block).sum())
    tokens, n = tokens[:places].long(), experts.shape[0]
    there = tokens < n
    assert torch.equal(tokens[there].sort().values, torch.arange(n, device="cuda"))
    owners = of_blocks[: places // block].repeat_interleave(block)
    assert torch.equal(experts[tokens[there]], owners[there])


def moe_align_rows():
    generator = torch.Generator().manual_seed(0)
    sizes = [(256 << k, 64) for k in range(9)] + [(163840, 64), (163840, 512)]
    for n, num_experts in sizes:
        weights = 1 / torch.arange(1, num_experts + 1, dtype=torch.float32) ** 1.2
        experts = torch.multinomial(weights, n, True, generator=generator).int().cuda()
        block = 16
        empty = lambda size: torch.empty(size, dtype=torch.int32, device="cuda")
        places = moe_align.most_places(n, num_experts, block)
        ours, theirs = [(empty(places), empty(places // block), empty(1)) for _ in range(2)]
        room = empty(64 * num_experts)
        scratch = empty(triton.cdiv(n, 256) * num_experts), empty(num_experts), empty(num_experts)

        def run(programs, tile, num_warps):
            mesh = moe_align.tle.device_mesh({"block": programs})
            moe_align.align_kernel[(programs,)](
                experts, *ours, room, n, num_experts, block, mesh, tile, num_warps=num_warps
            )

        def run_triton(tile):
            triton_align(experts, num_experts, block, theirs, scratch, tile)

        most = min(64, triton.next_power_of_2(triton.cdiv(n, 256)))
        configs = [{"programs": p, "tile": t, "num_warps": w} for p in (1, 4, 8, 16, 32, 64) if p <= most
                   for t, w in ((256, 4), (512, 8), (1024, 8), (2048, 16), (4096, 32)) if p * t <= 2 * n or t <= 512]  # fmt: skip
        working, refused = timing.compiled(run, configs)
        # One after the other: its kernels hand things on through memory.
        tiles = [{"tile": t} for t in (256, 512, 1024, 2048)]
        for reason in refused.items():
            print("refused", *reason)
        run(**working[0])
        check(experts, num_experts, block, ours)
        run_triton(**tiles[0])
        check(experts, num_experts, block, theirs)
        kept, tile = timing.best(run, working, 10), timing.best(run_triton, tiles, 10)
        run(**kept)
        check(experts, num_experts, block, ours)
        times = timing.race(
            {"ours": lambda: run(**kept), "triton": lambda: run_triton(**tile)}, rounds=5, rep=15
        )
        # Without what a launch costs the CPU.
        graphs = {who: triton.testing.do_bench_cudagraph(f, rep=15, return_mode="median") * 1e3
                  for who, f in (("ours", lambda: run(**kept)), ("triton", lambda: run_triton(**tile)))}  # fmt: skip
        print(
            f"moe_align {n:7} tokens {num_experts:4} experts  "
            f"launched: ours {times['ours'] * 1e3:6.1f} us, triton {times['triton'] * 1e3:6.1f} us, {times['triton'] / times['ours']:.2f}  "
            f"in a graph: ours {graphs['ours']:6.1f} us, triton {graphs['triton']:6.1f} us, {graphs['triton'] / graphs['ours']:.2f}  "
            f"{kept} {tile}",
            flush=True)  # fmt: skip


WORKLOADS = {"moe_align": moe_align_rows}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workloads", nargs="*", choices=[*WORKLOADS, []])
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}")
    for name in parser.parse_args().workloads or WORKLOADS:
        WORKLOADS[name]()


if __name__ == "__main__":
    main()
