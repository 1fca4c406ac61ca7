"""Every language test on the GPU and in the simulator: what the kernels wrote is compared, element by element.

``python tests/gpu/language_vs_sim.py`` runs ``tests/language`` once on each, both for the GPU's own architecture, with as many
processes as there are cores, and prints how many tests agree and which do not. Arguments go to pytest (``-k matmul``).
``--backends interp,ptxsim`` compares other backends, for a machine without a GPU.

This file is also the pytest plugin that records: each array that a test takes back with ``Device.numpy`` is an output.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "language"

# Differences that rounding explains, as a fraction of the largest value of the array: sums in another order, products
# that tensor cores truncate, approximate functions.
ROUNDING = {"float64": 2.0**-45, "float32": 2.0**-16, "float16": 2.0**-8, "bfloat16": 2.0**-6}
SMALL = 2.0**-2  # fp8

recorded: dict[str, list] = {}
outcomes: dict[str, str] = {}
current: str | None = None


def pytest_configure(config):
    """Wraps ``Device.numpy``."""
    sys.path.insert(0, str(HERE.parents[1] / "examples"))
    import common

    original = common.Device.numpy

    def numpy(self, array):
        result = original(self, array)
        if current is not None:
            recorded.setdefault(current, []).append(result.copy())
        return result

    common.Device.numpy = numpy


def pytest_collection_modifyitems(items):
    """Keeps this process's share of the tests."""
    shard, count = map(int, os.environ["LANGUAGE_SHARD"].split("/"))
    items[:] = [item for item in items if "device" in item.fixturenames][shard::count]


def pytest_runtest_setup(item):
    global current
    backend = os.environ["TILEWRIGHT_TEST_BACKENDS"]
    current = (
        item.nodeid.replace(f"[{backend}", "[")
        .replace(f"-{backend}", "")
        .replace("[]", "")
        .replace("[-", "[")
    )


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        outcomes[current] = report.outcome if report.outcome != "failed" else str(report.longrepr)[-300:]


def pytest_sessionfinish(session):
    Path(os.environ["LANGUAGE_RECORD"]).write_bytes(pickle.dumps((outcomes, recorded)))


def run(backend: str, folder: Path, jobs: int, target: str, pytest_arguments: list[str]):
    """The tests' outcomes and outputs on a backend."""
    processes = []
    for shard in range(jobs):
        environment = {
            **os.environ,
            "TILEWRIGHT_TEST_BACKENDS": backend,
            "TILEWRIGHT_TARGET": target,
            "LANGUAGE_SHARD": f"{shard}/{jobs}",
            "LANGUAGE_RECORD": str(folder / f"{backend}-{shard}"),
            "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
        }
        if backend == "cuda":
            environment.pop("TILEWRIGHT_TARGET")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "language_vs_sim",
            str(TESTS),
            *pytest_arguments,
        ]
        log = open(folder / f"{backend}-{shard}.log", "w")
        processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT))
    outcomes, outputs = {}, {}
    for shard, process in enumerate(processes):
        process.wait()
        try:
            some_outcomes, some_outputs = pickle.loads((folder / f"{backend}-{shard}").read_bytes())
        except FileNotFoundError:
            sys.exit((folder / f"{backend}-{shard}.log").read_text()[-2000:])
        outcomes |= some_outcomes
        outputs |= some_outputs
    return outcomes, outputs


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Zero when bit-equal (NaNs are equal); else the largest difference as a fraction of what rounding explains."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return np.inf
    if a.tobytes() == b.tobytes():
        return 0.0
    if a.dtype.kind in "iub":
        return np.inf
    x, y = a.astype(np.float64), b.astype(np.float64)
    if not np.array_equal(np.isnan(x), np.isnan(y)):
        return np.inf
    same = (x == y) | np.isnan(x)
    with np.errstate(invalid="ignore"):
        delta = np.where(same, 0, np.abs(x - y))
    finite = np.abs(y[np.isfinite(y)])
    if not delta.any() or not finite.size:
        return 0.0 if not delta.any() else np.inf
    return float(delta.max() / (ROUNDING.get(a.dtype.name, SMALL) * finite.max()))


def main() -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backends", default="cuda,ptxsim")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--target", default="cuda:90", help="what the simulator is compiled for")
    options, pytest_arguments = parser.parse_known_args()
    backends = options.backends.split(",")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for backend in backends:
            start = time.time()
            results.append(run(backend, Path(folder), options.jobs, options.target, pytest_arguments))
            counts = {}
            for outcome in results[-1][0].values():
                counts[outcome if outcome in ("passed", "skipped") else "failed"] = (
                    counts.get(outcome if outcome in ("passed", "skipped") else "failed", 0) + 1
                )
            print(f"{backend}: {counts}, {time.time() - start:.0f} s", flush=True)
    (first_outcomes, first), (second_outcomes, second) = results
    exact, close, bad, arrays = 0, 0, [], 0
    for test in sorted(first_outcomes.keys() | second_outcomes.keys()):
        ends = [o.get(test, "not run") for o in (first_outcomes, second_outcomes)]
        if ends == ["skipped", "skipped"]:
            continue
        if ends != ["passed", "passed"]:
            bad.append(
                f"{test}: "
                + "; ".join(f"{b} {' '.join(e.split())[-150:]}" for b, e in zip(backends, ends, strict=True))
            )
            continue
        a, b = first.get(test, []), second.get(test, [])
        worst = max((difference(x, y) for x, y in zip(a, b, strict=False)), default=0.0)
        arrays += len(a)
        if len(a) != len(b) or worst > 1:
            bad.append(f"{test}: {len(a)} and {len(b)} outputs, {worst:.2g} of what rounding explains")
        elif worst == 0:
            exact += 1
        else:
            close += 1
    print(
        f"{exact + close + len(bad)} tests, {arrays} outputs: {exact} bit-equal, {close} within rounding, {len(bad)} differ"
    )
    for line in bad:
        print("  " + line)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
