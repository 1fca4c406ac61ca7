"""Which of NVIDIA's tools are run, that none is left behind, and what is said where there is none.

The tools are stand-ins: scripts in environments that each test makes."""

import os
import signal
import stat
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

import tilewright
from tilewright.language.extra import libdevice  # noqa: F401  (its file is part of the package)

PACKAGE = Path(tilewright.__file__).parent.parent
PTXAS = Path(sysconfig.get_path("purelib"), "nvidia/cu13/bin/ptxas")
KERNEL = """
import tilewright as triton
import tilewright.language as tl

@triton.jit
def double(x, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)
    tl.store(at, tl.load(at) * 2)
"""
WARM = f"""{KERNEL}
kernel = double.warmup(tl.float32, BLOCK=128, grid=(1,), target="cuda:90")
print("cubin" in kernel.asm)
"""
TYPES = ["--signature", "*fp32", "--constexpr", "BLOCK=128"]

pytestmark = pytest.mark.skipif(not PTXAS.is_file(), reason="there is no ptxas")


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def standing_in(path, marker):
    """A ptxas that leaves a file where it was run."""
    return script(path, f'echo run >> "{marker}"\nexec "{PTXAS}" "$@"')


def hanging(path, started):
    """A ptxas that never ends, and says its process id."""
    return script(path, f'[ "$1" = --version ] && exec echo V13.0.1\necho $$ > "{started}"\nexec sleep 1000')


def environment(folder):
    """A virtual environment that sees this package and has no tools, as its interpreter's path."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "lib" / version / "site-packages"
    site.mkdir(parents=True)
    (site / "tilewright.pth").write_text(f"{PACKAGE}\n")
    base = Path(sys._base_executable).resolve()
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(base)
    return folder / "bin" / "python"


def tool(folder):
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return folder / "lib" / version / "site-packages" / "nvidia/cu13/bin/ptxas"


@pytest.fixture
def place(tmp_path):
    """A working directory with a kernel, and the variables of a plain shell."""
    here = tmp_path / "above" / "here"
    here.mkdir(parents=True)
    (here / "kernel.py").write_text(KERNEL)
    (here / "warm.py").write_text(WARM)
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
    }
    return here, variables


def run(command, here, variables, **more):
    command = [str(word) for word in command]
    return subprocess.run(
        command, cwd=here, env=variables, capture_output=True, text=True, timeout=120, **more
    )


def test_no_tool_is_taken_from_where_we_stand(tmp_path, place):
    here, variables = place
    marker = tmp_path / "marker"
    for folder in [here, here.parent]:
        standing_in(tool(folder / ".venv"), marker)
        standing_in(folder / "ptxas", marker)
    for python in [Path(sys.executable), environment(tmp_path / "env")]:
        done = run([python, "warm.py"], here, variables)
        assert done.returncode == 0, done.stderr
        assert not marker.exists(), "a ptxas of the working directory, or of one above, was run"


def test_the_environments_own_tool_is_run_from_anywhere(tmp_path, place):
    here, variables = place
    python = environment(tmp_path / "env")
    marker = tmp_path / "marker"
    standing_in(tool(tmp_path / "env"), marker)
    # Tools elsewhere come after it.
    other = standing_in(tmp_path / "toolkit" / "bin" / "ptxas", tmp_path / "other").parent
    variables |= {"CUDA_HOME": str(other.parent), "PATH": f"{other}:{variables['PATH']}"}
    done = run([python, here / "warm.py"], "/", variables)
    assert done.stdout.split() == ["True"], done.stderr
    assert marker.exists() and not (tmp_path / "other").exists()


def test_the_order_of_the_other_places(tmp_path, place):
    here, variables = place
    python = environment(tmp_path / "env")
    markers = {name: tmp_path / f"ran-{name}" for name in ["home", "path"]}
    for name in markers:
        standing_in(tmp_path / name / "bin" / "ptxas", markers[name])
    on_path = {"PATH": f"{tmp_path}/path/bin:{variables['PATH']}"}
    both = {"CUDA_PATH": str(tmp_path / "home")} | on_path
    assert run([python, "warm.py"], here, variables | both).stdout.split() == ["True"]
    assert markers["home"].exists() and not markers["path"].exists()
    variables["TILEWRIGHT_CACHE_DIR"] += "-2"
    assert run([python, "warm.py"], here, variables | on_path).stdout.split() == ["True"]
    assert markers["path"].exists()


def test_a_name_alone_is_looked_for_on_the_path(tmp_path, place):
    here, variables = place
    marker = tmp_path / "marker"
    folder = standing_in(tmp_path / "tools" / "ptxas", marker).parent
    variables |= {"TRITON_PTXAS_PATH": "ptxas", "PATH": f"{folder}:{variables['PATH']}"}
    done = run([sys.executable, "warm.py"], here, variables)
    assert done.stdout.split() == ["True"], done.stderr
    assert marker.exists()
    # With a folder it is a path, and what is checked is what is run.
    marker.unlink()
    standing_in(here / "ptxas", tmp_path / "wrong")
    variables |= {"TRITON_PTXAS_PATH": "./ptxas", "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache2")}
    assert run([sys.executable, "warm.py"], here, variables).stdout.split() == ["True"]
    assert (tmp_path / "wrong").exists() and not marker.exists()


@pytest.mark.parametrize("named", ["/no/such/ptxas", "no-such-ptxas", "kernel.py"])
def test_a_variable_that_names_no_program_is_an_error(place, named):
    here, variables = place
    done = run([sys.executable, "warm.py"], here, variables | {"TRITON_PTXAS_PATH": named})
    assert done.returncode == 1
    assert f"CompilationError: error: TRITON_PTXAS_PATH is `{named}`, which is no program" in done.stderr


def test_without_a_tool_the_user_is_told(tmp_path, place):
    here, variables = place
    python = environment(tmp_path / "env")
    done = run([python, "warm.py"], here, variables)
    assert done.stdout.split() == ["False"]
    assert "RuntimeWarning: kernels have no cubin" in done.stderr and "`ptxas` was not found" in done.stderr
    # What comes from the cache is no better.
    again = run([python, "warm.py"], here, variables)
    assert "RuntimeWarning: kernels have no cubin" in again.stderr and "`ptxas` was not found" in again.stderr


def test_no_older_cubin_stays_beside_new_ptx(tmp_path, place):
    here, variables = place
    command = ["-m", "tilewright", "compile", "kernel.py::double", *TYPES, "-o", "out"]
    whole = run([sys.executable, *command], here, variables)
    assert whole.returncode == 0 and (here / "out" / "double.cubin").is_file(), whole.stderr
    without = run([environment(tmp_path / "env"), *command], here, variables)
    assert without.returncode == 1
    assert "holds no cubin: `ptxas` was not found" in without.stderr
    assert sorted(p.suffix for p in (here / "out").iterdir()) == [".json", ".llir", ".ptx", ".ttgir", ".ttir"]
    # The CPU executor has none, and needs none.
    cpu = run([sys.executable, *command, "--target", "interp"], here, variables)
    assert cpu.returncode == 0
    assert sorted(p.suffix for p in (here / "out").iterdir()) == [".json", ".ttir"]


def alive(process):
    """Whether a process runs: one that has ended, and nobody has asked after, does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(what):
    for _ in range(3000):
        if result := what():
            return result
        time.sleep(0.02)
    raise AssertionError("it did not happen within a minute")


