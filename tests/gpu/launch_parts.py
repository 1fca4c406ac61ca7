"""What of a short kernel's time is its launch, and what makes that longer: empty kernels that differ in one thing each, and two short kernels with
other divisions of the L1 cache. µs of a launch behind a kernel that empties the L2 cache, and of one in a graph; medians of rounds in turns.

A multiprocessor divides memory between L1 cache and shared memory (``CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT``, in per cent for
shared memory). A kernel that wants another division than the one before it may have to wait until that has ended.
"""

import ctypes
import statistics
import sys
from pathlib import Path

import timing
import torch

import tilewright as triton
import tilewright.language as tl
from tilewright import tle

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "tle"))

import moe_align
import topk_selector

CARVEOUT = 9
CUDA = ctypes.CDLL("libcuda.so.1")


@triton.jit
def empty(x_ptr):
    pass


@triton.jit
def empty_of_many(a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q):
    pass


@triton.jit
def shared(x_ptr, N: tl.constexpr):
    """A buffer of N bytes, of which one word is written where ``x_ptr`` is no pointer that a launch has."""
    if x_ptr.to(tl.int64) == 1:
        buffer = tle.gpu.alloc([N // 4], dtype=tl.int32)
        buffer.store(tl.zeros([N // 4], tl.int32))
        tl.store(x_ptr + tl.arange(0, N // 4), buffer.load())


@triton.jit
def long_code(x_ptr, n, STEPS: tl.constexpr):
    """Code that is there and not run."""
    if n < 0:
        at = tl.arange(0, 128)
        x = tl.load(x_ptr + at)
        for i in tl.static_range(STEPS):
            x = x * 1664525 + (x >> (i % 31))
        tl.store(x_ptr + at, x)


def divide(functions, percent):
    """Has kernels ask for so much shared memory; the ones compiled so far."""
    for function in functions:
        for kernel in function.compiled_kernels:
            error = CUDA.cuFuncSetAttribute(ctypes.c_void_p(kernel.function), CARVEOUT, percent)
            assert error == 0, error


def empty_kernels():
    """Names and launches."""
    x = torch.zeros(1 << 16, dtype=torch.int32, device="cuda")
    runs = {}
    for grid in (1, 64, 132):
        runs[f"empty, {grid} programs"] = lambda grid=grid: empty[(grid,)](x)
    for warps in (1, 8, 16, 32):
        runs[f"{warps} warps"] = lambda warps=warps: empty[(64,)](x, num_warps=warps)
    runs["16 pointers"] = lambda: empty_of_many[(64,)](*[x] * 16)
    runs["cluster of 2"] = lambda: empty[(64,)](x, num_ctas=2)
    runs["cooperative"] = lambda: empty[(64,)](x, launch_cooperative_grid=True)
    runs["launch_pdl"] = lambda: empty[(64,)](x, launch_pdl=True)
    for steps in (500, 4000):
        runs[f"{steps} steps of code not run"] = lambda steps=steps: long_code[(64,)](x, 3, steps)
    for kib in (1, 8, 16, 32, 64, 128, 224):
        runs[f"{kib} KiB shared"] = lambda kib=kib: shared[(64,)](x, kib << 10)
    return runs


def short_kernels():
    """Names, launches, and the functions of which they are."""
    x = torch.randn(64, 4096, device="cuda")
    ends = torch.full((64,), 4096, device="cuda", dtype=torch.int32)
    out = torch.empty(64, 128, device="cuda", dtype=torch.int32)
    runs = {}
    for warps in (4, 8, 16):
        for radix in (8, 10, 11):
            config = {"room": 4096, "num_warps": warps, "radix": radix}
            runs[f"selector {warps} warps, radix {radix}"] = lambda config=config: topk_selector.select(
                x, ends, 128, out, **config
            )
    for tokens in (8192, 16384):
        experts = torch.randint(0, 64, (tokens,), device="cuda", dtype=torch.int32)
        sizes = moe_align.most_places(tokens, 64, 16), moe_align.most_places(tokens, 64, 16) // 16, 1
        outs = [torch.empty(n, dtype=torch.int32, device="cuda") for n in sizes]
        counts = torch.empty(256 * 64, dtype=torch.int32, device="cuda")
        for programs in (32, 64, 128):
            for warps in (8, 16, 32):
                runs[f"moe_align {tokens}, {programs} programs, {warps} warps"] = (
                    lambda e=experts, o=outs, c=counts, p=programs, w=warps: moe_align.align_into(
                        o, c, e, 64, 16, "clusters", p, 1024, w
                    )
                )
    modules = vars(topk_selector).values(), vars(moe_align).values()
    functions = {id(f): f for module in modules for f in module if hasattr(f, "compiled_kernels")}
    return runs, functions.values()


def table(runs, what):
    """Prints how long launches take."""
    launched = timing.race(runs, 5, 10)
    in_graph = timing.graph_laps(runs, 5, 5)
    for name in runs:
        print(
            f"{what} | {name} | {1e3 * launched[name]:.2f} | {1e3 * statistics.median(in_graph[name]):.2f}",
            flush=True,
        )


def main():
    print(torch.cuda.get_device_name())
    runs = empty_kernels()
    for run in runs.values():
        run()
    table(runs, "as it is")
    for percent in (0, 100):
        divide([empty, shared, long_code], percent)
        table(runs, f"carveout {percent}")
    runs, functions = short_kernels()
    for run in runs.values():
        run()
    for percent in (-1, 0, 8, 16, 32, 64, 100):
        divide(functions, percent)
        table(runs, f"carveout {percent}")


if __name__ == "__main__":
    main()
