"""How many compiled kernels a function keeps, and how many the cache on disk."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl

LIMIT = 1024


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")


def test_a_long_process_keeps_the_kernels_that_it_uses():
    @triton.jit
    def kernel(x, N: tl.constexpr):
        tl.store(x, N)

    x = np.zeros(1, np.int32)
    used = kernel[(1,)](x, 0)
    held = kernel[(1,)](x, 1)
    for n in range(2, LIMIT + 300):
        kernel[(1,)](x, n)
        assert x[0] == n
        # What is asked for again and again stays.
        assert kernel[(1,)](x, 0) is used
    assert LIMIT / 2 < len(kernel.compiled_kernels) <= LIMIT
    # What is kept no more runs as long as someone holds it, and is compiled again when it is asked for.
    held[(1,)](x)
    assert x[0] == 1
    assert kernel[(1,)](x, 1) is not held
    assert x[0] == 1


def test_the_cache_on_disk_has_a_limit(tmp_path):
    """Of what other processes have left there that goes which was not used for longest."""
    source = tmp_path / "kernel.py"
    source.write_text(
        "import sys, numpy as np, tilewright as triton, tilewright.language as tl\n"
        "@triton.jit\ndef kernel(x, N: tl.constexpr):\n    tl.store(x, N)\n"
        "for n in sys.argv[1:]:\n    kernel[(1,)](np.zeros(1, np.int32), int(n))\n"
    )
    folder = tmp_path / "cache"

    def run(*numbers, limit):
        environment = os.environ | {"TILEWRIGHT_CACHE_DIR": str(folder), "TILEWRIGHT_CACHE_SIZE": str(limit)}
        environment |= {"TILEWRIGHT_BACKEND": "ptxsim", "TILEWRIGHT_CUBIN": "0"}
        done = subprocess.run(
            [sys.executable, source, *map(str, numbers)], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return {entry.name for entry in folder.iterdir()}, done.stderr

    first, said = run(11, 12, limit=1 << 30)
    assert len(first) == 2 and said == ""
    both, _ = run(13, limit=0)
    assert first < both and len(both) == 3
    # What a process has compiled itself stays, however much that is.
    last, _ = run(14, 15, limit=1)
    assert len(last) == 2 and not last & both
    _, said = run(16, limit="1 GB")
    assert "TILEWRIGHT_CACHE_SIZE=1 GB: a number of bytes is wanted" in said
