"""C source of kernels, joined specializations, the disassembler, ragged descriptors."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.tools import link as linker
from tilewright.tools.compile import CompileArgs, compile_kernel
from tilewright.tools.disasm import get_sass
from tilewright.tools.ragged_tma import create_ragged_descriptor, load_ragged, store_ragged

NVIDIA = Path(sysconfig.get_path("purelib"), "nvidia/cu13")
PROGRAM = """
import tilewright as triton
import tilewright.language as tl

@triton.jit
def scale(x, n, BLOCK: tl.constexpr, factor):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)
"""

needs_ptxas = pytest.mark.skipif(not (NVIDIA / "bin/ptxas").is_file(), reason="there is no ptxas")


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def assemble(sources, folder):
    """Compiles C, if there is a compiler and CUDA's header."""
    if not shutil.which("cc") or not (NVIDIA / "include/cuda.h").is_file():
        pytest.skip("there is no C compiler or no cuda.h")
    for source in sources:
        command = ["cc", "-Wall", "-Werror", "-c", f"-I{NVIDIA}/include", str(source), "-o", f"{source}.o"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@needs_ptxas
def test_c_source_and_its_parts_joined(program, tmp_path):
    made = []
    for signature in (
        "*fp32:16, i32:16, 64, fp32",
        "*fp32, i32:1, 64, fp32",
        "*fp32, i32, 64, fp32",
        "*fp32, i32, 128, fp32",
    ):
        command = [
            "-n",
            "scale",
            "-s",
            signature,
            "-g",
            "n/64,1,1",
            "-t",
            "cuda:90:32",
            "-w",
            "2",
            "-o",
            str(tmp_path / "scale"),
        ]
        subprocess.run([sys.executable, "-m", "tilewright.tools.compile", str(program), *command], check=True)
    headers, sources = sorted(tmp_path.glob("*.h")), sorted(tmp_path.glob("*.c"))
    assert len(headers) == len(sources) == 4
    with_hint = next(h for h in headers if "0d1d2k3" in h.name).read_text()
    assert "(CUstream stream, CUdeviceptr x, int32_t n, float factor);" in with_hint
    of_one = next(h for h in headers if "01c2k3" in h.name).read_text()
    assert "(CUstream stream, CUdeviceptr x, float factor);" in of_one
    assert ":CUdeviceptr x, int32_t n, float factor:" in of_one
    subprocess.run(
        [sys.executable, "-m", "tilewright.tools.link", *map(str, headers), "-o", str(tmp_path / "all")],
        check=True,
    )
    joined = (tmp_path / "all.c").read_text()
    assert "if (((uintptr_t)x % 16 == 0) && ((uintptr_t)n % 16 == 0))" in joined and "if ((n == 1))" in joined
    assert "int scale_get_num_algos(void) {\n  return" in joined
    assemble([*sources, tmp_path / "all.c"], tmp_path)


@needs_ptxas
def test_what_has_no_c_source(program, tmp_path):
    args = CompileArgs(
        str(program), "scale", "*fp32, i32, 64", "1,1,1", "cuda:90:32", out_path=tmp_path / "a"
    )
    with pytest.raises(ValueError, match="the signature has 3 items"):
        compile_kernel(args)
    args.signature, args.grid = "*fp32, i32, 64, fp32", "1"
    with pytest.raises(ValueError, match="three extents"):
        compile_kernel(args)
    args.signature = "*fp32:4, i32, 64, fp32"
    with pytest.raises(ValueError, match="followed by :16"):
        compile_kernel(args)


def test_headers_that_do_not_belong_together(tmp_path):
    parser = linker.HeaderParser()
    parser.extract_linker_meta("// tt-linker: a_01234567_0d12k:CUdeviceptr x, int32_t n:64_warps4xstages3")
    (meta,) = parser.kernels["a_64_warps4xstages3"]
    assert meta.sizes == [16, None] and meta.num_specs == 1 and meta.orig_kernel_name == "a"
    with pytest.raises(linker.LinkerError, match="different kernels"):
        parser.extract_linker_meta("// tt-linker: b_01234567_01:CUdeviceptr x, int32_t n:warps4")
    with pytest.raises(linker.LinkerError, match="says 1 arguments"):
        parser.extract_linker_meta("// tt-linker: a_01234567_0:CUdeviceptr x, int32_t n:warps4")
    with pytest.raises(linker.LinkerError, match="no header"):
        linker.link([], tmp_path / "a")


@needs_ptxas
def test_disassembly():
    @triton.jit
    def store(x):
        tl.store(x, 1)

    kernel = store.warmup(tl.int32, grid=(1,), target="cuda:90")
    text = get_sass(kernel.asm["cubin"])
    assert text.startswith(f"Function:{kernel.name}\n") and "EXIT" in text and "STG.E" in text
    assert get_sass(kernel.asm["cubin"], kernel.name) == text


@triton.jit
def move(source, target, first, rows, at, BLOCK: tl.constexpr, N: tl.constexpr):
    store_ragged(target, first, rows, [at, 0], load_ragged(source, first, rows, [at, 0]) + 1)


@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
@pytest.mark.parametrize("first, rows, at", [(0, 8, 0), (3, 5, 0), (3, 6, 4), (10, 0, 0)])
def test_ragged_descriptors(backend, first, rows, at, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    monkeypatch.setenv("TILEWRIGHT_CUBIN", "0")
    x, y = (np.zeros(16 * 32 + 4, np.float32) for _ in range(2))
    # Descriptors want addresses that are multiples of 16 bytes.
    x, y = (a[(-a.ctypes.data // 4) % 4 :][: 16 * 32].reshape(16, 32) for a in (x, y))
    x[:] = np.arange(16 * 32).reshape(16, 32)
    move[(1,)](
        create_ragged_descriptor(x, [8, 32]), create_ragged_descriptor(y, [8, 32]), first, rows, at, 8, 32
    )
    expected = np.zeros_like(y)
    expected[first + at : first + rows] = x[first + at : first + rows][:8] + 1
    np.testing.assert_array_equal(y, expected)


def test_what_cannot_be_ragged():
    x = np.zeros((16, 32), np.float32)
    with pytest.raises(ValueError, match="last dimension"):
        create_ragged_descriptor(x, [8, 32], ragged_dim=-1)
    with pytest.raises(ValueError, match="at most 3"):
        create_ragged_descriptor(np.zeros((2, 2, 2, 4), np.float32), [1, 1, 1, 4])
    with pytest.raises(ValueError, match="dimensions"):
        create_ragged_descriptor(x, [8])
