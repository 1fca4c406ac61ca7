"""`tilewright.profiler` with kernels that run on the host: scopes, sessions, metrics, files, the viewer, the command."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
import tilewright.profiler as proton
from tilewright.profiler import viewer
from tilewright.profiler.hooks import HookManager, LaunchHook


def named(grid, metadata, arguments):
    return {"name": f"copy_{arguments['N']}", "flops32": 1.0, "bytes": 8 * arguments["N"]}


@triton.jit(launch_metadata=named)
def copy(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y + at, tl.load(x + at))


def launch(times=1):
    x = np.ones(16, np.float32)
    for _ in range(times):
        copy[(1,)](x, np.zeros_like(x), 16)


@pytest.fixture
def profile(tmp_path):
    """Runs a function in a session; gives the tree and the devices."""

    def profile(function, **options):
        proton.start(str(tmp_path / "p"), backend="host", **options)
        try:
            function()
        finally:
            proton.finalize()
        return json.loads((tmp_path / "p.hatchet").read_text())

    yield profile
    proton.finalize()


def children(node):
    return {child["frame"]["name"]: child for child in node["children"]}


@pytest.mark.parametrize(("backend", "kind"), [("interp", "CPU"), ("ptxsim", "SIMULATOR")])
def test_kernels_of_the_host_are_counted(profile, monkeypatch, backend, kind):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)

    def program():
        with proton.scope("a", {"m": 2, "once (pty)": "x", "own (exc)": 1.5}):
            launch(2)
        with proton.scope("a", {"m": 3, "once (pty)": "y", "own (exc)": 1.5}):
            launch()

    root, devices = profile(program)
    a = children(root)["a"]
    assert a["metrics"] == {"m": 5, "once": "y", "own": 3.0}
    kernel = children(a)["copy"]["metrics"]
    assert kernel["count"] == 3 and kernel["time (ns)"] > 0 and kernel["device_type"] == kind
    assert set(root["metrics"]) == {"count", "time (ns)", "m"} and list(devices) == [kind]


def test_launch_metadata_names_kernels(profile):
    root, _ = profile(lambda: launch(3), hook="triton")
    metrics = children(root)["copy_16"]["metrics"]
    assert (metrics["count"], metrics["flops32"], metrics["bytes"]) == (3, 3.0, 384)
    assert not HookManager.active_hooks


def test_states_stand_behind_scopes(profile):
    def program():
        with proton.scope("a"), proton.state("outer"):
            with proton.state("inner"):
                launch()
            with proton.scope("b", {"m": 1}):
                launch()

    root, _ = profile(program)
    a = children(root)["a"]
    assert children(children(a)["inner"])["copy"]["metrics"]["count"] == 1
    b = children(children(a)["b"])["outer"]
    assert b["metrics"]["m"] == 1 and children(b)["copy"]["metrics"]["count"] == 1


def test_sessions_record_while_they_are_active(tmp_path):
    first = proton.start(str(tmp_path / "first"), backend="host")
    second = proton.start(str(tmp_path / "second"), backend="host", hook="triton")
    assert second == first + 1 and HookManager.active_hooks == [LaunchHook()]
    launch()
    proton.deactivate(second)
    assert HookManager.active_hooks == []
    launch()
    proton.finalize(first)
    proton.activate(second)
    launch()
    proton.finalize()
    counts = [
        child["metrics"]["count"]
        for name in ("first", "second")
        for child in json.loads((tmp_path / f"{name}.hatchet").read_text())[0]["children"]
    ]
    assert counts == [1, 1, 2], "one by its announced name, one by its own; both by the announced one"
    with pytest.raises(RuntimeError, match="Session has not been initialized: 100"):
        proton.activate(100)


def test_what_cannot_be_is_an_error(tmp_path):
    name = str(tmp_path / "p")
    for options in ({"backend": "instrumentation"}, {"backend": "roctracer"}, {"mode": "pcsampling"}):
        with pytest.raises(NotImplementedError, match="not supported yet"):
            proton.start(name, **options)
    for options in ({"context": "x"}, {"data": "x"}, {"backend": "x"}, {"hook": "x"}):
        with pytest.raises(ValueError, match="Unknown"):
            proton.start(name, **({"backend": "host"} | options))
    proton.start(name, backend="host")
    with pytest.raises(TypeError, match='the metric "m" is'), proton.scope("a", {"m": object()}):
        pass
    with pytest.raises(RuntimeError, match="does not go with"):
        proton.finalize(output_format="chrome_trace")


def test_the_viewer(tmp_path, capsys, profile):
    def program():
        with proton.cpu_timed_scope("a"):
            launch(2)
        with proton.scope("b"):
            launch(2)

    profile(program, hook="triton")
    file = str(tmp_path / "p.hatchet")
    tree, names = viewer.parse(["time/ms", "count", "time/%", "byte/s"], file)
    assert names == ["time/ms (inc)", "count (inc)", "time/% (inc)", "byte/s (inc)"]
    assert tree.root.values["count (inc)"] == 4 and tree.root.values["time/% (inc)"] == 100
    seconds = tree.root.values["time/ms (inc)"] / 1e3
    assert tree.root.values["byte/s (inc)"] == pytest.approx(4 * 128 / seconds)
    assert viewer.main(["-m", "count", "-e", "b", file]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == ["4.000 ROOT", "└─ 2.000 a", "   └─ 2.000 copy_16"]
    assert viewer.main(["-m", "nothing", file]) == 1
    assert "Metric nothing is not found" in capsys.readouterr().err


def test_a_whole_program(tmp_path):
    (tmp_path / "program.py").write_text(
        "import tilewright.profiler as proton\n"
        "assert proton.start('ignored') is None\n"
        "with proton.scope('s', {'m': 1}):\n    pass\n"
        "proton.finalize()\n"
        "raise SystemExit(3)\n"
    )
    command = [sys.executable, "-m", "tilewright.profiler.proton", "-b", "host", "-n", "p", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert json.loads((tmp_path / "p.hatchet").read_text())[0]["children"][0]["metrics"] == {"m": 1}
