"""The command line: runs the programs, compares, and prints one line for each that differs and a table."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np

from tilewright.testing import simulate_ptx, tensor_map

from . import arithmetic, atomics, conversions, copies, matrices, others, tensors, warp, warp_groups
from .driver import Gpu
from .program import Exact, Near, Products, Program, TensorMap


def bound(kind: str) -> float:
    """c of |Δ| ≤ c · Σ|a·b| by kind of product (``mma.f32.f16.f16``), a fifth above the largest seen on an H100.

    That of float64 with a directed rounding is chosen: such products have not run there.
    """
    instruction, accumulator, a = kind.split(".")[:3]
    if instruction == "wgmma" and accumulator == "f32" and a[0] == "e":
        return 7.3e-4
    if accumulator == "f16":
        return 1.1e-3 if a[0] == "e" else 5.6e-4
    directed = accumulator == "f64" and kind.count(".") == 4
    return {"f32": 2.9e-7, "f64": 2.4e-15 if directed else 5.8e-16}[accumulator]


def programs(only: str = "") -> Iterator[Program]:
    """All of them, or those whose name contains ``only``."""
    seen = set()
    for source in (arithmetic, conversions, warp, atomics, matrices, copies, tensors, warp_groups, others):
        for p in source.programs():
            if p.name in seen:
                raise ValueError(f"two programs are called {p.name}")
            seen.add(p.name)
            if only in p.name or only == p.group:
                yield p


def mapped(m: TensorMap, arguments: list) -> bytes:
    """A tensor map in the simulator's form."""
    array = arguments[m.argument]
    return tensor_map(
        array,
        m.dims,
        m.strides,
        m.box,
        element=m.type,
        element_strides=m.element_strides,
        swizzle=m.swizzle,
        nan_fill=m.nan_fill,
    )


def simulate(p: Program) -> list:
    """What the arguments hold after the simulator has run the program with every check."""
    arguments = p.copies()
    given = [mapped(a, arguments) if isinstance(a, TensorMap) else a for a in arguments]
    report = simulate_ptx(p.ptx, "k", p.grid, p.block, given, cluster=p.cluster if p.cluster > 1 else None)
    if report["findings"]:
        f = report["findings"][0]
        raise RuntimeError(f"{f['kind']}: {f['message']}")
    return arguments


