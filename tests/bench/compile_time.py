"""Compile times stage by stage, medians of ten cache misses in a warm process; where Triton is installed, in turns with it, on the same
sources with the same specialization. No GPU is needed.

``python compile_time.py [--record FILE]``
"""

import argparse
import os
import statistics
from dataclasses import dataclass

import numpy as np
from peers import load, load_for_triton, machine, one_ptxas
from results import OURS, TRITON, Record, Result

import tilewright.language as tl

F16 = np.zeros((4096, 4096), np.float16)
HEADS = np.zeros((1, 4096, 128), np.float16)
STAGES = ("frontend", "ttir", "ttgir", "llir", "ptx", "cubin")
LAUNCH = ("num_warps", "num_stages")


@dataclass
class Case:
    """A kernel with its arguments and options; of Triton with these ``pads``, since its tiles are powers of two."""

    name: str
    module: str
    kernel: str
    args: tuple
    options: dict
    pads: dict


def cases() -> list[Case]:
    flash = {"D": 128, "BLOCK_M": 128, "BLOCK_N": 64, "CAUSAL": False, "EVEN": True, "GROUP": 1}
    tile = {
        "BLOCK_M": 128,
        "BLOCK_N": 256,
        "BLOCK_K": 64,
        "GROUP_M": 8,
        "ACC": tl.float32,
        "PRECISION": "tf32",
    }
    sizes = (4096, 4096, 4096, 4096, 1, 4096, 1, 4096, 1)
    return [
        Case("add", "vector_add", "add_kernel", (F16, F16, F16, 4096), {"BLOCK": 1024}, {}),
        Case("softmax, 1000 wide (Triton: 1024)", "softmax", "softmax_kernel", (F16, F16, 1000, 1000, 1000), {"BLOCK": 1000}, {"BLOCK": 1024}),
        Case("matmul 128×256×64, 8 warps", "matmul", "matmul_kernel", (F16, F16, F16, *sizes), {**tile, "num_warps": 8}, {}),
        Case("flash attention D=128, 128×64, 8 warps, 3 stages", "flash_attention", "flash_kernel",
             (HEADS, HEADS, HEADS, HEADS, 0.1, 4096, 4096 * 128, 128), {**flash, "num_warps": 8, "num_stages": 3}, {}),
    ]  # fmt: skip


def ours(case: Case, target: str):
    """Compiles once; milliseconds of each stage, and the instructions handed to LLVM."""
    kernel = getattr(load(case.module), case.kernel)
    kernel.clear_cache()
    compiled = kernel.warmup(*case.args, **case.options, grid=(1,), target=target)
    return {stage: compiled.times[stage] * 1e3 for stage in STAGES if stage in compiled.times}, compiled.metadata.llvm_instructions  # fmt: skip


def tritons(case: Case, target: str) -> dict[str, float]:
    """The same by Triton's compilation listener."""
    import triton
    from triton.backends.compiler import GPUTarget

    kernel = getattr(load_for_triton(case.module), case.kernel)
    names = kernel.arg_names
    given = dict(zip(names, case.args))
    constants = {n: v for n, v in (case.options | case.pads).items() if n not in LAUNCH}
    constants = {n: triton.language.float32 if v is tl.float32 else v for n, v in constants.items()}
    constants |= {n: 1 for n, v in given.items() if isinstance(v, int) and v == 1}
    kinds = {np.ndarray: "*fp16", int: "i32", float: "fp32"}
    signature = {n: "constexpr" if n in constants else kinds[type(given[n])] for n in names}
    aligned = [n for n, v in given.items() if n not in constants and (isinstance(v, np.ndarray) or (isinstance(v, int) and v % 16 == 0))]  # fmt: skip
    source = triton.compiler.ASTSource(
        kernel,
        signature,
        {(names.index(n),): v for n, v in constants.items()},
        {(names.index(n),): [["tt.divisibility", 16]] for n in aligned},
    )
    found = {}

    def listen(times, **_):
        found.update({"frontend": times.ir_initialization / 1e3} | {stage: us / 1e3 for stage, us in times.lowering_stages})  # fmt: skip

    triton.knobs.compilation.listener = listen
    triton.compile(source, target=GPUTarget("cuda", int(target.split(":")[1]), 32),
                   options={n: v for n, v in case.options.items() if n in LAUNCH})  # fmt: skip
    return found


def about(peer: bool) -> dict:
    """The machine and versions, for the record."""
    found = machine()
    if peer:
        import triton

        found |= {"triton": triton.__version__, "ptxas": one_ptxas()}
    return found


def has_triton() -> bool:
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


def measure(case: Case, target: str, peer: bool, runs: int = 10) -> Result:
    result = Result("compile time", case.name, case.name, "ms")
    result.stages = {OURS: {}} | ({TRITON: {}} if peer else {})
    for run in range(runs + 1):
        times, instructions = ours(case, target)
        found = {OURS: times} | ({TRITON: tritons(case, target)} if peer else {})
        for who, stages in found.items():
            if run:
                for stage, ms in stages.items():
                    result.stages[who].setdefault(stage, []).append(round(ms, 3))
                own = sum(ms for stage, ms in stages.items() if stage != "cubin")
                result.laps.setdefault(who, []).append(round(own, 3))
    result.counts = {"LLVM instructions": instructions}
    return result


def main(target: str = "cuda:90") -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", help="the file of raw results to add to")
    options, _ = parser.parse_known_args()
    os.environ["TILEWRIGHT_ALWAYS_COMPILE"] = os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    peer = has_triton()
    record = Record(options.record, about(peer))
    print(f"compile time for {target}, ms, medians of 10 cache misses: {record.run.about}")
    print(f"{'':50}" + "".join(f"{s:>10}" for s in STAGES) + f"{'all but ptxas':>15}{'Triton':>10}{'ratio':>8}{'LLVM instrs':>13}")  # fmt: skip
    for case in cases():
        result = record.add(measure(case, target, peer))
        row = "".join(f"{statistics.median(result.stages[OURS].get(s, [float('nan')])):10.2f}" for s in STAGES)  # fmt: skip
        own, theirs = result.ms(OURS), result.ms(TRITON)
        print(f"{case.name:50}{row}{own:15.2f}{theirs:10.2f}{theirs / own:8.2f}{result.counts['LLVM instructions']:13}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
