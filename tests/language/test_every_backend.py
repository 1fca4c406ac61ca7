"""No language test and no example is left out on any backend."""

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import agreement
import numpy as np
import pytest
from test_examples import EXAMPLES

HERE = Path(__file__).parent
# These (and `errors/`, kernels that do not compile) look at Python, at the sources or at the IR, and launch nothing.
WITHOUT_KERNELS = {
    "test_who_loads",
    "test_the_host_checks_descriptors",
    "test_every_example_is_a_test",
    "test_every_test_runs_in_the_executor_and_in_the_simulator",
    "test_outputs_that_differ_between_backends_fail",
}


def test_every_example_is_a_test():
    """``common`` and ``demo`` are no examples of a kernel: what they share, and the tour that prints."""
    files = {path.stem for path in (HERE.parents[1] / "examples").glob("*.py")}
    assert files - {"common", "demo"} == set(EXAMPLES)


def test_every_test_runs_in_the_executor_and_in_the_simulator():
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TILEWRIGHT_", "PYTEST_"))}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-o",
        "addopts=",
        "-p",
        "no:cacheprovider",
        str(HERE),
    ]
    listed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    backends = defaultdict(set)
    for test in (line for line in listed.splitlines() if "::" in line):
        parameters = test.rpartition("[")[2].rstrip("]").split("-") if "[" in test else []
        if "/errors/" in test or test.rpartition("::")[2].partition("[")[0] in WITHOUT_KERNELS:
            continue
        found = {"interp", "ptxsim", "cuda"}.intersection(parameters)
        assert len(found) == 1, f"{test} takes no device"
        (backend,) = found
        backends[agreement.key(test, backend)].add(backend)
    assert len(backends) > 500
    missing = [test for test, run in backends.items() if not {"interp", "ptxsim"} <= run]
    assert not missing


def test_outputs_that_differ_between_backends_fail(tmp_path):
    x = np.linspace(1, 2, 8, dtype=np.float32)
    agreement.check(tmp_path, "t[interp-3]", "interp", [x], None)
    agreement.check(tmp_path, "t[ptxsim-3]", "ptxsim", [x * np.float32(1 + 2e-6)], None)
    agreement.check(tmp_path, "t[interp-4]", "interp", [x], None)
    for outputs in ([x * np.float32(1.001)], [x, x], [], [x.astype(np.int32)], [x * np.float32(np.nan)]):
        with pytest.raises(AssertionError, match="ptxsim and interp differ"):
            agreement.check(tmp_path, "t[ptxsim-4]", "ptxsim", outputs, None)
