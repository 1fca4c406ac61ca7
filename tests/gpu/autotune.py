"""How long a new kernel makes people wait: autotuning 24 configurations of a matrix product, with nothing kept and with what the
last process kept, and the first calls of the tutorials' kernels, `ptxas` included. Tilewright and Triton take turns.

Times are from processes of their own, with caches of their own. The clock starts when torch has used the GPU, and stops
when the result is there. `python tests/gpu/autotune.py tune` or `cold` runs one half.
"""

import argparse
import functools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

WHO = ("tilewright", "triton")
SIZE = 4096

TILES = ((128, 256, 64), (256, 128, 64), (128, 128, 64), (128, 64, 64), (64, 128, 64), (64, 64, 64))
CONFIGS = [(tile, warps, stages) for tile in TILES for warps in (4, 8) for stages in (3, 4)]


def matmul(m, a, b, c, run):
    """The launch of a matrix product, by ``run``."""
    grid = lambda meta: (math.ceil(SIZE / meta["BLOCK_M"]) * math.ceil(SIZE / meta["BLOCK_N"]),)
    strides = [s for x in (a, b, c) for s in x.stride()]
    return run[grid](a, b, c, SIZE, SIZE, SIZE, *strides, GROUP_M=8, ACC=m.tl.float32, PRECISION="tf32")


def tune(m, torch, keep: bool):
    """Seconds that the first call of an autotuned product takes, the configuration that it chose, and what measuring took."""
    a, b = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.float16) for _ in range(2))
    c = torch.empty_like(a)
    want = a @ b
    configs = [
        m.triton.Config(
            dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), tile)), num_warps=warps, num_stages=stages
        )
        for tile, warps, stages in CONFIGS
    ]
    tuner = m.triton.autotune(configs, key=["M", "N", "K"], cache_results=keep)(m.matmul_kernel)
    torch.cuda.synchronize()
    start = time.perf_counter()
    matmul(m, a, b, c, tuner)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    torch.testing.assert_close(c, want, rtol=1e-2, atol=1e-1)
    timings = getattr(tuner, "configs_timings", None) or {}
    times = {str(c): found[0] if isinstance(found, (list, tuple)) else found for c, found in timings.items()}
    return {"seconds": seconds, "best": str(tuner.best_config), "milliseconds": times}


def first_calls(torch):
    """By name: the example, and its first launch."""
    empty = functools.partial(torch.empty, device="cuda")
    half = functools.partial(torch.randn, device="cuda", dtype=torch.float16)
    single = functools.partial(torch.randn, device="cuda")
    square = half(4096, 4096)
    heads = [half(8, 1024, 128) for _ in range(5)]
    rows = [empty(8, 1024) for _ in range(2)]
    big = {"block": (128, 256, 64), "num_warps": 8, "num_stages": 3}
    attention = {"num_warps": 8, "num_stages": 2}
    yield "first of the process", "own:nothing", lambda m: m.nothing(empty(16))
    yield "vector add", "vector_add", lambda m: m.add(single(1 << 20), single(1 << 20), empty(1 << 20))
    yield "softmax", "softmax", lambda m: m.softmax(single(1024, 1024), empty(1024, 1024))
    yield (
        "matmul",
        "matmul",
        lambda m: m.matmul(square, square, empty(4096, 4096, dtype=torch.float16), **big),
    )
    yield "dropout", "dropout", lambda m: m.dropout(single(1 << 20), empty(1 << 20), 0.5, 7)
    yield (
        "layer norm",
        "layer_norm",
        lambda m: m.layer_norm(
            single(1024, 1024), single(1024), single(1024), empty(1024, 1024), empty(1024), empty(1024)
        ),
    )
    yield "layer norm, backward", "layer_norm_backward", lambda m: m.layer_norm_backward(
        single(1024, 1024), single(1024, 1024), single(1024), single(1024), single(1024), empty(1024, 1024),
        empty(1024), empty(1024), [empty(64, 1024) for _ in range(2)],
    )  # fmt: skip
    yield "attention", "flash_attention", lambda m: m.flash_attention(*heads[:4], False)
    yield "attention, causal", "flash_attention", lambda m: m.flash_attention(*heads[:4], True)
    backward = "flash_attention_backward"
    yield "attention, dk and dv", backward, lambda m: m.dkdv(*heads[:4], *rows, *heads[:2], True, **attention)
    yield "attention, dq", backward, lambda m: m.dq(*heads[:4], *rows, heads[4], True, **attention)
    yield "libdevice", "own:asin", lambda m: m.asin(single(1 << 20), empty(1 << 20))
    yield (
        "grouped products",
        "own:grouped",
        lambda m: m.grouped(square, square, empty(4096, 4096, dtype=torch.float16)),
    )
    for name, more in (("", {}), (", warp specialized", {"warp_specialize": True})):
        yield (
            f"persistent matmul{name}",
            "persistent_matmul",
            functools.partial(
                lambda more, m: m.persistent_matmul(
                    square,
                    square,
                    empty(4096, 4096, dtype=torch.float16),
                    (128, 128, 64),
                    num_warps=8,
                    **more,
                ),
                more,
            ),
        )


