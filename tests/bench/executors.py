"""The CPU executor and the PTX simulator on three kernels, medians.

``python executors.py [--record FILE] [--triton PYTHON]``: of Triton's interpreter, on the same sources, where the Python of an
environment is given that has torch and Triton (and a NumPy that its interpreter can use): the executor and it take turns, with as many rounds each.
"""

import argparse
import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from peers import load, load_for_triton, machine
from results import OURS, SIMULATOR, TRITON, Record, Result


def cases(get, put):
    """Name, what to run, and a check."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(1 << 20, dtype=np.float32) for _ in range(2))
    total = np.zeros_like(x)
    add = get("vector_add").add
    yield (
        "add 1M fp32, blocks of 1024",
        lambda: add(put(x), put(y), put(total)),
        lambda: np.testing.assert_array_equal(total, x + y),
    )
    rows = rng.standard_normal((1024, 1024), dtype=np.float32)
    out = np.zeros_like(rows)
    softmax = get("softmax")
    yield (
        "softmax 1024x1024 fp32",
        lambda: softmax.softmax(put(rows), put(out)),
        lambda: np.testing.assert_allclose(out, softmax.reference(rows), rtol=1e-4, atol=1e-6),
    )
    a, b = (rng.standard_normal((512, 512)).astype(np.float16) for _ in range(2))
    c = np.zeros((512, 512), np.float16)
    matmul = get("matmul").matmul
    yield (
        "matmul 512^3 fp16, 64x64x32",
        lambda: matmul(put(a), put(b), put(c), (64, 64, 32)),
        lambda: np.testing.assert_allclose(
            c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-2, atol=1e-1
        ),
    )


def lap_ms(run) -> float:
    start = time.perf_counter()
    run()
    return round((time.perf_counter() - start) * 1e3, 4)


def in_triton() -> None:
    """In a process of its own, for each case that a line of the input names the time of a launch of Triton's interpreter, the first time of one that is checked."""
    import torch
    import triton

    every = {name: (run, check) for name, run, check in cases(load_for_triton, torch.from_numpy)}
    print(triton.__version__, flush=True)
    known = set()
    for line in sys.stdin:
        run, check = every[name := line.rstrip("\n")]
        took = lap_ms(run)
        if name not in known:
            check()
            known.add(name)
        print(took, flush=True)


class Interpreter:
    """Triton's, in the process of another environment, which waits while it isn't asked."""

    def __init__(self, python: str):
        command = [python, __file__, "--in-triton"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | {"TRITON_INTERPRET": "1"})  # fmt: skip
        self.version = self._answer()

    def _answer(self) -> str:
        said = self.process.stdout.readline()
        if not said:
            raise RuntimeError(f"Triton's interpreter ended with status {self.process.wait()}")
        return said.strip()

    def lap_ms(self, name: str) -> float:
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        return float(self._answer())


def in_turns(laps: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    """The times of as many rounds for each as take 20 s together, five to twenty, behind one that warms up; every other round begins with the last one."""
    rounds = min(20, max(5, int(20_000 / sum(lap() for lap in laps.values()))))
    found = {who: [] for who in laps}
    order = list(laps)
    for _ in range(rounds):
        for who in order:
            found[who].append(laps[who]())
        order.reverse()
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--record", help="the file of raw results to add to")
    parser.add_argument(
        "--triton",
        metavar="PYTHON",
        help="the Python of an environment with torch and Triton, to compare with",
    )
    parser.add_argument("--in-triton", action="store_true", help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args(arguments)
    if options.in_triton:
        in_triton()
        return
    peer = Interpreter(options.triton) if options.triton else None
    record = Record(options.record, machine() | ({"triton": peer.version} if peer else {}))
    found: dict[str, Result] = {}
    for backend, who in (("interp", OURS), ("ptxsim", SIMULATOR)):
        os.environ["TILEWRIGHT_BACKEND"] = backend
        for name, run, check in cases(load, lambda x: x):
            run()
            check()
            takers = {who: functools.partial(lap_ms, run)}
            if peer and who == OURS:
                takers[TRITON] = functools.partial(peer.lap_ms, name)
            result = found.setdefault(name, Result("executor", name, name, "ms"))
            result.laps |= in_turns(takers)
            for taker in takers:
                print(f"{name:32} {result.ms(taker):10.3f} ms  {taker if taker == TRITON else backend}, {len(result.laps[taker])} rounds", flush=True)  # fmt: skip
    del os.environ["TILEWRIGHT_BACKEND"]
    for result in found.values():
        record.add(result)


if __name__ == "__main__":
    main()