def assemble(p: Program, ptxas: str) -> str:
    """What ptxas says against the program."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "k.ptx")
        source.write_text(p.ptx)
        target = p.ptx.split(".target ")[1].split()[0]
        command = [ptxas, f"-arch={target}", str(source), "-o", str(Path(folder, "k.cubin"))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else (done.stdout + done.stderr).replace(folder, "")


class Tally:
    """What was compared, and what differed."""

    def __init__(self):
        self.gpu = "no GPU"
        self.groups: dict[str, Counter] = defaultdict(Counter)
        self.ratios: dict[str, list[float]] = {}
        self.near: dict[str, list[float]] = {}
        self.same = 0
        self.failed: dict[str, list] = {}  # by name; what the GPU gave, where it gave anything

    def add(self, other: Tally):
        """What another process compared."""
        self.gpu = other.gpu
        for group, counts in other.groups.items():
            self.groups[group] += counts
        for kind, ratios in other.ratios.items():
            self.keep(kind, ratios)
        self.near |= other.near
        self.same += other.same
        self.failed |= other.failed

    def keep(self, kind: str, ratios: list[float]):
        """The largest ratio of each side."""
        kept = self.ratios.get(kind, [0.0] * len(ratios))
        self.ratios[kind] = [max(a, b) for a, b in zip(kept, ratios, strict=True)]

    def fail(self, p: Program, text: str, results: list | None = None):
        self.failed[p.name] = results or []
        print(f"{p.name:32} {text}", flush=True)

    def compare(self, p: Program, sides: list[list]):
        """``sides``: the simulator's arguments, and the GPU's where there is one."""
        for index, judge in p.outputs.items():
            results = [side[index] for side in sides]
            match judge:
                case Exact():
                    self.same += bool(np.array_equal(results[-1], results[0]))
                    wrong = judge.wrong(results[-1], results[0])
                    if len(wrong):
                        self.fail(p, describe(p, judge, results[-1], results[0], wrong), sides[-1])
                case Near():
                    errors = [judge.error(r) for r in results]
                    self.near[p.name] = errors
                    if max(errors) > 1:
                        self.fail(p, f"errors over the bound (simulator, GPU): {errors}")
                case Products():
                    ratios = [judge.ratio(r) for r in results]
                    self.keep(judge.kind, ratios)
                    if max(ratios) > bound(judge.kind):
                        text = f"|Δ|/Σ|ab| (simulator, GPU) {ratios}, bound {bound(judge.kind)}"
                        self.fail(p, text, sides[-1])
        self.groups[p.group][type(next(iter(p.outputs.values()))).__name__] += 1

    def report(self, near: bool):
        """Prints the largest errors and the counts."""
        print(self.gpu)
        for kind, ratios in sorted(self.ratios.items()):
            sides = zip(("simulator", "GPU"), ratios, strict=False)
            print(f"c of {kind:40} " + "  ".join(f"{side} {r:.3g}" for side, r in sides))
        if near:
            for name, errors in self.near.items():
                print(f"{name:32} " + "  ".join(f"{e:.3f}" for e in errors))
        for group, counts in self.groups.items():
            print(f"{group:20} {sum(counts.values()):5}  " + ", ".join(f"{n} {k}" for k, n in counts.items()))
        total = sum(sum(c.values()) for c in self.groups.values())
        print(
            f"{total} programs ran; {len(self.failed)} failed; {self.same} results are the same in every bit"
        )


def describe(p: Program, judge: Exact, gpu: np.ndarray, sim: np.ndarray, wrong: np.ndarray) -> str:
    """The first difference with the operands of its thread, where the program is one of threads."""
    gpu, sim = judge.canonical(gpu).reshape(-1), judge.canonical(sim).reshape(-1)
    at = wrong[0]
    text = f"{len(wrong)} of {gpu.size} differ; [{at}] GPU {gpu[at]:#x}, simulator {sim[at]:#x}"
    operands = []
    for k, a in enumerate(p.arguments):
        if isinstance(a, np.ndarray) and k not in p.outputs and a.size * gpu.size:
            per = a.size / gpu.size
            first = int(at * per)
            operands.append("/".join(f"{v:#x}" for v in a.reshape(-1)[first : first + max(1, int(per))][:4]))
    return f"{text}, of ({', '.join(operands)})"


def run_share(options: argparse.Namespace, share: int, shares: int) -> Tally:
    """Every ``shares``-th program from number ``share``, on a GPU context of this process."""
    tally = Tally()
    recorded = dict(np.load(options.against)) if options.against else {}
    driver = None if options.sim or options.ptxas or options.against else Gpu()
    tally.gpu = driver.name if driver else str(recorded.get("GPU", tally.gpu))
    for p in islice(programs(options.only), share, None, shares):
        if options.ptxas:
            if error := assemble(p, options.ptxas):
                tally.fail(p, error[:600])
            tally.groups[p.group]["assembled"] += 1
            continue
        if options.against and f"{p.name}#{min(p.outputs)}" not in recorded:
            continue
        sides = []
        try:
            sides.append(simulate(p))
            if driver:
                sides.append(driver.run(p, p.copies()))
            elif options.against:
                sides.append({k: recorded[f"{p.name}#{k}"] for k in p.outputs})
        except Exception as error:
            tally.fail(p, f"{'GPU' if sides else 'simulator'}: {str(error)[:300]}")
            continue
        tally.compare(p, sides)
    return tally


def main() -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description="Generated PTX programs on the GPU against the simulator.")
    parser.add_argument("only", nargs="?", default="", help="programs whose name contains this, or a group")
    parser.add_argument("--sim", action="store_true", help="the simulator alone, where there is no GPU")
    parser.add_argument("--ptxas", metavar="PATH", help="only assemble each program with this ptxas")
    parser.add_argument("--show", action="store_true", help="print the PTX of each program")
    parser.add_argument(
        "--save",
        metavar="FILE",
        help="what the GPU gave where the simulator gave another result: an .npz file",
    )
    parser.add_argument(
        "--against", metavar="FILE", help="compare with results kept by --save, without a GPU"
    )
    parser.add_argument("--near", action="store_true", help="print the errors of approximations")
    parser.add_argument(
        "--processes", type=int, default=min(os.cpu_count() or 1, 12), help="how many share the work"
    )
    options = parser.parse_args()
    if options.show:
        for p in programs(options.only):
            print(f"// {p.name}\n{p.ptx}")
        return 0
    tally, n = Tally(), options.processes
    # Not by fork: a child has no use for its parent's CUDA context.
    with ProcessPoolExecutor(n, multiprocessing.get_context("spawn")) as pool:
        for part in pool.map(run_share, [options] * n, range(n), [n] * n):
            tally.add(part)
    tally.report(options.near)
    if options.save:
        outputs = {p.name: p.outputs for p in programs() if tally.failed.get(p.name)}
        kept = {f"{name}#{k}": tally.failed[name][k] for name in outputs for k in outputs[name]}
        np.savez_compressed(options.save, GPU=np.array(tally.gpu), **kept)
    return bool(tally.failed)
