"""Compile times stage by stage, medians of ten cache misses in a warm process. No GPU is needed."""

import os
import statistics

import numpy as np
from peers import load

import tilewright
import tilewright.language as tl

F16 = np.zeros((4096, 4096), np.float16)
HEADS = np.zeros((1, 4096, 128), np.float16)


def kernels():
    """Name, kernel, arguments and options of what is timed."""
    flash = {"D": 128, "BLOCK_M": 128, "BLOCK_N": 64, "CAUSAL": False, "EVEN": True}
    tile = {
        "BLOCK_M": 128,
        "BLOCK_N": 256,
        "BLOCK_K": 64,
        "GROUP_M": 8,
        "ACC": tl.float32,
        "PRECISION": "tf32",
    }
    yield "add", load("vector_add").add_kernel, (F16, F16, F16, 4096), {"BLOCK": 1024}
    yield "softmax, 1000 wide", load("softmax").softmax_kernel, (F16, F16, 1000, 1000, 1000), {"BLOCK": 1000}
    sizes = (4096, 4096, 4096, 4096, 1, 4096, 1, 4096, 1)
    yield "matmul 128x256x64", load("matmul").matmul_kernel, (F16, F16, F16, *sizes), {**tile, "num_warps": 8}
    yield (
        "flash attention D=128, 128x64",
        load("flash_attention").flash_kernel,
        (HEADS, HEADS, HEADS, HEADS, 0.1, 4096, 4096 * 128, 128),
        {**flash, "num_warps": 8, "num_stages": 3},
    )


def stages(kernel, args, options, target: str, runs: int = 10) -> tuple[dict[str, float], object]:
    """Milliseconds of each stage, and the compiled kernel."""
    times: dict[str, list[float]] = {}
    compiled = None
    for run in range(runs + 1):
        kernel.clear_cache()
        compiled = kernel.warmup(*args, **options, grid=(1,), target=target)
        if run:
            for stage, seconds in compiled.times.items():
                times.setdefault(stage, []).append(seconds * 1e3)
    return {stage: statistics.median(t) for stage, t in times.items()}, compiled


def main(target: str = "cuda:90") -> None:
    os.environ["TILEWRIGHT_ALWAYS_COMPILE"] = "1"
    print(f"compile time for {target}, ms, medians of 10 cache misses (tilewright {tilewright.__version__})")
    columns = ["frontend", "ttir", "ttgir", "llir", "ptx", "cubin"]
    print(f"{'':32}" + "".join(f"{c:>10}" for c in columns) + f"{'all but ptxas':>15}{'LLVM instrs':>13}")
    for name, kernel, args, options in kernels():
        times, compiled = stages(kernel, args, options, target)
        row = "".join(f"{times.get(c, float('nan')):10.2f}" for c in columns)
        ours = sum(t for stage, t in times.items() if stage not in ("cubin", "store"))
        print(f"{name:32}{row}{ours:15.2f}{compiled.metadata.llvm_instructions:13}", flush=True)


if __name__ == "__main__":
    main()
