"""Several GPUs of one host: kernels that reach each other's memory, right first, then their times beside NCCL's.

    torchrun --nproc-per-node=2 tests/gpu/distributed.py [--check-only] [--bytes 65536 …]

for 2, 4 or 8 processes, one for each GPU. Needs torch with NCCL and its symmetric memory, and GPUs that reach each other (NVLink or peer access). NVLink
multicast is not used. The first rank prints: a line for each check, and for each size medians of microseconds, ours and NCCL's, and how many times
longer NCCL took.
"""

import argparse
import os
import statistics

import torch
import torch.distributed as dist

import tilewright as triton
import tilewright.language as tl
from tilewright import distributed, tle

BLOCK = 2048


@triton.jit
def all_reduce_kernel(x_ptr, out_ptr, n, mesh: tl.constexpr, N: tl.constexpr):
    tle.distributed_barrier(mesh)
    for begin in range(tl.program_id(0) * N, n, tl.num_programs(0) * N):
        at = begin + tl.arange(0, N)
        total = tl.zeros([N], tl.float32)
        for member in tl.static_range(mesh.size):
            total += tl.load(tle.remote(x_ptr + at, member, mesh), mask=at < n, other=0)
        tl.store(out_ptr + at, total.to(out_ptr.dtype.element_ty), mask=at < n)
    tle.distributed_barrier(mesh)


@triton.jit
def all_gather_kernel(x_ptr, out_ptr, n, mesh: tl.constexpr, N: tl.constexpr):
    tle.distributed_barrier(mesh)
    for member in tl.static_range(mesh.size):
        for begin in range(tl.program_id(0) * N, n, tl.num_programs(0) * N):
            at = begin + tl.arange(0, N)
            part = tl.load(tle.remote(x_ptr + at, member, mesh), mask=at < n, other=0)
            tl.store(out_ptr + member * n + at, part, mask=at < n)
    tle.distributed_barrier(mesh)


@triton.jit
def ring_kernel(x_ptr, out_ptr, mesh: tl.constexpr, N: tl.constexpr):
    me, at = tle.shard_id(mesh, 0), tl.arange(0, N)
    next = (me + 1) % mesh.size
    row = tl.load(x_ptr + at)
    for step in range(mesh.size - 1):
        tl.store(tle.remote(out_ptr + step * N + at, next, mesh), row)
        tle.signal(None, next, 0)
        tle.signal_wait(None, 0, target=step + 1)
        row = tl.load(out_ptr + step * N + at)


@triton.jit
def flat(shape: tl.constexpr):
    return tl.arange(0, shape[0])[:, None] * shape[1] + tl.arange(0, shape[1])[None, :]


@triton.jit
def reshard_kernel(x_ptr, out_ptr, source: tl.constexpr, to: tl.constexpr, shape: tl.constexpr):
    part = tl.load(tle.reshard(tle.make_sharded_tensor(x_ptr, source, shape), to))
    tl.store(out_ptr + flat(part.shape), part)


@triton.jit
def dot_kernel(
    a_ptr, b_ptr, out_ptr, a_how: tl.constexpr, b_how: tl.constexpr, to: tl.constexpr, S: tl.constexpr
):
    a = tle.make_sharded_tensor(a_ptr, a_how, (S, S))
    b = tle.make_sharded_tensor(b_ptr, b_how, (S, S))
    part = tl.load(tle.reshard(tle.distributed_dot(a, b), to))
    tl.store(out_ptr + flat(part.shape), part)


def say(text):
    if dist.get_rank() == 0:
        print(text, flush=True)


def symmetric(x):
    made = distributed.empty(x.shape, x.dtype)
    made.copy_(x)
    return made


