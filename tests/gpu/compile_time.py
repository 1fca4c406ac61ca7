"""Compile time of the flash attention kernel (D=128, blocks 128x64, 8 warps, 3 stages) stage by stage, medians of cache misses."""

import os
import statistics
import sys

import tilewright
from peers import load


def main():
    import numpy as np

    os.environ["TILEWRIGHT_ALWAYS_COMPILE"] = "1"
    flash = load("flash_attention").flash_kernel
    arrays = [np.zeros((1, 4096, 128), np.float16) for _ in range(4)]
    stages: dict[str, list[float]] = {}
    for run in range(11):
        flash.clear_cache()
        kernel = flash.warmup(
            *arrays, 0.1, 4096, 4096 * 128, 128, D=128, BLOCK_M=128, BLOCK_N=64, CAUSAL=False, EVEN=True,
            num_warps=8, num_stages=3, grid=(1,), target="cuda:90",
        )  # fmt: skip
        if run:
            for stage, seconds in kernel.times.items():
                stages.setdefault(stage, []).append(seconds * 1e3)
    medians = {stage: statistics.median(t) for stage, t in stages.items()}
    for stage, ms in medians.items():
        print(f"{stage:10} {ms:8.2f} ms")
    print(f"all but ptxas {sum(ms for stage, ms in medians.items() if stage != 'cubin'):8.2f} ms")
    print("LLVM instructions", kernel.metadata.llvm_instructions, "| registers", kernel.n_regs, "| spills", kernel.n_spills)
    return 0


if __name__ == "__main__":
    print("tilewright", tilewright.__version__)
    sys.exit(main())
