"""Ascend's own compiler, ``bishengir-compile``: called where there is one (here a script that says what it was called with), its binary kept in the cache."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright as triton
import tilewright.language as tl

COMMAND = [sys.executable, "-m", "tilewright", "compile"]
ARGUMENTS = ["--target", "ascend:910b", "--signature", "*fp32,*fp32,i32", "--constexpr", "BLOCK=64"]
WORKS = """#!/bin/sh
if [ "$1" = --version ]; then echo "bishengir-compile version 1.2"; exit 0; fi
echo call >> "$CALLS"
grep -q "hivm.hir.vadd" "$1" || exit 7
grep -q "_flag\\[" "$1" && exit 6
for wanted in -target=Ascend910B1 -enable-hfusion-compile=false -enable-hivm-compile=true \\
    -disable-auto-inject-block-sync=true -disable-auto-cv-work-space-manage=true; do
    case " $* " in *" $wanted "*) ;; *) echo "no $wanted" >&2; exit 8;; esac
done
[ "$7" = -o ] || exit 9
printf 'binary of %s' "$(basename "$1")" > "$8"
"""


@triton.jit
def twice(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside)
    tl.store(out + at, value + value, mask=inside)


LINE = next(n for n, line in enumerate(Path(__file__).read_text().split("\n"), 1) if "value + value" in line)


@pytest.fixture
def tool(tmp_path):
    """Puts a script in the place of the compiler: in a folder of its own."""
    (tmp_path / "bin").mkdir()

    def put(script):
        path = tmp_path / "bin/bishengir-compile"
        path.write_text(script)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return put


def compiled(tmp_path, **variables):
    environment = {
        **os.environ,
        "CALLS": str(tmp_path / "calls"),
        "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
    }
    environment |= {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"} | variables
    environment.pop("TILEWRIGHT_BACKEND", None)
    command = [*COMMAND, f"{__file__}::twice", *ARGUMENTS, "-o", str(tmp_path / "out")]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def calls(tmp_path):
    return (tmp_path / "calls").read_text().count("call") if (tmp_path / "calls").exists() else 0


LAUNCH = """
import numpy, test_bishengir
x, out = numpy.arange(64, dtype="float32"), numpy.zeros(64, "float32")
kernel = test_bishengir.twice[(1,)](x, out, 64, BLOCK=64)
assert (out == 2 * x).all() and "hivm.hir.vadd" in kernel.asm["hivm"]
print(kernel.asm["npubin"].decode())
"""


def launched(tmp_path, tool):
    """What a process finds behind a launch in the simulator, where the compiler was asked for by name."""
    environment = {
        **os.environ,
        "CALLS": str(tmp_path / "calls"),
        "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
    }
    environment |= {"TILEWRIGHT_BACKEND": "npusim", "TILEWRIGHT_BISHENGIR_COMPILE": str(tool)}
    environment["PYTHONPATH"] = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", LAUNCH], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_binary_comes_from_the_tool_and_then_from_the_cache(tool, tmp_path):
    done = compiled(tmp_path, PATH=f"{tool(WORKS).parent}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "out/twice.npubin").read_text() == "binary of kernel.mlir"
    assert calls(tmp_path) == 1
    for _ in range(2):
        assert launched(tmp_path, tool(WORKS)) == "binary of kernel.mlir"
        assert calls(tmp_path) == 2
    # Another release makes another binary.
    assert (
        launched(tmp_path, tool(WORKS.replace("1.2", "1.3").replace("binary of", "another of")))
        == "another of kernel.mlir"
    )
    assert calls(tmp_path) == 3


def test_without_the_tool_the_text_is_the_end(tool, tmp_path):
    tool(WORKS)
    done = compiled(tmp_path, TILEWRIGHT_BISHENGIR_COMPILE="0")
    assert done.returncode == 0 and calls(tmp_path) == 0
    assert "no npubin: TILEWRIGHT_BISHENGIR_COMPILE=0" in done.stdout
    assert (tmp_path / "out/twice.hivm").exists() and not (tmp_path / "out/twice.npubin").exists()
    done = compiled(tmp_path, PATH="/usr/bin:/bin")
    assert done.returncode == 0
    assert "no npubin: bishengir-compile, Ascend's compiler, is not there" in done.stdout
    done = compiled(tmp_path, TILEWRIGHT_BISHENGIR_COMPILE=str(tmp_path / "nowhere"))
    assert done.returncode != 0
    assert f"TILEWRIGHT_BISHENGIR_COMPILE is `{tmp_path}/nowhere`, which is no program" in done.stderr


def test_its_errors_are_at_the_kernels_line(tool, tmp_path):
    # Its passes know places of the kernel; its parser those of the text, in which the line has the place.
    at_kernel = f'echo "{__file__}:{LINE}:20: error: UB overflows" >&2; exit 1'
    at_text = 'line=$(grep -n vadd "$1" | head -1 | cut -d: -f1); echo "$1:$line:5: error: UB overflows" >&2; exit 1'
    for fails in (at_kernel, at_text):
        tool(f'#!/bin/sh\n[ "$1" = --version ] && exit 0\n{fails}\n')
        done = compiled(tmp_path)
        assert done.returncode != 0
        assert "bishengir-compile` failed: UB overflows" in done.stderr
        assert f"test_bishengir.py:{LINE}:" in done.stderr, done.stderr
        assert "value + value" in done.stderr
        assert "the text is kept as" in done.stderr