def started(file):
    return wait_for(lambda: file.exists() and file.read_text().strip())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("what", ["command", "program"])
def test_no_tool_is_left_behind(tmp_path, place, how, what):
    here, variables = place
    file = tmp_path / "started"
    variables |= {"TRITON_PTXAS_PATH": str(hanging(tmp_path / "ptxas", file))}
    command = {
        "command": ["-m", "tilewright", "compile", "kernel.py::double", *TYPES],
        "program": ["warm.py"],
    }
    ours = subprocess.Popen(
        [sys.executable, *command[what]],
        cwd=here,
        env=variables,
        stderr=subprocess.DEVNULL,
        # A shell starts what it runs in the background with Ctrl-C ignored, and so are its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    tools = started(file)
    assert alive(tools)
    # A tool is on its lifeline as soon as whoever started it comes to run again.
    flags = Path(f"/proc/{tools}/fdinfo/0")
    wait_for(lambda: int(flags.read_text().split("flags:")[1].split()[0], 8) & os.O_ASYNC)
    os.kill(ours.pid, how)
    assert ours.wait(timeout=60) != 0
    wait_for(lambda: not alive(tools))


def test_a_quotation_mark_in_the_path(tmp_path, place):
    _, variables = place
    for name in ['a"b', "a\\", "a\nb", "ä ö"]:
        here = tmp_path / name
        here.mkdir()
        (here / "kernel.py").write_text(KERNEL)
        command = ["-m", "tilewright", "compile", here / "kernel.py", *TYPES, "-o", here / "out"]
        done = run([sys.executable, *command], tmp_path, variables)
        assert done.returncode == 0, done.stderr
        assert (here / "out" / "double.cubin").is_file()


def test_a_wrong_folder_for_temporary_files_is_named(place):
    here, variables = place
    for command in [["-m", "tilewright", "compile", "kernel.py", *TYPES], ["warm.py"]]:
        done = run([sys.executable, *command], here, variables | {"TMPDIR": "/no/such/folder"})
        assert done.returncode == 1
        assert "the folder for temporary files, /no/such/folder: No such file or directory" in done.stderr
        assert "TMPDIR chooses that folder" in done.stderr and "ptxas`" not in done.stderr
