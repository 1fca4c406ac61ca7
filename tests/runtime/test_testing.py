"""``tilewright.testing``: reports, and what it says of GPUs."""

import os
import sys

import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import _tilewright, testing


def report(**more):
    return testing.Benchmark(
        ["n", "m"],
        [1, (2, 3)],
        "provider",
        ["a", "b"],
        ["A", "B"],
        "sums",
        {"offset": 10},
        ylabel="GB/s",
        **more,
    )


def measure(n, m, provider, offset, twice=False):
    value = float((n + m + offset) * (2 if twice else 1))
    return value if provider == "a" else (value + 0.5, value, value + 1)


@pytest.fixture(params=["pandas", "plain"])
def tables(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setitem(sys.modules, "pandas", None)
    else:
        pytest.importorskip("pandas")


def test_a_report(tables, capsys):
    marked = triton.testing.perf_report(report())(measure)
    assert marked.run() is None and capsys.readouterr().out == ""
    table = marked.run(print_data=True, return_df=True)
    assert list(table.columns) == ["n", "m", "A (GB/s)", "B (GB/s)"]
    printed = capsys.readouterr().out.splitlines()
    assert (
        printed[0] == "sums:" and printed[2].split()[-2:] == ["12.000000", "12.500000"]
    ) or "12.0" in printed[2]
    several = testing.perf_report([report(), report()])(measure).run(
        return_df=True, twice=True, diff_col=True
    )
    assert len(several) == 2 and list(several[0].columns)[-1] == "Diff"


def test_files_of_a_report(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(testing.Mark, "_draw", staticmethod(lambda *_: None))
    marked = testing.perf_report([report()])(measure)
    marked.run(save_path=str(tmp_path / "new"), save_precision=2)
    assert (tmp_path / "new/sums.csv").read_text().split() == [
        "n,m,A",
        "(GB/s),B",
        "(GB/s)",
        "1,1,12.00,12.50",
        "2,3,15.00,15.50",
    ]
    assert 'src="sums.png"' in (tmp_path / "new/results.html").read_text()


def test_a_point_without_enough_values():
    bench = testing.Benchmark(["n", "m"], [(1,)], "provider", ["a"], ["A"], "sums", {"offset": 0})
    with pytest.raises(ValueError, match="not a value for each"):
        testing.perf_report(bench)(measure).run()


def test_rates_of_a_gpu(monkeypatch):
    properties = {
        "mem_clock_rate": 1_000_000,
        "mem_bus_width": 512,
        "multiprocessor_count": 100,
        "target": "cuda:80",
    }
    monkeypatch.setattr(_tilewright, "device_properties", lambda device: properties)
    monkeypatch.setattr(_tilewright, "current_device", lambda: 0)
    assert testing.get_dram_gbps() == 128
    assert testing.get_max_tensorcore_tflops(tl.float16, 1_000_000) == pytest.approx(204.8)
    assert testing.get_max_tensorcore_tflops(tl.float8e5, 1_000_000) == pytest.approx(409.6)
    assert testing.get_max_simd_tflops(tl.float32, 1_000_000) == pytest.approx(12.8)
    with pytest.raises(RuntimeError, match="no rate"):
        testing.get_max_tensorcore_tflops(tl.float64, 1)


def test_without_a_gpu_there_are_properties_but_no_rates(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:80")
    found = triton.runtime.driver.active.utils.get_device_properties(
        triton.runtime.driver.active.get_current_device()
    )
    assert (found["target"], found["max_shared_mem"], found["warpSize"]) == ("cuda:80", 163 << 10, 32)
    assert found["multiprocessor_count"] >= 1
    with pytest.raises(RuntimeError, match="cuda:80 on the CPU"):
        testing.get_dram_gbps()


def test_clocks(tmp_path, monkeypatch):
    said = tmp_path / "said"
    script = tmp_path / "nvidia-smi"
    script.write_text(f'#!/bin/sh\necho "$@" >> "{said}"\ncase "$3" in --query*) echo "1350, 1215";; esac\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with testing.set_gpu_clock() as (tflops, gbps):
        assert tflops == pytest.approx(298.6, abs=1) and gbps == pytest.approx(1555, abs=1)
        assert "-rgc" not in said.read_text()
    assert said.read_text().splitlines()[-2:] == ["-i 0 -rgc", "-i 0 -rmc"]
    with pytest.raises(RuntimeError, match="runs at 1350 MHz"), testing.set_gpu_clock(1000):
        pass
