"""Several GPUs of one host: kernels that reach each other's memory, right first, then their times beside NCCL's.

    torchrun --nproc-per-node=2 tests/gpu/distributed.py [--only check collectives products attention fault] [--bytes 65536 …] [--how push …] [--by nvshmem]

for 2, 4 or 8 processes, one for each GPU. Needs torch with NCCL and its symmetric memory, and GPUs that reach each other (NVLink or peer access). NVLink
multicast is not used. With ``--by nvshmem`` each GPU is a node of its own, and kernels reach the others by NVSHMEM's functions (``nvidia-nvshmem-cu13==3.4.5``). The first rank prints: a line for each check, then medians of microseconds, ours and others', and how many times longer those took.

``collectives``: ``tle.reshard`` from memory to memory, and reads of a peer's memory beside copies of it. ``products``, ``attention``: the programs of
``examples/tle`` that overlap transfers with what they compute. ``fault``: a rank that does not come ends the others, with an error that names it.
"""

import argparse
import functools
import os
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory

import tilewright as triton
import tilewright.language as tl
from tilewright import distributed, tle
from tilewright.tle import _cost

sys.path.append(str(Path(__file__).parents[2] / "examples" / "tle"))
sys.path.append(str(Path(__file__).parents[1] / "bench"))

from peers import about
from results import OURS, Record, Result, times
from tolerance import close, poison

DTYPE = torch.bfloat16
WHAT = ("check", "collectives", "products", "attention", "fault")


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
def move_kernel(
    x_ptr,
    out_ptr,
    source: tl.constexpr,
    to: tl.constexpr,
    shape: tl.constexpr,
    HOW: tl.constexpr,
    EARLY: tl.constexpr = False,
):
    if EARLY:
        tl.extra.cuda.gdc_wait()
    tle.reshard(tle.make_sharded_tensor(x_ptr, source, shape), to, out=out_ptr, algorithm=HOW)


@triton.jit
def meeting_kernel(mesh: tl.constexpr):
    tle.distributed_barrier(mesh)


@triton.jit
def empty_kernel(x_ptr):
    pass


@triton.jit
def peer_read_kernel(x_ptr, out_ptr, n, mesh: tl.constexpr, N: tl.constexpr):
    peer = (tle.shard_id(mesh, 0) + 1) % mesh.size
    for begin in range(tl.program_id(0) * N, n, tl.num_programs(0) * N):
        at = begin + tl.arange(0, N)
        tl.store(out_ptr + at, tl.load(tle.remote(x_ptr + at, peer, mesh), mask=at < n), mask=at < n)


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


