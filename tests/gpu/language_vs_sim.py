"""Every language test on the GPU and in the simulator: what the kernels wrote is compared, element by element.

``python tests/gpu/language_vs_sim.py`` runs ``tests/language`` once on each, both for the GPU's own architecture, with as many
processes as there are cores, and prints how many tests agree and which do not. Arguments go to pytest (``-k matmul``).
``--backends interp,ptxsim`` compares other backends, for a machine without a GPU.

This file is also the pytest plugin that records: each array that a test takes back with ``device.numpy`` is an output.
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

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "language"

sys.path.insert(0, str(TESTS))
import agreement  # noqa: E402

# By test: what it read back and how far apart it may be, and how it ended.
recorded: dict[str, tuple[list, float | None]] = {}
outcomes: dict[str, str] = {}
current: str | None = None


def pytest_collection_modifyitems(items):
    """Keeps this process's share of the tests."""
    shard, count = map(int, os.environ["LANGUAGE_SHARD"].split("/"))
    items[:] = [item for item in items if "device" in item.fixturenames][shard::count]


def pytest_runtest_setup(item):
    global current
    current = agreement.key(item.nodeid, os.environ["TILEWRIGHT_TEST_BACKENDS"])


def pytest_runtest_teardown(item):
    if device := item.funcargs.get("device"):
        recorded[current] = device.outputs, device.rounding


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
        (a, rounding), (b, _) = first[test], second[test]
        worst = agreement.worst(a, b, rounding)
        arrays += len(a)
        if worst > 1:
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
