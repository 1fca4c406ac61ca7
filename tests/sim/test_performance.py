"""Performance without a clock: what the simulator counts is the same on every machine.

``TILEWRIGHT_BLESS=1 pytest tests/sim/test_performance.py`` writes the instruction counts anew, for a change that is
meant to move them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import flash_attention
import matmul
import numpy as np
import pytest
import softmax
import vector_add
from aligned_arrays import aligned

import tilewright.language as tl

COUNTS = Path(__file__).parents[1] / "bench" / "instruction_counts.json"
TOLERANCE = 0.02
CONFLICTS = "test_matmul_has_no_bank_conflicts"


def zeros(*shape, dtype=np.float32):
    return aligned(np.zeros(shape, dtype))


def numbers(*shape, dtype=np.float32):
    return aligned(np.random.default_rng(0).standard_normal(shape).astype(dtype))


def run_add():
    n = 8192
    x, y, out = numbers(n), numbers(n), zeros(n)
    return vector_add.add_kernel[(n // 1024,)](x, y, out, n, BLOCK=1024)


def run_softmax(n_cols=1024, num_warps=4):
    x, out = numbers(4, n_cols), zeros(4, n_cols)
    return softmax.softmax_kernel[(4,)](out, x, n_cols, n_cols, n_cols, BLOCK=n_cols, num_warps=num_warps)


def run_matmul(block, num_warps=4, size=128):
    a, b, c = (numbers(size, size, dtype=np.float16) for _ in range(3))
    m, n, k = block
    return matmul.matmul_kernel[(size // m * (size // n),)](
        a, b, c, size, size, size, size, 1, size, 1, size, 1,
        BLOCK_M=m, BLOCK_N=n, BLOCK_K=k, GROUP_M=8, ACC=tl.float32, PRECISION="tf32", num_warps=num_warps,
    )  # fmt: skip


def run_attention(d, causal):
    n = 256
    q, k, v, o = (numbers(1, n, d, dtype=np.float16) for _ in range(4))
    return flash_attention.flash_kernel[(n // 128, 1)](
        q, k, v, o, d**-0.5, n, n * d, d, D=d, BLOCK_M=128, BLOCK_N=64, CAUSAL=causal, EVEN=True, num_warps=8
    )


KERNELS = {
    "add 1024": run_add,
    "softmax 1024": run_softmax,
    "softmax 1000": lambda: run_softmax(1000),
    "matmul 64x64x32": lambda: run_matmul((64, 64, 32)),
    "matmul 128x128x64": lambda: run_matmul((128, 128, 64), 8),
    "flash attention 64": lambda: run_attention(64, False),
    "flash attention 128": lambda: run_attention(128, False),
    "flash attention 128 causal": lambda: run_attention(128, True),
}


def counters(compiled) -> dict:
    report = compiled.sim_report
    assert report["findings"] == []
    return report["counters"]


def test_vector_add_moves_the_fewest_sectors_in_the_widest_accesses():
    counts = counters(run_add())
    assert counts["global_sectors"] == counts["global_sectors_min"] == 3 * 8192 * 4 // 32
    accesses = [name for name in counts["opcodes"] if name.startswith(("ld.global", "st.global"))]
    assert accesses and all(".v4.b32" in name or ".v2.b64" in name for name in accesses), accesses
    # 16 bytes for each of 32 lanes: 512 a warp instruction.
    assert sum(counts["opcodes"][name] for name in accesses) == 3 * 8192 * 4 // 512


@pytest.mark.parametrize(
    "block, num_warps", [((64, 64, 32), 4), ((128, 128, 64), 4), ((128, 128, 64), 8), ((64, 128, 64), 4)]
)
def test_matmul_has_no_bank_conflicts(block, num_warps):
    counts = counters(run_matmul(block, num_warps))
    assert counts["shared_wavefronts"] > 0 and counts["tensor_ops"] > 0
    groups = os.environ.get("TILEWRIGHT_WGMMA") != "0"
    assert groups == any(name.startswith("wgmma.mma_async") for name in counts["opcodes"])
    worst = {line: c["bank_conflicts"] for line, c in counts["lines"].items() if c["bank_conflicts"]}
    assert counts["bank_conflicts"] == 0, worst


def test_matmul_has_no_bank_conflicts_without_warp_group_instructions():
    # The choice is made once a process.
    environment = {**os.environ, "TILEWRIGHT_WGMMA": "0"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::{CONFLICTS}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_instruction_counts():
    found = {name: counters(run())["warp_instructions"] for name, run in KERNELS.items()}
    if os.environ.get("TILEWRIGHT_BLESS") == "1":
        COUNTS.write_text(json.dumps(found, indent=2) + "\n")
    known = json.loads(COUNTS.read_text())
    assert found.keys() == known.keys(), "the kernels changed: TILEWRIGHT_BLESS=1 writes the file anew"
    moved = {
        name: f"{known[name]} -> {n} ({n / known[name] - 1:+.1%})"
        for name, n in found.items()
        if abs(n - known[name]) > TOLERANCE * known[name]
    }
    assert not moved, (
        f"warp instructions moved by more than {TOLERANCE:.0%} (TILEWRIGHT_BLESS=1 if meant): {moved}"
    )
