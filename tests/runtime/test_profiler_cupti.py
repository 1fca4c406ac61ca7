"""What `tilewright.profiler` makes of what CUPTI says, seen through a stand-in for it that needs no GPU (crates/profiler/tests).

Each test runs a program of its own: CUPTI is loaded once a process.
"""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PRELUDE = """
import ctypes, json, os, threading, warnings
import tilewright as triton
import tilewright.profiler as proton

cupti = ctypes.CDLL(os.environ["TRITON_CUPTI_LIB_PATH"] + "/libcupti.so")
cupti.fake_launch.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64]
number, names = 100, {}

def launch(name, times=1, by_runtime=True, kernels=1, took=10):
    '''Has the stand-in launch kernels as torch would.'''
    global number
    for _ in range(times):
        number += 2
        cupti.fake_launch(names.setdefault(name, name.encode()), number, by_runtime, kernels, took)

def show(name="p"):
    '''The tree that was written, as (name, count, ns) and what is below it.'''
    def of(node):
        m = node["metrics"]
        below = sorted(map(of, node["children"]), key=lambda child: child[0])
        return (node["frame"]["name"], m.get("count"), m.get("time (ns)"), *below)
    return of(json.load(open(f"{name}.hatchet"))[0])[3:]
"""


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """The folder with the two stand-ins."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler for the stand-in")
    folder = tmp_path_factory.mktemp("cupti")
    for source, library in (
        ("runtime/tests/fake_cuda.c", "libcuda.so.1"),
        ("profiler/tests/fake_cupti.c", "libcupti.so"),
    ):
        command = [compiler, "-shared", "-fPIC", "-o", folder / library, ROOT / "crates" / source]
        subprocess.run(command, check=True)
    return folder


@pytest.fixture
def run(libraries, tmp_path):
    """Runs a program against the stand-ins; gives what it printed."""

    def run(program, **environment):
        script = tmp_path / "program.py"
        script.write_text(PRELUDE + textwrap.dedent(program))
        base = {k: v for k, v in os.environ.items() if not k.startswith("TILEWRIGHT_")}
        ours = {
            "TILEWRIGHT_LIBCUDA": str(libraries / "libcuda.so.1"),
            "TRITON_CUPTI_LIB_PATH": str(libraries),
            "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
            "FAKE_CUDA_LOG": str(tmp_path / "log"),
        }
        (tmp_path / "log").write_text("")
        result = subprocess.run(
            [sys.executable, script],
            env=base | ours | environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    return run


def test_kernels_stand_below_the_scope_of_their_launch(run):
    output = run("""
        proton.start("p")
        with proton.scope("a"):
            launch("mul", 3)
            with proton.scope("b"):
                launch("add", 2, by_runtime=False, took=5)
        launch("outside")
        proton.finalize()
        print(show())
        print(json.load(open("p.hatchet"))[1])
    """)
    tree, devices = output.splitlines()
    assert eval(tree) == (
        ("a", None, None, ("b", None, None, ("add", 2, 10)), ("mul", 3, 30)),
        ("outside", 1, 10),
    )
    about = eval(devices)["CUDA"]["0"]
    assert (
        set(about) == {"arch", "clock_rate", "memory_clock_rate", "bus_width", "num_sms"}
        and about["num_sms"] > 0
    )


def test_a_graph_has_many_kernels(run):
    output = run("""
        proton.start("p", hook="triton")
        with proton.scope("replay"):
            launch("node", 2, kernels=200)
        proton.finalize()
        print(show())
    """)
    assert eval(output) == (("replay", None, None, ("node", 400, 4000)),)


def test_what_is_launched_while_no_session_records_is_no_part_of_one(run):
    output = run("""
        launch("early")
        first = proton.start("first")
        launch("k", 1)
        second = proton.start("second")
        launch("k", 2)
        proton.deactivate(first)
        launch("k", 4)
        proton.deactivate()
        print(cupti.fake_subscribed(), cupti.fake_recording())
        launch("k", 8)
        proton.activate(first)
        launch("k", 16)
        proton.finalize(first)
        print(cupti.fake_subscribed(), cupti.fake_recording())
        proton.finalize()
        print(cupti.fake_subscribed(), cupti.fake_recording())
        launch("late")
        print(show("first"), show("second"))
    """)
    *states, trees = output.splitlines()
    assert states == ["1 0", "1 0", "0 0"]
    assert trees == "(('k', 19, 190),) (('k', 6, 60),)"


def test_another_thread_is_where_the_main_one_is_until_it_has_scopes(run):
    output = run("""
        def work():
            launch("backward")
            with proton.scope("own"):
                launch("inner")
        proton.start("p")
        for name in ("one", "two"):
            with proton.scope(name):
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
        proton.finalize()
        print(show())
    """)
    below = (("backward", 1, 10), ("own", None, None, ("inner", 1, 10)))
    assert eval(output) == (("one", None, None, *below), ("two", None, None, *below))


def test_an_announced_launch_has_the_name_it_was_announced_by(run):
    output = run("""
        from tilewright._C.libproton import proton as lib
        proton.start("p")
        with proton.state("s"):
            op = lib.record_scope()
            lib.enter_op(op, "matmul 512")
            lib.add_metrics(op, {"flops16": 7.0})
            launch("matmul_kernel", by_runtime=False)
            lib.exit_op(op, "matmul 512")
            launch("matmul_kernel", by_runtime=False)
        proton.finalize()
        print(show())
    """)
    assert eval(output) == (("s", None, None, ("matmul 512", 1, 10), ("matmul_kernel", 1, 10)),)


def test_paths_of_frames(run):
    output = run("""
        def inner():
            launch("k")
        proton.start("p", context="python")
        inner(); inner()
        proton.finalize()
        print(show())
    """)
    [(module, _, _, (function, _, _, (call, _, _, kernel)))] = [eval(output)[0]]
    assert "program.py:<module>@" in module and "program.py:inner@" in function, output
    assert ":launch@" in call and kernel == ("k", 2, 20)


def test_a_trace_has_every_kernel(run):
    output = run("""
        proton.start("p", data="trace")
        with proton.scope("a"):
            launch("k", 2)
        proton.finalize()
        print(json.load(open("p.chrome_trace"))["traceEvents"])
    """)
    first, second = eval(output)
    assert (first["ts"], first["dur"], second["ts"]) == (0, 0.01, 0.01)
    assert (first["name"], first["tid"], first["args"]["call_stack"]) == ("k", 7, ["ROOT", "a", "k"])


def test_losses_are_said(run):
    output = run("""
        def profile(work):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                proton.start("p")
                work()
                proton.finalize()
            print([str(w.message) for w in said], show())
        profile(lambda: (launch("k"), cupti.fake_drop(3)))
        profile(lambda: launch("k", kernels=0))
        profile(lambda: (launch("k"), cupti.fake_stranger(names["k"])))
    """)
    dropped, empty, strangers = output.splitlines()
    assert "no room for 3 kernels" in dropped and "(('k', 1, 10),)" in dropped
    assert "the profile is empty: 1 launches" in empty
    assert strangers == "[] (('k', 2, 20),)", "a kernel whose launch was not seen stands below the root"


def test_errors_say_what_to_do(run, tmp_path):
    program = """
        from tilewright import DriverError
        try:
            proton.start("p")
        except DriverError as error:
            print(error)
        print(proton.context.depth(), cupti.fake_subscribed())
    """
    taken = run(program, FAKE_CUPTI_SUBSCRIBE="39")
    assert "cuptiSubscribe failed: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)" in taken
    assert (
        "something else profiles this process" in taken and "version 26; the driver is for CUDA 12.8" in taken
    )
    assert taken.endswith("None 0")
    unknown = run(program, FAKE_CUPTI_SUBSCRIBE="77")
    assert "CUptiResult 77 (77)" in unknown
    newer = run(program, FAKE_CUPTI_VERSION="130001")
    assert "is for CUDA 13, and the driver for CUDA 12" in newer and "TRITON_CUPTI_LIB_PATH" in newer
    assert "too old" in run(program, FAKE_CUPTI_VERSION="12")
    # The program itself loads the stand-in, so that only the profiler misses it.
    missing = run(
        "import tilewright.knobs as k\nk.proton.cupti_lib_dir = '/nonexistent'" + textwrap.dedent(program)
    )
    assert "/nonexistent/libcupti.so" in missing and "pip install nvidia-cuda-cupti" in missing


def test_what_is_loaded_already_is_used(run, libraries):
    output = run("""
        del os.environ["TRITON_CUPTI_LIB_PATH"]
        proton.start("p")
        launch("k")
        proton.finalize()
        print(triton._tilewright.profiler_facts())
    """)
    facts = eval(output)
    assert facts["library"] == str(libraries / "libcupti.so")
    assert (facts["launches"], facts["kernels"], facts["strangers"], facts["dropped"]) == (1, 1, 0, 0)