#: What the tutorials have and the examples have not.
OWN = {
    "nothing": """
@triton.jit
def nothing_kernel(x_ptr):
    tl.store(x_ptr, 1.0)


def nothing(x):
    nothing_kernel[(1,)](x)
""",
    "asin": """
@triton.jit
def asin_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, libdevice.asin(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


def asin(x, out):
    asin_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
""",
    "grouped": """
@triton.jit
def grouped_kernel(a_ptrs, b_ptrs, c_ptrs, sizes, groups, PROGRAMS: tl.constexpr,
                   BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    tile = tl.program_id(0)
    before = 0
    for g in range(groups):
        m = tl.load(sizes + 3 * g)
        n = tl.load(sizes + 3 * g + 1)
        k = tl.load(sizes + 3 * g + 2)
        across = tl.cdiv(n, BLOCK_N)
        tiles = tl.cdiv(m, BLOCK_M) * across
        while tile >= before and tile < before + tiles:
            a = tl.load(a_ptrs + g).to(tl.pointer_type(tl.float16))
            b = tl.load(b_ptrs + g).to(tl.pointer_type(tl.float16))
            c = tl.load(c_ptrs + g).to(tl.pointer_type(tl.float16))
            rows = (tile - before) // across * BLOCK_M + tl.arange(0, BLOCK_M)
            cols = (tile - before) % across * BLOCK_N + tl.arange(0, BLOCK_N)
            inner = tl.arange(0, BLOCK_K)
            a_tile = a + rows[:, None] * k + inner[None, :]
            b_tile = b + inner[:, None] * n + cols[None, :]
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for _ in range(tl.cdiv(k, BLOCK_K)):
                tl.multiple_of(a_tile, [16, 16])
                tl.multiple_of(b_tile, [16, 16])
                acc += tl.dot(tl.load(a_tile), tl.load(b_tile))
                a_tile += BLOCK_K
                b_tile += BLOCK_K * n
            tl.store(c + rows[:, None] * n + cols[None, :], acc.to(tl.float16))
            tile += PROGRAMS
        before += tiles


def grouped(a, b, c):
    pointers = [torch.tensor([x.data_ptr()] * 4, device="cuda") for x in (a, b, c)]
    sizes = torch.tensor([512, 512, 512] * 4, device="cuda", dtype=torch.int32)
    grouped_kernel[(84,)](*pointers, sizes, 4, PROGRAMS=84, BLOCK_M=128, BLOCK_N=128, BLOCK_K=32)
""",
}


def module(name: str, who: str):
    """An example under one compiler, or what stands above."""
    from peers import load, load_for_triton

    if not name.startswith("own:"):
        return (load if who == "tilewright" else load_for_triton)(name)
    name = name.removeprefix("own:")
    folder = tempfile.mkdtemp()
    head = "import torch\nimport {0} as triton\nimport {0}.language as tl\nfrom {0}.language.extra import libdevice\n"
    Path(folder, f"own_{name}.py").write_text(head.format(who) + OWN[name])
    sys.path.insert(0, folder)
    return __import__(f"own_{name}")


class Recorded:
    """Stands for a module: calls of its functions give their name and arguments."""

    def __getattr__(self, name):
        return lambda *args, **kwargs: (name, args, kwargs)


