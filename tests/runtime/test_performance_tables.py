"""The tables of docs/performance.md and what README says of speed are what the raw results give."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "performance.py"
_spec = importlib.util.spec_from_file_location("performance_tables", SCRIPT)
performance = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(performance)
results = sys.modules["results"]


def test_the_pages_are_what_the_raw_results_give():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


ABOUT = {
    "gpu": "NVIDIA H100 80GB HBM3",
    "date": "2026-01-01",
    "driver": "1",
    "ptxas": "12.8.93",
    "torch": "2",
    "triton": "3.6.0",
    "tilewright": "0.1.0",
}


def result(case, problem, ours, triton, **options):
    """A case of 1e9 operations, so that a time of 1 ms is 1 TFLOP/s."""
    laps = {"ours": ours} | ({"Triton": triton} if triton else {})
    tried = {who: 2 for who in laps}
    return results.Result("attention", case, problem, "TFLOP/s", 1e9, laps, tried=tried, **options)


@pytest.fixture
def folder(tmp_path):
    cases = [
        result("pointers", "one", [0.5, 0.4, 9.0], [1.0, 1.0, 1.0]),
        result("descriptors", "one", [0.25, 0.25, 0.25], [0.8, 0.1, 0.8]),
        result("alone", "other", [1.0], None, refused={"Triton": {"{'num_warps': 4}": "RuntimeError: no"}}),
        results.Result("attention", "broken", "third", failed="AssertionError: wrong"),
    ]
    cases[2].tried["Triton"] = 0
    record = results.Record(tmp_path / "2026-01-01-h100.json", ABOUT)
    for case in cases:
        record.add(case)
    return tmp_path


def test_the_interval_of_a_median_leaves_out_what_a_coin_would():
    # Two sides of (1 + 9) / 2^9, and of (1 + 27 + ... + C(27, 7)) / 2^27, are the largest below 0.05.
    assert results.interval([1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0, 5.0]) == (2.0, 8.0)
    assert results.interval([float(i) for i in range(27)]) == (7.0, 19.0)
    assert all(map(np.isnan, results.interval([1.0] * 5)))


def test_sources_in_the_same_rounds_are_compared_round_by_round():
    ours = result("descriptors", "one", [1.0, 2.0] * 5, [3.0, 6.0] * 5, together=True)
    best = result("pointers", "one", [1.0] * 10, [1.1, 2.2] * 5, together=True)
    run = results.Run(ABOUT, [ours, best])
    assert run.ratio(ours, "Triton") == pytest.approx(1.1)
    assert run.interval(ours, "Triton") == pytest.approx((1.1, 1.1))
    assert not run.is_open(ours) and not run.is_below(ours, "Triton")
    apart = result("alone", "one", [1.0, 2.0] * 5, None)
    assert results.Run(ABOUT, [apart, best]).rounds(apart, "Triton") == []


def test_a_library_beside_several_sources_has_the_mean_of_its_turns():
    one, two = (result(name, "one", [1.0] * 9, [1.0] * 9, together=True) for name in ("one", "two"))
    for case, times in (one, [1.0] * 9), (two, [3.0] * 9):
        case.laps["SDPA"] = times
    run = results.Run(ABOUT, [one, two])
    assert [run.ratio(case, "SDPA") for case in (one, two)] == [2.0, 2.0]
    assert run.rate(one, "SDPA") == pytest.approx(0.5)
    apart = result("apart", "other", [1.0] * 9, [1.0] * 9)
    apart.laps["SDPA"] = [3.0] * 9
    assert results.Run(ABOUT, [apart]).ratio(apart, "SDPA") == 3.0


def test_a_ratio_near_its_floor_stands_with_its_range(tmp_path):
    record = results.Record(tmp_path / "2026-01-01-h100.json", ABOUT)
    slower = [1.01, 1.02, 1.03, 1.01, 1.02, 1.03, 1.01, 1.02, 1.03]
    record.add(result("slower", "one", slower, [1.0] * 9))
    record.add(result("as fast", "two", [0.99, 1.01] * 5, [1.0] * 10))
    record.add(result("faster", "three", [1.0] * 9, [1.5] * 9))
    text = performance.section("attention", performance.collect(tmp_path))
    assert "| slower | 0.980 | 1.000 | 0.980 (0.971 to 0.990) |" in text
    assert "| as fast | 1.000 | 1.000 | 1.000 (0.990 to 1.010) |" in text
    assert "| faster | 1.000 | 0.667 | 1.500 |" in text
    assert "1 of 3 are below 1, 1 by more than rounds differ" in text


def test_a_ratio_is_to_the_best_that_triton_has_for_the_problem(folder):
    lines = performance.section("attention", performance.collect(folder)).splitlines()
    # Medians: ours 0.5 and 0.25 ms; Triton's 1.0 and 0.8, of which the second counts for both.
    assert "| pointers | 2.000 | 1.000 | 1.250 | 1.600 |" in lines
    assert "| descriptors | 4.000 | 1.250 | 1.250 | 3.200 |" in lines
    assert "| alone | 1.000 |  |  |  |" in lines
    assert "| broken | failed |  |  |  |" in lines
    assert "- alone: Triton took part with 0 of 1 configurations; the others: 1 RuntimeError." in lines
    assert "- broken: AssertionError: wrong" in lines
    assert any("`ptxas` 12.8.93" in line for line in lines)


def test_a_ratio_is_the_median_of_those_of_the_rounds():
    # The clock falls by half from round to round; in each we are 1.25 times as fast. The ratio of the medians is another one where a round is odd.
    measured = result("one", "one", [1.0, 2.0, 4.0], [1.25, 2.5, 5.0])
    assert measured.ratio("Triton") == 1.25
    measured.laps["Triton"][1] = 4.0
    assert measured.ratio("Triton") == 1.25
    assert np.isnan(measured.ratio("cuBLAS"))


def test_a_newer_run_replaces_a_case_and_divides_by_its_own(folder):
    record = results.Record(folder / "2026-01-02-h100.json", ABOUT | {"date": "2026-01-02", "commit": "b2"})
    record.add(result("pointers", "one", [0.5], [0.5]))
    table = performance.section("attention", performance.collect(folder))
    assert "| pointers | 2.000 | 2.000 | 1.000 | b2 |" in table
    assert "| descriptors | 4.000 | 1.250 | 3.200 | 0.1.0, 2026-01-01 |" in table
    assert "2026-01-01;" in table and "2026-01-02;" in table


def test_what_is_typed_by_hand_is_found(folder):
    text = "a\n<!-- tables: attention -->\n| pointers | 9 |\n<!-- /tables -->\nb\n<!-- tables: claims -->\n<!-- /tables -->\n"
    new = performance.written(text, performance.collect(folder))
    assert (
        "| pointers | 9 |" not in new
        and new.startswith("a\n<!--")
        and "attention forward 2.40 (1.60 to 3.20, 2 cases)" in new
    )
    assert performance.written(new, performance.collect(folder)) == new


def test_a_record_that_is_stopped_halfway_has_what_it_had(folder):
    path = folder / "2026-01-01-h100.json"
    results.Record(path, ABOUT).add(result("late", "late", [1.0], [1.0]))
    first, second = results.load(path)
    assert [r.case for r in first.results] == ["pointers", "descriptors", "alone", "broken"]
    assert [r.case for r in second.results] == ["late"]


def test_compile_times_are_compared_before_ptxas(tmp_path):
    times = {"frontend": [1.0, 3.0, 2.0], "ttgir": [1.0, 1.0, 1.0], "cubin": [20.0, 20.0, 21.0]}
    case = results.Result(
        "compile time", "add", "add", "ms", laps={"ours": [2.0, 4.0, 3.0], "Triton": [30.0, 36.0, 33.0]}
    )
    case.stages = {"ours": times, "Triton": {"cubin": [25.0, 25.0, 25.0]}}
    case.counts = {"LLVM instructions": 39}
    about = {"cpu": "EPYC", "cores": 2, "load average": 0.1, "date": "2026-01-01", "tilewright": "0.1.0"}
    results.Record(tmp_path / "2026-01-01-cpu.json", about).add(case)
    found = performance.collect(tmp_path)
    assert (
        "| add | 2.00 |  | 1.00 |  |  | 3.00 | 33.00 | 11.00 | 20.00 | 25.00 | 39 |"
        in performance.section("compile time", found)
    )
    assert performance.claims(found) == "\n"


def test_the_executor_and_the_simulator_have_tables_of_their_own(tmp_path):
    about = {"cpu": "EPYC", "cores": 2, "load average": 0.1, "date": "2026-01-01", "tilewright": "0.1.0", "triton": "3.6.0"}  # fmt: skip
    record = results.Record(tmp_path / "2026-01-01-cpu.json", about)
    record.add(results.Result("executor", "add", "add", "ms", laps={"ours": [2.0, 9.0, 1.0], "Triton": [500.0], "simulator": [12.5]}))  # fmt: skip
    record.add(results.Result("simulator", "softmax", "softmax", amount=3e8, laps={"simulator": [1000.0, 1500.0, 2000.0]}))  # fmt: skip
    found = performance.collect(tmp_path)
    text = performance.section("executor, simulator", found)
    assert "| add | 2 | 500 | 250 | 12.5 |" in text
    assert "| softmax | 200 |" in text
    assert "medians of 1 to 3 runs." in text
    assert performance.claims(found) == "\n"
