"""Intel's GPUs: what `tilewright compile --target xe:pvc` writes, what `tilewright inspect` says of it, and kernels in the simulator."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.language.extra import libdevice

COMMAND = [sys.executable, "-m", "tilewright"]
ARGUMENTS = ["--target", "xe:pvc", "--signature", "*fp32,*fp32,*fp32,i32", "--constexpr", "BLOCK=256"]


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(y + row * columns + at, value / tl.sum(value, axis=0), mask=at < columns)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns = tl.program_id(0) * BM, tl.program_id(1) * BN
    a_blocks = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_blocks = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    c_blocks = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a_blocks.load([rows, k]), b_blocks.load([k, columns]), total)
    c_blocks.store([rows, columns], total)


@triton.jit
def functions(x, y, LIBRARY: tl.constexpr):
    at = tl.arange(0, 64)
    value = tl.load(x + at)
    tl.store(
        y + at,
        libdevice.fma_rd(value.to(tl.float64), 3.0, 1.0).to(tl.float32)
        if LIBRARY
        else libdevice.floor(value) + tl.sin(value),
    )


@triton.jit
def in_place(x, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(x + at, tl.load(x + at) * 3 + 1)


@triton.jit
def tile_in_place(x, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(x + at, tl.load(x + at) * 3 + 1)


@triton.jit
def lines(x, most, which, spread, M: tl.constexpr, N: tl.constexpr):
    """Sums of rows that are reduced with their numbers, and their only maximum spread over columns."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    sums = tl.sum(tl.load(x + at), axis=1)
    value, index = tl.max(sums, axis=0, return_indices=True)
    tl.store(most, value)
    tl.store(which, index)
    one = tl.sum(tl.load(x + tl.arange(0, 1)[:, None] + tl.arange(0, N)[None, :]), axis=1)
    tl.store(spread + tl.arange(0, N), tl.broadcast_to(one, [N]) + tl.arange(0, N))


def run(*arguments, **variables):
    environment = {**os.environ, **variables}
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, env=environment)


@pytest.fixture
def xesim(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "xesim")


def test_vectors(xesim):
    x = np.arange(1000, dtype=np.float32)
    z = np.zeros_like(x)
    kernel = add[(4,)](x, 2 * x, z, 1000, BLOCK=256)
    assert (z == 3 * x).all()
    assert (kernel.metadata.target.name, kernel.metadata.target.warp_size) == ("xe:pvc", 16)


@pytest.mark.parametrize("num_warps", [1, 4])
def test_long_vectors(xesim, num_warps):
    # More than 1024 elements a warp.
    x = np.arange(2048 * num_warps, dtype=np.int32)
    in_place[(1,)](x, x.size, num_warps=num_warps)
    np.testing.assert_array_equal(x, np.arange(x.size) * 3 + 1)


@triton.jit
def totals(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at)
    tl.store(y + at, tl.cumsum(value, 0))
    tl.store(y + N, tl.sum(value, 0))
    tl.store(y + N + 1, tl.max(value, 0))
    tl.store(y + N + 2, tl.argmin(value, 0))


@pytest.mark.parametrize("n", [1024, 1000])
def test_totals_of_more_warps_than_lanes(xesim, n):
    """(With the scan the kernel goes thread by thread.)"""
    x, y = np.random.default_rng(n).permutation(n).astype(np.int32), np.zeros(n + 3, np.int32)
    totals[(1,)](x, y, n, num_warps=32)
    np.testing.assert_array_equal(y, [*x.cumsum(), x.sum(), x.max(), x.argmin()])


def test_rows(xesim):
    x = np.random.default_rng(0).standard_normal((3, 200)).astype(np.float32)
    y = np.zeros_like(x)
    softmax[(3,)](x, y, 200, BLOCK=256)
    want = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, want / want.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("shape, num_warps", [((16, 16), 1), ((8, 32), 1), ((32, 16), 4)])
def test_lines_of_rows_and_of_columns(xesim, shape, num_warps):
    x = np.random.default_rng(0).integers(-9, 10, shape).astype(np.float32)
    most, which, spread = np.zeros(1, np.float32), np.zeros(1, np.int32), np.zeros(shape[1], np.float32)
    lines[(1,)](x, most, which, spread, *shape, num_warps=num_warps)
    sums = x.sum(1)
    assert (most[0], which[0]) == (sums.max(), sums.argmax())
    np.testing.assert_array_equal(spread, x[0].sum() + np.arange(shape[1]))


