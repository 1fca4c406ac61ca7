"""Ctrl-C ends what runs for long, wherever it is, and the program can go on; what would never end is an error."""

import linecache
import os
import signal
import site
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tilewright as triton
import tilewright.language as tl

KERNELS = """
import os
import signal
import sys
import time

# A shell starts what it runs in the background with Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright.testing import simulate_ptx

@triton.jit
def forever(x, n):
    i = 0
    while i < n:
        i += tl.load(x)

@triton.jit
def double(x, BLOCK: tl.constexpr):
    at = x + tl.arange(0, BLOCK)
    tl.store(at, tl.load(at) * 2)

@triton.constexpr_function
def slow(n):
    print("started", flush=True)
    while True:
        time.sleep(0.01)

@triton.jit
def names_slow(x):
    tl.store(x, slow(3))

ENDLESS = '''
.version 8.0
.target sm_80
.address_size 64
.visible .entry k() {
L: bra L;
}
'''
x = np.zeros(128, np.int32)

def start():
    print("started", flush=True)

try:
    %s
    print("ended")
except KeyboardInterrupt:
    print("interrupted")
# Nothing is lost: the next kernel compiles and runs.
os.environ.pop("TRITON_PTXAS_PATH", None)
os.environ["TILEWRIGHT_BACKEND"] = "ptxsim"
x[:] = 3
double[(1,)](x, BLOCK=128)
print("after", x.sum())
"""
PLACES = {
    "executor": "start(); os.environ['TILEWRIGHT_BACKEND'] = 'interp'; forever[(4,)](x, 1)",
    "simulator": "start(); os.environ['TILEWRIGHT_BACKEND'] = 'ptxsim'; forever[(4,)](x, 1)",
    "simulate_ptx": "start(); simulate_ptx(ENDLESS, 'k', (4,), (64,), [])",
    "python in the front end": "names_slow.warmup(tl.int32, grid=(1,), target='interp')",
    "ptxas": "double.warmup(tl.int32, BLOCK=64, grid=(1,), target='cuda:90')",
}


@pytest.mark.parametrize("place", PLACES)
def test_ctrl_c_ends_it_and_nothing_is_lost(tmp_path, place):
    file = tmp_path / "program.py"
    file.write_text(KERNELS % PLACES[place])
    variables = os.environ | {"TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    told = tmp_path / "told"
    if place == "ptxas":
        tool = tmp_path / "ptxas"
        tool.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && exec echo V13.0.1\necho > "{told}"\nexec sleep 1000\n'
        )
        tool.chmod(0o755)
        variables["TRITON_PTXAS_PATH"] = str(tool)
    program = subprocess.Popen(
        [sys.executable, file], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        if place == "ptxas":
            while not told.exists():
                assert program.poll() is None, program.communicate()
                time.sleep(0.02)
        else:
            assert program.stdout.readline() == "started\n", program.communicate()
            # It has said so just before: let it get where it stays.
            time.sleep(0.5)
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=120)
    finally:
        program.kill()
    assert out.splitlines() == ["interrupted", "after 768"], err


def compiled(folder, source, target="interp", signature="*fp32"):
    file = Path(folder, "kernel.py")
    file.write_text("import tilewright as triton\nimport tilewright.language as tl\n\n" + source)
    command = [sys.executable, "-m", "tilewright", "compile", f"{file}::kernel"]
    command += ["--signature", signature, "--target", target]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def helpers(count, body):
    """Functions that each call the next one; the last one gives what it gets."""
    functions = []
    for i in range(count):
        result = body.format(f"f{i + 1}") if i + 1 < count else "x"
        functions.append(f"@triton.jit\ndef f{i}(x):\n    return {result}\n\n")
    return "".join(functions) + "@triton.jit\ndef kernel(p):\n    tl.store(p, f0(tl.load(p)))\n"


