"""Performance without a clock: what the simulator counts is the same on every machine.

``TILEWRIGHT_BLESS=1 pytest tests/sim/test_performance.py`` writes the instruction counts anew, for a change that is
meant to move them.
"""

import importlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import flash_attention
import matmul
import numpy as np
import pytest
import softmax
import vector_add
from aligned_arrays import aligned
from common import Device

import tilewright
import tilewright.language as tl

COUNTS = Path(__file__).parents[1] / "bench" / "instruction_counts.json"
TOLERANCE = 0.02
# `common` and `demo` are no examples of a kernel.
EXAMPLES = sorted({p.stem for p in Path(matmul.__file__).parent.glob("*.py")} - {"common", "demo"})
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


def run_matmul(block, num_warps=4, size=128, result=np.float16):
    a, b = (numbers(size, size, dtype=np.float16) for _ in range(2))
    c = zeros(size, size, dtype=result)
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


# Float16 results go through shared memory to be stored in rows, float32 ones from the registers that hold them.
@pytest.mark.parametrize("result", [np.float16, np.float32])
@pytest.mark.parametrize(
    "block, num_warps",
    [
        ((64, 64, 32), 4), ((128, 128, 64), 4), ((128, 128, 64), 8), ((64, 128, 64), 4), ((128, 256, 64), 8),
        ((256, 128, 64), 8), ((128, 64, 32), 4),
    ],
)  # fmt: skip
def test_matmul_has_no_bank_conflicts(block, num_warps, result):
    counts = counters(run_matmul(block, num_warps, size=256, result=result))
    assert counts["tensor_ops"] > 0
    assert counts["global_sectors"] == counts["global_sectors_min"]
    staged = any(name.startswith(("st.shared", "stmatrix")) for name in counts["opcodes"])
    assert staged == (result == np.float16)
    groups = os.environ.get("TILEWRIGHT_WGMMA") != "0"
    # Operands are copied by TMA, and products of warp groups read them where they lie.
    assert counts["shared_wavefronts"] > 0 or (groups and not staged)
    assert groups == any(name.startswith("wgmma.mma_async") for name in counts["opcodes"])
    worst = {line: c["bank_conflicts"] for line, c in counts["lines"].items() if c["bank_conflicts"]}
    assert counts["bank_conflicts"] == 0, worst


@pytest.mark.parametrize("block, num_warps", [((64, 128, 128), 4), ((128, 128, 128), 8), ((64, 256, 128), 4)])
@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_operands_that_are_turned_have_no_bank_conflicts(dtype, block, num_warps):
    # wgmma wants elements of 8 and 32 bits with K contiguous; the right operand has N so.
    m, n, k = block if dtype == np.int8 else (*block[:2], block[2] // 4)
    rng = np.random.default_rng(0)
    a, b = (aligned(rng.integers(-9, 9, shape).astype(dtype)) for shape in ((m, 2 * k), (2 * k, n)))
    acc = np.int32 if dtype == np.int8 else np.float32
    c = zeros(m, n, dtype=acc)
    compiled = matmul.matmul_kernel[(1,)](
        a, b, c, m, n, 2 * k, 2 * k, 1, n, 1, n, 1, BLOCK_M=m, BLOCK_N=n, BLOCK_K=k, GROUP_M=8,
        ACC=tl.int32 if dtype == np.int8 else tl.float32, PRECISION="tf32", num_warps=num_warps,
    )  # fmt: skip
    np.testing.assert_array_equal(c, a.astype(acc) @ b.astype(acc))
    counts = counters(compiled)
    assert any(name.startswith("wgmma.mma_async") for name in counts["opcodes"])
    assert not any(name.startswith(("st.shared.b8", "st.shared.b16")) for name in counts["opcodes"])
    assert counts["bank_conflicts"] == 0, counts["lines"]


def test_matmul_has_no_bank_conflicts_without_warp_group_instructions():
    # The choice is made once a process.
    environment = {**os.environ, "TILEWRIGHT_WGMMA": "0"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::{CONFLICTS}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rows_that_are_copied_ahead_have_no_bank_conflicts(dtype):
    x, out = numbers(6, 1024, dtype=dtype), zeros(6, 1024, dtype=dtype)
    launch = softmax.softmax_kernel[(6,)]
    plain, ahead = (
        counters(
            launch(out, x, 1024, 1024, 1024, BLOCK=1024, num_warps=2, persistent=True, num_stages=stages)
        )
        for stages in (1, 3)
    )
    copies = [
        count for name, count in ahead["opcodes"].items() if name.startswith("cp.async.cg.shared.global")
    ]
    # Three rows of a program, copied by 16 bytes a lane; at the end of each of the two programs two more that are masked off.
    assert sum(copies) == (6 + 2 * 2) * 1024 * x.itemsize // 512
    assert ahead["bank_conflicts"] == plain["bank_conflicts"] == 0
    barriers = [
        {name: n for name, n in c["opcodes"].items() if name.startswith("bar")} for c in (plain, ahead)
    ]
    assert barriers[0] == barriers[1]


class Counted:
    """A kernel whose launches are counted: stands in its module under its own name."""

    def __init__(self, kernel, counts: Counter, name: str):
        self.kernel, self.counts, self.name = kernel, counts, name

    def __getitem__(self, grid):
        def launch(*args, **options):
            compiled = self.kernel[grid](*args, **options)
            self.counts[self.name] += counters(compiled)["warp_instructions"]
            return compiled

        return launch


def count_example(name: str, monkeypatch) -> dict[str, int]:
    """Warp instructions of each kernel that the example launches, all its launches together."""
    module, counts = importlib.import_module(name), Counter()
    for attribute, value in vars(module).copy().items():
        if isinstance(value, tilewright.JITFunction) and attribute.endswith("_kernel"):
            monkeypatch.setattr(module, attribute, Counted(value, counts, attribute))
    module.example(Device())
    assert counts, f"{name} launches no kernel called *_kernel"
    return dict(counts)


@pytest.mark.parametrize("name", [*KERNELS, *EXAMPLES])
def test_instruction_counts(name, monkeypatch):
    if name in KERNELS:
        found = {"warp_instructions": counters(KERNELS[name]())["warp_instructions"]}
    else:
        found = count_example(name, monkeypatch)
    known = json.loads(COUNTS.read_text())
    if os.environ.get("TILEWRIGHT_BLESS") == "1":
        known[name] = found
        COUNTS.write_text(
            json.dumps({n: known[n] for n in [*KERNELS, *EXAMPLES] if n in known}, indent=2) + "\n"
        )
    assert found.keys() == known[name].keys(), "the kernels changed: TILEWRIGHT_BLESS=1 writes the file anew"
    moved = {
        kernel: f"{known[name][kernel]} -> {n} ({n / known[name][kernel] - 1:+.1%})"
        for kernel, n in found.items()
        if abs(n - known[name][kernel]) > TOLERANCE * known[name][kernel]
    }
    assert not moved, (
        f"warp instructions moved by more than {TOLERANCE:.0%} (TILEWRIGHT_BLESS=1 if meant): {moved}"
    )


def test_every_kernel_has_its_count():
    assert list(json.loads(COUNTS.read_text())) == [*KERNELS, *EXAMPLES]
