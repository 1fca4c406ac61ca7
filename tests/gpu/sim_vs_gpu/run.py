"""The command line: runs the programs, compares, and prints one line for each that differs and a table."""

from __future__ import annotations

import argparse
import signal
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tilewright.testing import simulate_ptx, tensor_map

from . import arithmetic, atomics, conversions, copies, matrices, tensors, warp, warp_groups
from .driver import Gpu
from .program import Exact, Near, Products, Program, TensorMap


def bound(kind: str) -> float:
    """c of |Δ| ≤ c · Σ|a·b| by kind of product (``mma.f32.f16.f16``), a fifth above the largest seen on an H100.

    Those of wgmma are chosen, not measured.
    """
    instruction, accumulator, a = kind.split(".")[:3]
    if instruction == "wgmma":
        return 2.0**-10 if accumulator == "f16" else 2.0**-11 if a[0] == "e" else 2.0**-20
    if accumulator == "f16":
        return 1.1e-3 if a[0] == "e" else 5.6e-4
    return {"f32": 2.9e-7, "f64": 5.8e-16}[accumulator]


def programs(only: str = "") -> Iterator[Program]:
    """All of them, or those whose name contains ``only``."""
    seen = set()
    for source in (arithmetic, conversions, warp, atomics, matrices, copies, tensors, warp_groups):
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
        self.groups: dict[str, Counter] = defaultdict(Counter)
        self.ratios: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self.near: dict[str, list[float]] = {}
        self.same = 0
        self.failed: list[str] = []

    def fail(self, p: Program, text: str):
        if p.name not in self.failed:
            self.failed.append(p.name)
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
                        self.fail(p, describe(p, judge, results[-1], results[0], wrong))
                case Near():
                    errors = [judge.error(r) for r in results]
                    self.near[p.name] = errors
                    if max(errors) > 1:
                        self.fail(p, f"errors over the bound (simulator, GPU): {errors}")
                case Products():
                    ratios = [judge.ratio(r) for r in results]
                    kept = self.ratios[judge.kind]
                    for side, r in enumerate(ratios):
                        kept[side] = max(kept[side], r)
                    if max(ratios) > bound(judge.kind):
                        self.fail(p, f"|Δ|/Σ|ab| (simulator, GPU) {ratios}, bound {bound(judge.kind)}")
        self.groups[p.group][type(next(iter(p.outputs.values()))).__name__] += 1

    def report(self, near: bool, sides: int):
        """Prints the largest errors and the counts."""
        for kind, ratios in sorted(self.ratios.items()):
            print(
                f"c of {kind:40} simulator {ratios[0]:.3g}" + (f"  GPU {ratios[1]:.3g}" if sides > 1 else "")
            )
        if near:
            for name, errors in self.near.items():
                print(f"{name:32} " + "  ".join(f"{e:.3f}" for e in errors))
        for group, counts in self.groups.items():
            print(f"{group:20} {sum(counts.values()):5}  " + ", ".join(f"{n} {k}" for k, n in counts.items()))
        total = sum(sum(c.values()) for c in self.groups.values())
        print(
            f"{total} programs ran; {len(self.failed)} failed; {self.same} results are the same in NaN payloads too"
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


def main() -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description="Generated PTX programs on the GPU against the simulator.")
    parser.add_argument("only", nargs="?", default="", help="programs whose name contains this, or a group")
    parser.add_argument("--sim", action="store_true", help="the simulator alone, where there is no GPU")
    parser.add_argument("--ptxas", metavar="PATH", help="only assemble each program with this ptxas")
    parser.add_argument("--show", action="store_true", help="print the PTX of each program")
    parser.add_argument("--save", metavar="FILE", help="the GPU alone: its results go into an .npz file")
    parser.add_argument(
        "--against", metavar="FILE", help="compare with results kept by --save, without a GPU"
    )
    parser.add_argument("--near", action="store_true", help="print the errors of approximations")
    options = parser.parse_args()
    alone = options.sim or options.ptxas or options.show or options.against
    driver = None if alone else Gpu()
    recorded = dict(np.load(options.against)) if options.against else {}
    print(driver.name if driver else recorded.get("GPU", "no GPU"))
    tally, saved = Tally(), {}
    # What was seen is kept when time runs out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run_all(options, driver, recorded, tally, saved)
    except KeyboardInterrupt:
        print("stopped")
    if options.save:
        np.savez_compressed(options.save, GPU=np.array(driver.name), **saved)
    tally.report(options.near, sides=2 if driver or recorded else 1)
    return bool(tally.failed)


def run_all(options, driver: Gpu | None, recorded: dict, tally: Tally, saved: dict) -> None:
    """Each program as the options say."""
    for p in programs(options.only):
        if options.show:
            print(f"// {p.name}\n{p.ptx}")
            continue
        if options.ptxas:
            if error := assemble(p, options.ptxas):
                tally.fail(p, error[:600])
            tally.groups[p.group]["assembled"] += 1
            continue
        if options.save:
            try:
                arguments = driver.run(p, p.copies())
            except RuntimeError as error:
                tally.fail(p, f"GPU: {str(error)[:300]}")
            else:
                saved |= {f"{p.name}#{k}": arguments[k] for k in p.outputs}
                tally.groups[p.group]["ran"] += 1
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