def cold(torch, who: str, only: list[str]):
    """Seconds of each kernel's first call, after that of a first kernel, with which each compiler makes itself ready."""
    found = {}
    for label, name, call in first_calls(torch):
        if only and label not in only and label != "first of the process":
            continue
        try:
            m, (function, args, kwargs) = module(name, who), call(Recorded())
            torch.cuda.synchronize()
            start = time.perf_counter()
            getattr(m, function)(*args, **kwargs)
            torch.cuda.synchronize()
            found[label] = time.perf_counter() - start
        except Exception as error:
            line = (str(error).splitlines() or [""])[0]
            print(f"    {who}, {label}: {type(error).__name__} {line[:200]}", file=sys.stderr)
    return found


def child(who: str, what: str, details: list[str]):
    """Runs in a process of its own and prints one line of JSON."""
    import torch

    torch.manual_seed(0)
    torch.cuda.synchronize()
    if what == "tune":
        found = tune(module("matmul", who), torch, keep=details == ["kept"])
    else:
        # Triton asks for the memory of the descriptors that kernels make.
        allocate = lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8)
        __import__(who).set_allocator(allocate)
        found = cold(torch, who, details)
    print(json.dumps(found), flush=True)


def ask(cache: str, *arguments: str):
    """What a process with this cache says."""
    environment = os.environ | {"TRITON_CACHE_DIR": cache, "TILEWRIGHT_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, __file__, "--child", *arguments], env=environment, capture_output=True, text=True
    )
    warned = [line for line in done.stderr.splitlines() if line.startswith(f"    {arguments[0]}, ")]
    if warned and not done.returncode:
        print("\n".join(warned), flush=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        print(f"    {' '.join(arguments)} FAILED: {last[:300]}", flush=True)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def tuning(rounds: int):
    """Prints the times of autotuning."""
    print(
        f"autotuning {len(CONFIGS)} configurations of a product {SIZE}³ in fp16, s, median of {rounds} (all)"
    )
    kinds = ("empty cache", "kernels kept", "results kept")
    times = {(who, kind): [] for who in WHO for kind in kinds}
    chosen, measured = {who: set() for who in WHO}, {}
    for _ in range(rounds):
        for who in WHO:
            with tempfile.TemporaryDirectory() as cache:
                # The first leaves kernels and results. `measured` has the kernels, but must measure again.
                for kind, detail in zip(kinds, ("kept", "measured", "kept")):
                    if found := ask(cache, who, "tune", detail):
                        times[who, kind].append(found["seconds"])
                        chosen[who].add(found["best"])
                        measured[who] = found["milliseconds"] or measured.get(who, {})
    for kind in kinds:
        for who in WHO:
            if found := times[who, kind]:
                all_of_them = " ".join(f"{t:.3f}" for t in found)
                print(f"  {kind:14}{who:12}{statistics.median(found):8.3f}   {all_of_them}")
    for who in WHO:
        print(f"  {who} chose: {'; '.join(sorted(chosen[who]))}")
        best = sorted(measured.get(who, {}).items(), key=lambda item: item[1])[:5]
        for config, milliseconds in best:
            print(f"      {milliseconds:.4f} ms  {config}")
    sys.stdout.flush()


def coldness(rounds: int, only: list[str]):
    """Prints the times of first calls."""
    print(f"first calls with an empty cache, ms, medians of {rounds}: Tilewright, Triton, ratio")
    times = {}
    for _ in range(rounds):
        for who in WHO:
            with tempfile.TemporaryDirectory() as cache:
                for label, seconds in (ask(cache, who, "cold", *only) or {}).items():
                    times.setdefault(label, {}).setdefault(who, []).append(1e3 * seconds)
    ratios = []
    for label, found in times.items():
        ours, theirs = (statistics.median(found.get(who, [math.nan])) for who in WHO)
        print(f"  {label:36}{ours:9.1f}{theirs:9.1f}{theirs / ours:8.2f}", flush=True)
        if label != "first of the process" and theirs / ours > 0:
            ratios.append(theirs / ours)
    if ratios:
        mean = math.exp(statistics.mean(map(math.log, ratios)))
        print(f"  {f'geometric mean of {len(ratios)}, but for the first':54}{mean:8.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("part", nargs="?", choices=("tune", "cold"))
    parser.add_argument("only", nargs="*", help="kernels of `cold`")
    given = parser.parse_args()
    if given.child:
        return child(given.child[0], given.child[1], given.child[2:])
    from peers import versions

    print(f"{versions()}, {len(os.sched_getaffinity(0))} cores", flush=True)
    if given.part != "cold":
        tuning(given.rounds)
    if given.part != "tune":
        coldness(given.rounds, given.only)


if __name__ == "__main__":
    main()
