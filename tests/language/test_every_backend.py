"""No language test and no example is left out on any backend."""

import ast
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import agreement
import ml_dtypes
import numpy as np
import pytest
from test_examples import EXAMPLES

HERE = Path(__file__).parent


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
        for backend in {"interp", "ptxsim", "cuda"}.intersection(parameters):
            backends[agreement.key(test, backend)].add(backend)
    assert len(backends) > 500
    missing = [test for test, run in backends.items() if not {"interp", "ptxsim"} <= run]
    assert not missing


def launches(function: ast.FunctionDef) -> bool:
    """Whether it calls something like ``kernel[grid](…)``."""
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return any(isinstance(called, ast.Subscript) for called in calls)


def test_what_launches_takes_a_device():
    """The others look at Python, at sources or at the IR."""
    for path in HERE.glob("test_*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and launches(node):
                assert "device" in [a.arg for a in node.args.args], (
                    f"{path.name}: {node.name} launches on no device"
                )


def test_outputs_that_differ_between_backends_fail(tmp_path):
    x = np.linspace(1, 2, 8, dtype=np.float32)
    agreement.check(tmp_path, "t[interp-3]", "interp", [x], None)
    agreement.check(tmp_path, "t[ptxsim-3]", "ptxsim", [x * np.float32(1 + 2e-6)], None)
    agreement.check(tmp_path, "t[interp-4]", "interp", [x], None)
    for outputs in ([x * np.float32(1.001)], [x, x], [], [x.astype(np.int32)], [x * np.float32(np.nan)]):
        with pytest.raises(AssertionError, match="ptxsim and interp differ"):
            agreement.check(tmp_path, "t[ptxsim-4]", "ptxsim", outputs, None)


def test_small_elements_that_differ_fail():
    """What a large one elsewhere does not excuse."""
    rows = np.ones((64, 64), np.float32)
    rows[0] = 1000
    other = rows.copy()
    other[1, 3] += 1e-4  # less than a hundredth of what 2^-16 of the largest is
    assert agreement.difference(other, rows) > 1
    small = rows.astype(ml_dtypes.float8_e4m3fn)
    other = small.copy()
    other[1] = 2
    assert agreement.difference(other, small) > 1
    huge = np.array([1e300, 1e300])
    assert agreement.difference(huge * (1 + 1e-9), huge) > 1
    one = np.ones(16, ml_dtypes.float8_e5m2)
    assert agreement.difference((one.astype(np.float32) * 1.25).astype(one.dtype), one) <= 1
    assert agreement.difference((one.astype(np.float32) * 1.5).astype(one.dtype), one) > 1


def test_what_rounding_explains_passes():
    """Terms that cancel leave a small element that is as far off as the others of its row."""
    x = np.random.default_rng(0).standard_normal((4, 256)).astype(np.float32)
    x[0, 0] = 1e-7
    assert 0 < agreement.difference(x + np.float32(5e-6), x) <= 1
    assert agreement.difference(np.zeros(4, np.float32), np.full(4, np.inf, np.float32)) == np.inf