@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (72, 48, 80)])
def test_product(xesim, m, n, k):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float32)
    matmul[(triton.cdiv(m, 64), triton.cdiv(n, 64))](a, b, c, m, n, k, BM=64, BN=64, BK=32)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_functions(xesim):
    x = np.linspace(-100, 1e6, 64).astype(np.float32)
    y = np.zeros_like(x)
    functions[(1,)](x, y, LIBRARY=False)
    np.testing.assert_allclose(y, np.floor(x) + np.sin(x.astype(np.float64)), rtol=1e-6, atol=1e-6)
    functions[(1,)](x, y, LIBRARY=True)
    np.testing.assert_array_equal(y, (x.astype(np.float64) * 3 + 1).astype(np.float32))


@pytest.mark.parametrize(
    "shape, num_warps",
    [((33,), 1), ((24,), 1), ((5,), 1), ((100,), 1), ((16,), 4), ((8, 8), 1), ((16, 8), 4), ((3, 5), 1)],
)
def test_lanes_that_hold_copies_load_before_one_of_them_stores(xesim, shape, num_warps):
    x = np.arange(np.prod(shape), dtype=np.int32)
    (in_place if len(shape) == 1 else tile_in_place)[(1,)](x, *shape, num_warps=num_warps)
    np.testing.assert_array_equal(x, np.arange(x.size) * 3 + 1)


def test_lanes_of_a_warp_wait_for_each_other_by_no_instruction():
    """A sub-group is a thread of the hardware: its barrier is for the compiler."""
    options = ["--signature", "*i32:16", "--constexpr", "N=24", "--num-warps", "1"]
    done = run("inspect", f"{__file__}::in_place", "--target", "xe:pvc", *options, "--json")
    assert done.returncode == 0, done.stderr
    instructions = json.loads(done.stdout)["instructions"]
    assert any(name.startswith("store.ugm") for name in instructions)
    assert not any("fence" in name or name == "sync.bar" for name in instructions), instructions


def test_what_is_out_of_bounds_is_reported(xesim):
    x = np.zeros(1000, np.float32)
    with pytest.raises(triton.KernelError, match=r"out of bounds.*\n.*SPIR-V: .*OpAsmCallINTEL"):
        add[(4,)](x, x.copy(), np.zeros(1024, np.float32), 1024, BLOCK=256)


