"""Kernels that use TLE compile from their source alone, with no Python that runs them."""

import subprocess
import sys

import pytest

PROGRAM = """
import triton
import triton.experimental.tle.language as tle
import triton.language as tl
import tilewright.tle.gpu as gpu


@triton.jit
def sums(x, out):
    at = tl.arange(0, 32)
    before, total = tle.cumsum(tle.load(x + at))
    tl.store(out + at, before + total)


@tle.jit
def later(x):
    gpu.tensor_memory_layout(4)
"""


@pytest.mark.parametrize(
    ("kernel", "signature", "message"),
    [("sums", "*fp32,*fp32", None), ("later", "*fp32", "gpu.tensor_memory_layout")],
)
def test_compile(kernel, signature, message, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [
        sys.executable,
        "-m",
        "tilewright",
        "compile",
        f"{program}::{kernel}",
        "--signature",
        signature,
    ]
    done = subprocess.run([*command, "-o", str(tmp_path / "out")], capture_output=True, text=True)
    if message is None:
        assert done.returncode == 0, done.stderr
        assert "tt.scan" in (tmp_path / "out" / "sums.ttir").read_text()
    else:
        assert done.returncode != 0
        assert f"not supported yet: tle.{message}" in done.stderr and "^" in done.stderr