@pytest.mark.parametrize("target", ["interp", "cuda:90"])
def test_chains_of_helpers_are_no_recursion(tmp_path, target):
    done = compiled(tmp_path, helpers(250, "{}(x) + 1"), target)
    assert done.returncode == 0, done.stderr
    too_many = compiled(tmp_path, helpers(300, "{}(x) + 1"), target)
    assert too_many.returncode == 1
    assert "error: calls are nested more than 256 deep" in too_many.stderr and "^" in too_many.stderr
    assert "calls itself" not in too_many.stderr and len(too_many.stderr.splitlines()) < 120


def test_a_function_that_calls_itself_for_ever_is_told_so(tmp_path):
    source = """@triton.jit
def f(x, n: tl.constexpr):
    return f(x, n + 1)

@triton.jit
def kernel(p):
    tl.store(p, f(tl.load(p), 0))
"""
    done = compiled(tmp_path, source)
    assert done.returncode == 1
    assert "error: `f` calls itself" in done.stderr and "^" in done.stderr


@pytest.mark.parametrize("target", ["interp", "cuda:90"])
def test_calls_that_double_have_a_limit(tmp_path, target):
    # 2^40 calls.
    for body in ["{0}(x) + {0}(x)", "{0}({0}(x))"]:
        done = compiled(tmp_path, helpers(41, body), target)
        assert done.returncode == 1
        assert "error: here the kernel becomes larger than" in done.stderr or "takes more than" in done.stderr
        assert "^" in done.stderr and "help: calls are inlined" in done.stderr


@pytest.mark.parametrize("target", ["interp", "cuda:90"])
def test_sources_without_end_have_a_limit(tmp_path, target):
    lines = "    x = x * 3 + 1\n" * 200_000
    source = f"@triton.jit\ndef kernel(p):\n    x = tl.load(p)\n{lines}    tl.store(p, x)\n"
    done = compiled(tmp_path, source, target)
    assert done.returncode == 1
    assert "error: here the kernel becomes larger than" in done.stderr and "^" in done.stderr


def test_blocks_that_no_thread_can_hold_are_refused(tmp_path):
    source = """@triton.jit
def kernel(p):
    at = p + tl.arange(0, 1 << 20)
    tl.store(at, tl.load(at) + 1)
"""
    done = compiled(tmp_path, source, "cuda:90")
    assert done.returncode == 1
    assert (
        "a tensor of shape [1048576] has 8192 elements in each thread" in done.stderr and "^" in done.stderr
    )
    assert compiled(tmp_path, source, "interp").returncode == 0


def test_code_that_unrolling_makes_too_long_is_refused(tmp_path):
    source = """@triton.jit
def kernel(p):
    at = p + tl.arange(0, 1 << 17)
    x = tl.load(at)
    for i in tl.static_range(5000):
        x = x * 1.5 + i
    tl.store(at, x)
"""
    done = compiled(tmp_path, source, "cuda:90")
    assert done.returncode == 1
    assert "here the code of each thread becomes longer than 1000000 instructions" in done.stderr
    assert "x = x * 1.5 + i" in done.stderr and "^" in done.stderr


def interrupted(*_):
    raise KeyboardInterrupt


class Interrupted:
    __index__ = interrupted


def test_python_code_that_may_fail_may_be_interrupted(monkeypatch):
    """Where an error of Python code is let pass, Ctrl-C is not: what it left half known would be wrong."""

    @triton.jit
    def three(x):
        tl.store(x, 3)

    def compiled():
        three.clear_cache()
        return three.warmup(tl.int32, grid=(1,), target="cuda:90").asm

    wanted = compiled()["ptx"]
    for module, name in [(site, "getsitepackages"), (site, "getusersitepackages")]:
        with monkeypatch.context() as changed:
            changed.setattr(site, "ENABLE_USER_SITE", True)
            changed.setattr(module, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                compiled()
    with pytest.raises(KeyboardInterrupt):
        three[(1,)](Interrupted())
    with monkeypatch.context() as changed:
        changed.setattr(linecache, "getline", interrupted)
        with pytest.raises(KeyboardInterrupt):
            three[(1,)](object())
    assert compiled()["ptx"] == wanted