def test_stages(tmp_path):
    done = run("compile", f"{__file__}::add", *ARGUMENTS, "-o", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "128 registers, 0 bytes spilled" in done.stdout
    assert (tmp_path / "add.spv").read_bytes()[:4] == (0x07230203).to_bytes(4, "little")
    assert (tmp_path / "add.bin").read_bytes()[:4] == b"\x7fELF"
    assert "load.ugm" in (tmp_path / "add.asm").read_text()
    usage = json.loads((tmp_path / "add.usage.json").read_text())
    assert (usage["name"], usage["registers"], usage["spilled_bytes"], usage["sub_group_size"]) == (
        "add",
        128,
        0,
        16,
    )
    assert sum(n for name, n in usage["instructions"].items() if name.startswith("load.ugm.d32.a64")) == 8


@pytest.mark.parametrize(
    "name, d, rows, block",
    [
        ("paged_decode", 64, 16, 64),
        ("paged_attention_warp", 64, 16, 16),
        ("paged_attention_warp", 128, 8, 16),
    ],
)
def test_paged_attention_spills_nothing(tmp_path, name, d, rows, block):
    """At the level of work groups and of warps, with products of the matrix engines."""
    half = "*fp16:16"
    given, room = f"{half},{half},{half},*i32:16,*i32:16", "*fp32:16,*fp32:16"
    constants = dict(D=d, GROUP=8, ROWS=rows, PAGE=16, BLOCK=block)
    function = "part_kernel"
    if name == "paged_attention_warp":
        function, room = "decode_kernel", f"{half},{room},*i32:16"
        constants |= dict(GROUPS=1, PARTS=4)
    signature = f"{given},{room},fp32,i32,i32:16,i32:16,i32:16"
    kernel = Path(__file__).parents[2] / "examples" / f"{name}.py"
    options = [f"--constexpr={key}={value}" for key, value in constants.items()]
    done = run(
        "compile",
        f"{kernel}::{function}",
        "--target",
        "xe:pvc",
        "--signature",
        signature,
        *options,
        "-o",
        str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    usage = json.loads((tmp_path / f"{function}.usage.json").read_text())
    [loop] = [loop["instructions"] for loop in usage["loops"] if "dpas.8x8" in loop["instructions"]]
    assert not [name for name in loop if "hword" in name or "scratch" in name]
    assert usage["spilled_bytes"] == 0


def test_paged_attention_by_products_of_8_rows(xesim, monkeypatch):
    """As many as DPAS has, where 16 would be padding."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    common, warp = map(importlib.import_module, ("common", "paged_attention_warp"))
    warp.hold(common.Device(), rows=8)


def test_inspect():
    done = run("inspect", f"{__file__}::add", *ARGUMENTS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("add for xe:pvc: 4 warps of 16 lanes\n128 registers, 0 bytes")
    assert "load.ugm.d32.a64 8" in done.stdout
    as_json = run("inspect", f"{__file__}::add", *ARGUMENTS, "--json")
    assert json.loads(as_json.stdout)["registers"] == 128


def test_inspect_shows_source_lines():
    """Of a loop that is inline assembly, too."""
    product = ["--signature", "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16"]
    product += [f"--constexpr={name}={n}" for name, n in (("BM", 32), ("BN", 64), ("BK", 32))]
    done = run("inspect", f"{__file__}::matmul", "--target", "xe:pvc", "--num-warps", "2", *product)
    assert done.returncode == 0, done.stderr
    loop = next(part for part in done.stdout.split("\n\n") if "load_block2d.ugm.d16v" in part)
    lines = loop.splitlines()
    assert ", test_xe.py:" in lines[0], loop
    [dot] = [at for at, line in enumerate(lines) if "total = tl.dot(a_blocks.load(" in line]
    assert "dpas.8x8 16" in lines[dot + 1] and "load_block2d.ugm.d16v.a64 1" in lines[dot + 1], loop


def test_without_the_offline_compiler(tmp_path):
    done = run("compile", f"{__file__}::add", *ARGUMENTS, "-o", str(tmp_path), PATH=str(tmp_path))
    assert done.returncode == 1
    assert "ocloc, Intel's offline compiler, is not there: install it" in done.stderr
    assert (tmp_path / "add.spv").exists() and not (tmp_path / "add.bin").exists()
    unwanted = run("compile", f"{__file__}::add", *ARGUMENTS, "-o", str(tmp_path), TILEWRIGHT_OCLOC="0")
    assert unwanted.returncode == 0, unwanted.stderr
    misnamed = run("compile", f"{__file__}::add", *ARGUMENTS, TILEWRIGHT_OCLOC="/nowhere/ocloc")
    assert misnamed.returncode == 1 and "which is no program" in misnamed.stderr


def test_a_chip_that_the_offline_compiler_does_not_know():
    done = run("compile", f"{__file__}::add", "--target", "xe:bmg", *ARGUMENTS[2:])
    assert done.returncode == 0, done.stderr
    assert "no bin" in done.stdout or "registers" in done.stdout


@triton.jit
def of_hopper(x, y, WHAT: tl.constexpr):
    at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    value = tl.load(x + at)
    if WHAT == "product":
        a = tle.gpu.alloc([64, 64], tl.float16)
        a.store(value.to(tl.float16))
        value = tle.gpu.wgmma_wait(0, tle.gpu.wgmma(a, a, trans_b=True))
    elif WHAT == "block":
        value = tle.gpu.set_layout(value, tle.gpu.BlockEncoding([1, 4], [4, 8], [4, 1], [1, 0]))
    else:
        value = tle.gpu.set_layout(value, tle.gpu.MmaEncoding(2, [4, 1], [16, 8]))
    tl.store(y + at, value * 2)


@pytest.mark.parametrize(
    "what, message",
    [
        ("product", "not supported on xe:pvc: tle.gpu.wgmma"),
        ("block", "tle.gpu.set_layout on xe:pvc: its layouts are for warps of 32 threads"),
        ("tensor cores", "tle.gpu.set_layout on xe:pvc: its layouts are for warps of 32 threads"),
    ],
)
def test_what_hopper_has(xesim, what, message):
    """Layouts that a kernel says itself are of warps of 32 threads: they were taken for such of 16."""
    x = np.zeros((64, 64), np.float32)
    with pytest.raises(triton.CompilationError, match=message):
        of_hopper[(1,)](x, x, what)