@triton.jit
def reread_kernel(x_ptr, out_ptr, COPIED: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    # Each program stores its tile, by threads or by a copy, and copies it back.
    x = tl.make_tensor_descriptor(x_ptr, [tl.num_programs(0) * M, N], [N, 1], [M, N])
    row = tl.program_id(0) * M
    at = (row + tl.arange(0, M)[:, None]) * N + tl.arange(0, N)[None, :]
    for turn in range(8):
        if COPIED:
            x.store([row, 0], (at + turn).to(tl.float32))
        else:
            tl.store(x_ptr + at, (at + turn).to(tl.float32))
        tl.store(out_ptr + turn * tl.num_programs(0) * M * N + at, x.load([row, 0]))


def say(text):
    if dist.get_rank() == 0:
        print(text, flush=True)


def symmetric(x):
    made = distributed.empty(x.shape, x.dtype)
    made.copy_(x)
    return made


def check(mesh, by):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    whole = torch.randint(-8, 9, (ranks, 64, 64), device="cuda").float()
    x = symmetric(whole[rank].contiguous())
    out = torch.empty_like(x)
    for _ in range(100):
        all_reduce_kernel[(4,)](x, out, x.numel(), mesh, 1024)
    torch.testing.assert_close(out, whole.sum(0))
    compiled = all_reduce_kernel[(4,)](x, out, x.numel(), mesh, 1024)
    by_library = "nvshmemi_device_state_d" in compiled.asm["ptx"]
    assert by_library == (by == "nvshmem"), "ranks are reached in another way than was asked for"
    say(f"all-reduce: right{', by NVSHMEM' if by_library else ''}")

    for copied in (False, True):
        own, back = torch.zeros(264 * 32, 64, device="cuda"), torch.zeros(8, 264 * 32 * 64, device="cuda")
        for _ in range(50):
            reread_kernel[(264,)](own, back, copied, 32, 64)
            want = torch.arange(264 * 32 * 64, device="cuda") + torch.arange(8, device="cuda")[:, None]
            torch.testing.assert_close(back, want.float())
            back.zero_()
        say(f"what a program has stored {'by a copy' if copied else 'itself'}, copied back: right")

    out = distributed.empty((ranks - 1, 64), torch.float32)
    distributed.reset_signals()
    torch.cuda.synchronize()
    dist.barrier()
    ring_kernel[(1,)](x[0], out, mesh, 64)
    want = torch.stack([whole[(rank - step) % ranks, 0] for step in range(1, ranks)])
    torch.testing.assert_close(out, want)
    say("ring by signals: right")
    # Those who wait for signals later on begin from zero.
    torch.cuda.synchronize()
    dist.barrier()
    distributed.reset_signals()
    torch.cuda.synchronize()
    dist.barrier()

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

    for how in _cost.ALGORITHMS["all-reduce"]:
        x, out = symmetric(whole[rank]), distributed.empty((64, 64), torch.float32)
        for _ in range(20):
            move_kernel[(3,)](x, out, specs["partial"], specs["whole"], (64, 64), how)
        torch.testing.assert_close(out, total)
        say(f"all-reduce in memory, {how}: right")
    for source, to in (
        ("rows", "whole"),
        ("columns", "whole"),
        ("partial", "rows"),
        ("partial", "columns"),
        ("rows", "columns"),
        ("columns", "rows"),
    ):
        for how in _cost.ALGORITHMS[specs[source].transition(specs[to])]:
            x, out = symmetric(parts[source]), distributed.empty(parts[to].shape, torch.float32)
            for _ in range(20):
                move_kernel[(3,)](x, out, specs[source], specs[to], (64, 64), how)
            torch.testing.assert_close(out, parts[to])
            say(f"reshard {source} to {to} in memory, {how}: right")
    for source in specs:
        x = symmetric(parts[source])
        for to in ("whole", "rows", "columns"):
            out = distributed.empty(parts[to].shape, torch.float32)
            move_kernel[(3,)](x, out, specs[source], specs[to], (64, 64), None)
            torch.testing.assert_close(out, parts[to])
            torch.testing.assert_close(
                distributed.reshard(parts[source], specs[source], specs[to]), parts[to]
            )
            say(f"reshard {source} to {to} in memory, and from the host: right")
        if source != "partial":
            torch.testing.assert_close(distributed.shard(total, specs[source]), parts[source])
        torch.testing.assert_close(distributed.gather(x, specs[source]), total)
    say("whole tensors sharded and gathered: right")


# ---- times ------------------------------------------------------------------------------------------------------


#: Rounds of what is compared, and of configurations among which the fastest is looked for.
ROUNDS, TRIES = 15, 5

#: Milliseconds that the launches of a graph take together, about, and how many there are at most.
OF_A_GRAPH, MOST_OF_A_GRAPH = 1.0, 64


def slowest(laps):
    """Of each round the slowest rank's time counts."""
    found = torch.tensor(laps, device="cuda")
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return found.tolist()


@functools.cache
def token():
    """What is added up so that ranks meet."""
    return torch.zeros(1, device="cuda")


def begin_together(begin):
    """The GPUs begin what is launched next at the same time: they idle until all processes have launched it, and meet.

    The first of several exchanges waits for the rank that comes last to it. Processes leave a barrier as far apart as a short exchange takes, or several."""
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda._sleep(600_000)
    dist.all_reduce(token())
    begin.record()


def launched(run, repeats=ROUNDS):
    """The times in ms with what launching costs."""
    for _ in range(3):
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
        times.append(begin.elapsed_time(end))
    return slowest(times)


def captured(run):
    """A CUDA graph of as many launches as take about a millisecond, and how many these are, the same on all ranks."""
    for _ in range(3):
        run()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin_together(begin)
    for _ in range(5):
        run()
    end.record()
    torch.cuda.synchronize()
    (of_one,) = slowest([begin.elapsed_time(end) / 5])
    each = max(3, min(MOST_OF_A_GRAPH, round(OF_A_GRAPH / of_one)))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        for _ in range(each):
            run()
    graph.replay()
    torch.cuda.synchronize()
    return graph, each


def in_graphs(runs, repeats=ROUNDS):
    """The times in ms on the GPUs alone, in CUDA graphs of many launches. All take turns, each round beginning with the next one: so each is as warm as the others, and what drifts
    does so for all."""
    stream, times = torch.cuda.Stream(), {name: [] for name in runs}
    # Two kernels of a rank that exchange at the same time would take each other's flags.
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        graphs = {name: captured(run) for name, run in runs.items()}
        names = list(graphs)
        for first in range(repeats):
            for name in names[first % len(names) :] + names[: first % len(names)]:
                graph, each = graphs[name]
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin_together(begin)
                graph.replay()
                end.record()
                torch.cuda.synchronize()
                times[name].append(begin.elapsed_time(end) / each)
    torch.cuda.current_stream().wait_stream(stream)
    return {name: slowest(laps) for name, laps in times.items()}


def fastest(runs):
    """The name of the fastest by medians."""
    times = in_graphs(runs, TRIES)
    return min(times, key=lambda name: statistics.median(times[name]))


def keep(record, result):
    """Recorded and printed by the first rank."""
    if dist.get_rank() == 0:
        print(times(record.add(result)), flush=True)


def warm_up(seconds=1.0):
    """Brings the GPUs to their clocks."""
    x = torch.randn(4096, 4096, dtype=DTYPE, device="cuda")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(20):
            torch.matmul(x, x)
        torch.cuda.synchronize()
    dist.barrier()


def of_torch(n):
    """An all-reduce of so many elements by the kernels of torch's own symmetric memory."""
    ops, group = torch.ops.symm_mem, dist.group.WORLD.group_name
    theirs = symmetric_memory.empty(n, dtype=DTYPE, device="cuda")
    symmetric_memory.rendezvous(theirs, dist.group.WORLD)
    if theirs.nbytes <= 1 << 20:
        return lambda: ops.one_shot_all_reduce(theirs, "sum", group)
    return lambda: ops.two_shot_all_reduce_(theirs, "sum", group)


def grids_for(nbytes, how):
    """How many programs may share such a transfer: two a multiprocessor at most, as those that wait for other ranks' must all be there at once, and a tile for each
    at least."""
    tile = {"low_latency": 512, "low_latency_two_shot": 1024, "push": 8192}.get(how, 4096)
    multiprocessors = torch.cuda.get_device_properties().multi_processor_count
    grids = (8, 16, 32, 64, multiprocessors, 2 * multiprocessors)
    return sorted({max(1, min(nbytes // tile, grid)) for grid in grids})


#: Where a grid doesn't fit, and where a launch that waits for others may not begin early.
REFUSED = ("COOPERATIVE_LAUNCH_TOO_LARGE", "NOT_SUPPORTED", "INVALID_VALUE")


def fits(run):
    """Whether the GPU has room for all programs of a launch at once."""
    try:
        run()
    except triton.DriverError as error:
        if not any(reason in str(error) for reason in REFUSED):
            raise
        return False
    return True


#: Of products, N × K.
SHAPES = ("12288x4096", "12288x8192", "29568x4096", "29568x8192")

#: Words with flags carry as much again.
MOST_BY_WORDS = 1 << 21


def ways_for(ranks, size, algorithms):
    """Which transitions are timed, by which algorithms."""
    found = {}
    for what in ("all-gather", "reduce-scatter", "all-reduce"):
        found[what] = [
            how
            for how in _cost.ALGORITHMS[what]
            if how in algorithms
            and (not how.startswith("low_latency") or size <= MOST_BY_WORDS)
            and (ranks > 2 or how != "two_shot" or size >= 1 << 22)
        ]
    return found


def configs_for(nbytes, how, tune):
    """Programs, warps, and whether a launch begins early: the numbers among which the fastest is looked for."""
    tune = tune and how.startswith("low_latency")
    return [
        {"grid": grid, "num_warps": warps, "early": early}
        for grid in grids_for(nbytes, how)
        for warps in ((4, 8, 16) if tune else (8,))
        for early in ((False, True) if tune else (False,))
    ]


def collectives(record, mesh, sizes, algorithms, tune):
    """Bytes are those of the whole tensor (of partial sums: of what each has)."""
    ranks = dist.get_world_size()
    whole, rows = tle.sharding(mesh), tle.sharding(mesh, ["device"])
    partial = tle.sharding(mesh, partial=["device"])
    rank = dist.get_rank()
    x, out = (distributed.empty((max(sizes) // 2,), DTYPE) for _ in range(2))
    for size in sizes:
        n = size // 2
        part = n // ranks
        at = torch.arange(n, device="cuda")
        # Sums that bfloat16 has, too.
        given_by = [(at * (2 * k + 3) % 5).to(DTYPE) for k in range(ranks)]
        x[:n] = given_by[rank]
        total = sum(given_by)
        wanted = {
            "all-gather": torch.cat([of_one[:part] for of_one in given_by]),
            "reduce-scatter": total[rank * part : (rank + 1) * part],
            "all-reduce": total,
        }
        given = torch.ones(n, dtype=DTYPE, device="cuda")
        others = {
            "all-gather": {"NCCL": lambda x=x[:part], o=given: dist.all_gather_into_tensor(o, x)},
            "reduce-scatter": {"NCCL": lambda x=x[:n], o=given[:part]: dist.reduce_scatter_tensor(o, x)},
            "all-reduce": {
                "NCCL": lambda o=given: dist.all_reduce(o),
                "torch's symmetric memory": of_torch(n),
            },
        }
        kinds = {
            "all-gather": (rows, whole, part, n),
            "reduce-scatter": (partial, rows, n, part),
            "all-reduce": (partial, whole, n, n),
        }
        for name, hows in ways_for(ranks, size, algorithms).items():
            source, to, taken, made = kinds[name]
            given_part, new_part = x[:taken], out[:made]
            best = {}
            for how in hows:

                def ours(
                    grid,
                    num_warps,
                    early,
                    x=given_part,
                    out=new_part,
                    source=source,
                    to=to,
                    how=how,
                    shape=(n,),
                ):
                    move_kernel[(grid,)](
                        x, out, source, to, shape, how, early, num_warps=num_warps, launch_pdl=early
                    )

                # Fewer programs meet sooner, and more move more at once.
                runs = {}
                for config in configs_for(max(taken, made) * 2, how, tune):
                    new_part.fill_(-1)
                    torch.cuda.synchronize()
                    dist.barrier()
                    run = functools.partial(ours, **config)
                    if fits(run):
                        assert torch.equal(new_part, wanted[name]), (name, how, size, config)
                        runs[tuple(config.values())] = run
                best[how] = fastest(runs), runs
            competitors = {how: runs[config] for how, (config, runs) in best.items()} | others[name]
            in_graph = in_graphs(competitors)
            theirs = {"NCCL": launched(others[name]["NCCL"])}
            for how, (config, runs) in best.items():
                case = f"{name}, {how.replace('_', ' ')}, {size:,} bytes"
                counts = dict(zip(("programs", "warps", "early"), map(int, config[: 3 if tune else 1])))
                result = Result("collectives", case, case, counts=counts)
                result.laps = {OURS: launched(runs[config])} | theirs
                result.graph = {OURS: in_graph[how]} | {who: in_graph[who] for who in others[name]}
                keep(record, result)
    for grid in (1, 128):
        case = f"a meeting, {grid} programs"
        result = Result("collectives", case, case)
        empty = functools.partial(empty_kernel[(grid,)], x)
        together = functools.partial(empty, launch_cooperative_grid=True)
        runs = {
            OURS: lambda grid=grid: meeting_kernel[(grid,)](mesh),
            "no meeting": empty,
            "no meeting, resident at once": together,
        }
        if tune:
            early = {
                "no meeting, early": functools.partial(empty, launch_pdl=True),
                "no meeting, resident at once, early": functools.partial(together, launch_pdl=True),
            }
            runs |= {name: run for name, run in early.items() if fits(run)}
        result.graph = in_graphs(runs)
        keep(record, result)
    theirs = symmetric_memory.empty(x.numel(), dtype=DTYPE, device="cuda")
    handle = symmetric_memory.rendezvous(theirs, dist.group.WORLD)
    peer = handle.get_buffer((dist.get_rank() + 1) % ranks, (x.numel(),), DTYPE)
    case = f"a peer's memory read, {x.nbytes:,} bytes"
    result = Result("collectives", case, case)
    result.graph = in_graphs(
        {
            OURS: lambda: peer_read_kernel[(264,)](x, out, x.numel(), mesh, 8192, num_warps=8),
            "copied": lambda: out.copy_(peer),
        }
    )
    keep(record, result)


def in_ways(ways, run, others):
    """``run`` in other ways than the example's own."""
    return {name: functools.partial(run, **how) for name, how in others.items() if ways}


def copying(shares, counts):
    """With how many programs that copy (together), ``shares``, and whether they store at the others what these need."""
    return {
        f"{n} {'push' if push else 'fetch'}": {shares: n, "push": push}
        for n in counts
        for push in (False, True)
    }


#: Ways to gather and multiply, and to multiply and add up: tiles, and in which order.
GATHERED = {f"128 × {n}": {"block": (128, n, 64)} for n in (256, 224)} | copying("team", (4, 33))
ADDED_UP = {"128 × 256": {"block": (128, 256, 64)}} | {f"{n} ahead": {"ahead": n} for n in (0, 32, 66)}


def products(record, mesh, shapes, ways):
    """Of M by N over K in all: all-gather of rows with N / ranks columns each, sums with K / ranks each."""
    import gemm_across_devices as gemms

    ranks, rank = dist.get_world_size(), dist.get_rank()
    M = 8192
    torch.manual_seed(rank)
    gathered = distributed.empty((M * 8192,), torch.float16)
    parts = distributed.empty((M * 29568,), torch.float16)
    made = distributed.empty((M * 29568,), torch.float16)
    counts = torch.zeros(2, dtype=torch.int32, device="cuda")
    for N, K in shapes:
        own = M // ranks
        a = gathered[: M * K].view(M, K)
        a.normal_()
        b = torch.randn(N // ranks, K, dtype=torch.float16, device="cuda")
        c = torch.empty(M, N // ranks, dtype=torch.float16, device="cuda")
        whole_a, other = torch.empty_like(a), torch.empty_like(c)
        mine = a[rank * own : (rank + 1) * own].clone()

        def gather_then(mine=mine, whole_a=whole_a, b=b, other=other):
            dist.all_gather_into_tensor(whole_a, mine)
            torch.matmul(whole_a, b.T, out=other)

        ours = functools.partial(gemms.all_gather_gemm, a, b, c, counts, mesh)
        report(record, "all-gather, product", N, K, c, other, gather_then, ours,
               lambda whole_a=whole_a, b=b, other=other: torch.matmul(whole_a, b.T, out=other), in_ways(ways, ours, GATHERED),
               (a[: rank * own], a[(rank + 1) * own :]))  # fmt: skip

        a = torch.randn(M, K // ranks, dtype=torch.float16, device="cuda")
        b = torch.randn(N, K // ranks, dtype=torch.float16, device="cuda")
        product, scattered = (torch.empty(n, N, dtype=torch.float16, device="cuda") for n in (M, own))
        c, handed = made[: M * N].view(M, N), parts[: M * N].view(ranks, own, N)

        def then_scatter(a=a, b=b, product=product, scattered=scattered):
            torch.matmul(a, b.T, out=product)
            dist.reduce_scatter_tensor(scattered, product)

        def then_reduce(a=a, b=b, product=product):
            torch.matmul(a, b.T, out=product)
            dist.all_reduce(product)

        def alone(a=a, b=b, product=product):
            torch.matmul(a, b.T, out=product)

        ours = functools.partial(gemms.gemm_reduce_scatter, a, b, handed, c[:own], mesh)
        report(
            record,
            "product, reduce-scatter",
            N,
            K,
            c[:own],
            scattered,
            then_scatter,
            ours,
            alone,
            in_ways(ways, ours, ADDED_UP),
        )
        ours = functools.partial(gemms.gemm_all_reduce, a, b, handed, c, mesh)
        report(record, "product, all-reduce", N, K, c, product, then_reduce, ours, alone)


def report(record, name, N, K, ours, others, theirs, run, alone, ways=None, come=()):
    """``come`` comes from other ranks."""
    theirs()
    for way in (run, *(ways or {}).values()):
        for stale in (ours, *come):
            stale.fill_(float("nan"))
        torch.cuda.synchronize()
        dist.barrier()
        way()
        # Both are rounded to float16, and where ranks add up, so are what they add: a block of 64 that one of 8192 sums lacks is off by 0.09.
        close(ours, others, 4e-3)
    case = f"{name}, {N:,} × {K:,}"
    result = Result("products across devices", case, case)
    competitors = {OURS: run, "cuBLAS and NCCL": theirs, "cuBLAS alone": alone} | (ways or {})
    result.graph = in_graphs(competitors, 7)
    keep(record, result)


def attention(record, mesh, ways):
    """The same kernel with all on one GPU, beside it over all: heads of 128, as many tokens in all. Each GPU has all for itself, too, and so each is as warm by
    one as by the other: they take turns."""
    import ring_attention as ring
    from exact import exact_attention

    ranks, rank, (heads, tokens, d) = dist.get_world_size(), dist.get_rank(), (8, 65536, 128)
    counts, own = torch.zeros(2, dtype=torch.int32, device="cuda"), tokens // ranks
    torch.manual_seed(0)
    q, k, v = (torch.randn(heads, tokens, d, dtype=torch.float16, device="cuda") for _ in range(3))
    keys, values = (distributed.empty((heads * tokens * d,), torch.float16) for _ in range(2))
    mine = [x.view(ranks, heads, own, d) for x in (keys, values)]
    for to, x in zip(mine, (k, v)):
        to.zero_()
        to[rank].copy_(x[:, rank * own : (rank + 1) * own])
    part = q[:, rank * own : (rank + 1) * own].contiguous()
    one, o = torch.empty_like(q), torch.empty_like(part)
    how = dict(block=(128, 64), num_warps=8, num_stages=3)
    alone = functools.partial(
        ring.ring_attention, q, k[None], v[None], one, counts, mesh[rank : rank + 1], **how
    )
    ours = functools.partial(ring.ring_attention, part, *mine, o, counts, mesh, **how)
    runs = {OURS: ours, "one GPU": alone} | in_ways(ways, ours, copying("copiers", (8, 32)))
    # Of 65,536 keys 16 lost ones change a row by 0.006 to 0.012 of its spread, 1,024 by 0.12 and more (tests/runtime/test_tolerance.py); 0.002 are allowed. What comes
    # from other ranks is poisoned as what is stored is, or a way that brings nothing would pass with what the one before it brought.
    wanted, error = exact_attention(part, k, v, False)[0], {}
    others = [x[other] for x in mine for other in range(ranks) if other != rank]
    for who, run in runs.items():
        stale = [one] if run is alone else [o, *others]
        for x in stale:
            poison(x)
        torch.cuda.synchronize()
        dist.barrier()
        run()
        mine_of_one = one[:, rank * own : (rank + 1) * own]
        error[who] = close(mine_of_one if run is alone else o, wanted)
    case = f"attention, {heads} heads of {d}, {tokens:,} tokens"
    result = Result("products across devices", case, case, errors=error)
    result.graph = in_graphs(runs, 6)
    keep(record, result)


def fault(mesh):
    """The last rank does not come."""
    last = dist.get_world_size() - 1
    if dist.get_rank() != last:
        all_reduce_kernel[(1,)](
            distributed.empty((64,), torch.float32), distributed.empty((64,), torch.float32), 64, mesh, 64
        )
        try:
            distributed.synchronize()
        except distributed.RankError as error:
            assert f"rank {last}, whose program 0 has not come" in str(error), error
            say(f"a rank that does not come: {error}")
        else:
            raise AssertionError("nothing was reported")
    else:
        time.sleep(12)
    # The GPU takes no more work of the others.
    os._exit(0)


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--record", help="the file of raw results to add to")
    options.add_argument("--only", nargs="*", choices=WHAT, default=WHAT)
    options.add_argument("--bytes", type=int, nargs="*", default=[1 << k for k in range(16, 29, 2)])
    options.add_argument(
        "--how",
        nargs="*",
        default=_cost.ALGORITHMS["all-reduce"],
        help="the algorithms",
    )
    options.add_argument(
        "--tune",
        action="store_true",
        help="of words with flags other numbers of warps, and launches that begin early, too",
    )
    options.add_argument("--by", choices=("peer", "nvshmem"), default="peer", help="how ranks are reached")
    options.add_argument(
        "--ways",
        action="store_true",
        help="other tiles, orders and ways of copying than those of the examples, too",
    )
    options.add_argument("--shapes", nargs="*", default=SHAPES, help="of products, as 12288x4096")
    given = options.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    distributed.init(memory=3 << 30, time_limit=5, by=given.by)
    # With NVSHMEM the GPUs of the host are as many nodes.
    level = "node" if given.by == "nvshmem" else "device"
    mesh = tle.device_mesh({level: [("device", dist.get_world_size())]})
    record = Record(given.record, about() | {"gpus": dist.get_world_size()})
    say(record.run.about)
    if "check" in given.only:
        check(mesh, given.by)
    if {"collectives", "products", "attention"} & set(given.only):
        warm_up()
    if "collectives" in given.only:
        collectives(record, mesh, given.bytes, given.how, given.tune)
    if "products" in given.only:
        products(record, mesh, [tuple(map(int, shape.split("x"))) for shape in given.shapes], given.ways)
    if "attention" in given.only:
        attention(record, mesh, given.ways)
    if "fault" in given.only:
        fault(mesh)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