def check(mesh):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    whole = torch.randint(-8, 9, (ranks, 64, 64), device="cuda").float()
    x = symmetric(whole[rank].contiguous())
    out = torch.empty_like(x)
    for _ in range(100):
        all_reduce_kernel[(4,)](x, out, x.numel(), mesh, 1024)
    torch.testing.assert_close(out, whole.sum(0))
    say("all-reduce: right")

    out = distributed.empty((ranks - 1, 64), torch.float32)
    distributed.reset_signals()
    torch.cuda.synchronize()
    dist.barrier()
    ring_kernel[(1,)](x[0], out, mesh, 64)
    want = torch.stack([whole[(rank - step) % ranks, 0] for step in range(1, ranks)])
    torch.testing.assert_close(out, want)
    say("ring by signals: right")

    specs = {
        "whole": tle.sharding(mesh),
        "rows": tle.sharding(mesh, ["device"]),
        "columns": tle.sharding(mesh, [None, "device"]),
        "partial": tle.sharding(mesh, partial=["device"]),
    }

    def part(of, how):
        return of.chunk(ranks, how)[rank].contiguous()

    total = whole.sum(0)
    parts = {"whole": total, "rows": part(total, 0), "columns": part(total, 1), "partial": whole[rank]}
    for source in specs:
        x = symmetric(parts[source])
        for to in ("whole", "rows", "columns"):
            out = torch.empty_like(parts[to])
            reshard_kernel[(1,)](x, out, specs[source], specs[to], (64, 64))
            torch.testing.assert_close(out, parts[to])
            say(f"reshard {source} to {to}: right")

    a, b = (torch.randint(-4, 5, (64, 64), device="cuda").half() for _ in range(2))
    for left in ("rows", "columns", "whole"):
        for right in ("rows", "columns", "whole"):
            cut = {"rows": lambda of: part(of, 0), "columns": lambda of: part(of, 1), "whole": lambda of: of}
            out = torch.empty(64, 64, device="cuda")
            given = symmetric(cut[left](a)), symmetric(cut[right](b))
            dot_kernel[(1,)](*given, out, specs[left], specs[right], specs["whole"], 64)
            torch.testing.assert_close(out, a.float() @ b.float())
            say(f"distributed_dot {left}, {right}: right")


def median_us(run, repeats=30):
    for _ in range(5):
        run()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        dist.barrier()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1000)
    # The slowest rank's time counts.
    slowest = torch.tensor([statistics.median(times)], device="cuda")
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.item()


def times(mesh, sizes):
    say(f"{'':12}{'bytes':>12}{'ours us':>10}{'NCCL us':>10}{'ratio':>8}")
    ranks = dist.get_world_size()
    for size in sizes:
        n = size // 2
        x = distributed.empty((n,), torch.float16)
        x.fill_(1)
        out, gathered = torch.empty_like(x), torch.empty(ranks * n, dtype=torch.float16, device="cuda")
        # Programs that wait for other ranks' must all be there at once.
        grid = (min(triton.cdiv(n, BLOCK), torch.cuda.get_device_properties().multi_processor_count),)
        rows = (
            (
                "all-reduce",
                lambda x=x, out=out, n=n, grid=grid: all_reduce_kernel[grid](x, out, n, mesh, BLOCK),
                lambda out=out: dist.all_reduce(out),
            ),
            (
                "all-gather",
                lambda x=x, to=gathered, n=n, grid=grid: all_gather_kernel[grid](x, to, n, mesh, BLOCK),
                lambda x=x, to=gathered: dist.all_gather_into_tensor(to, x),
            ),
        )
        for name, ours, theirs in rows:
            ours()
            wanted = torch.full_like(out, ranks) if name == "all-reduce" else torch.ones_like(gathered)
            torch.testing.assert_close(out if name == "all-reduce" else gathered, wanted)
            mine, nccl = median_us(ours), median_us(theirs)
            say(f"{name:12}{size:12}{mine:10.1f}{nccl:10.1f}{nccl / mine:8.2f}")


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--check-only", action="store_true")
    options.add_argument("--bytes", type=int, nargs="*", default=[1 << k for k in range(16, 27, 2)])
    given = options.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    distributed.init(memory=4 * max(given.bytes) + (1 << 24))
    mesh = tle.device_mesh({"device": dist.get_world_size()})
    check(mesh)
    if not given.check_only:
        times(mesh, given.bytes)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
