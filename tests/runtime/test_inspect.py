"""What Python says of a kernel's machine code, and the ``tilewright`` command of the package; no GPU is needed."""

import subprocess
import sys

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.language.extra import libdevice


@triton.jit
def sums(x, y, n, BLOCK: tl.constexpr):
    kept = tl.load(x + tl.arange(0, BLOCK))
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + start + tl.arange(0, BLOCK)) * kept
    tl.store(y + tl.arange(0, BLOCK), total + kept)


def compiled(**options):
    return sums.warmup(np.float32, np.float32, 4096, grid=(1,), target="cuda:90", **options)


def test_sass():
    kernel = compiled(BLOCK=512)
    asm = kernel.asm
    assert "sass" not in asm and isinstance(asm["cubin"], bytes)
    assert "LDG.E.128" in asm["sass"] and "test_inspect.py" in asm["sass"]
    assert "/* 0x" not in asm["sass"]
    assert asm["sass"] is asm["sass"] and "sass" in asm
    assert kernel.instruction_mix()["EXIT"] >= 1
    with pytest.raises(KeyError):
        asm["amdgcn"]


def test_no_sass_without_a_cubin():
    kernel = sums.warmup(np.float32, np.float32, 4096, grid=(1,), target="interp", BLOCK=512)
    with pytest.raises(KeyError):
        kernel.asm["sass"]
    assert kernel.n_regs is None and kernel.n_spills is None


def test_a_cubin_may_be_left_out(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))

    def asm():
        sums.clear_cache()
        return compiled(BLOCK=256).asm

    monkeypatch.setenv("TILEWRIGHT_CUBIN", "0")
    assert "cubin" not in asm() and "ptx" in asm()
    # What is in the cache then is not taken for the whole, nor the other way round.
    monkeypatch.delenv("TILEWRIGHT_CUBIN")
    assert isinstance(asm()["cubin"], bytes)
    monkeypatch.setenv("TILEWRIGHT_CUBIN", "0")
    assert "cubin" not in asm()


def test_maxnreg():
    free, few = compiled(BLOCK=2048, num_warps=2), compiled(BLOCK=2048, num_warps=2, maxnreg=32)
    assert free.n_regs > 32 and free.n_spills == 0
    assert few.n_regs <= 32 and few.n_spills > 0
    assert ".maxnreg 32" in few.asm["ptx"]
    metadata = few.metadata
    assert (metadata.maxnreg, metadata.num_warps, metadata.name) == (32, 2, "sums")
    # Triton takes any number, and `ptxas` what a thread can have.
    for asked, bound in ((256, 255), (1, 24), (168, 168)):
        assert f".maxnreg {bound}\n" in compiled(BLOCK=32, num_warps=2, maxnreg=asked).asm["ptx"]
    assert metadata.n_regs == few.n_regs and metadata.shared == few.shared


def test_command():
    command = [sys.executable, "-m", "tilewright"]
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.split() == ["tilewright", triton.__version__]
    wrong = subprocess.run([*command, "inspect", "nowhere.py"], capture_output=True, text=True)
    assert wrong.returncode == 1 and "nowhere.py" in wrong.stderr and not wrong.stdout


@triton.jit
def rows(x, y, n, BLOCK: tl.constexpr, HINT: tl.constexpr):
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + start + tl.arange(0, BLOCK))
    tl.store(y + tl.arange(0, BLOCK), total, cache_modifier=HINT)


@triton.jit
def ragged(x, y, n, BLOCK: tl.constexpr):
    """Rows that begin anywhere: a thread stores an element at a time."""
    at = tl.program_id(0) * n + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))


@pytest.mark.parametrize(
    "options, together",
    [
        # 16 bytes a thread are one load; 64 are four, which should be under way at a time.
        ({"BLOCK": 512}, False),
        ({"BLOCK": 2048}, True),
        ({"BLOCK": 2048, "maxnreg": 64}, False),
    ],
)
def test_loads_of_a_loop_are_kept_apart(options, together):
    kernel = rows.warmup(np.float32, np.float32, 8192, grid=(1,), target="cuda:90", HINT="", **options)
    assert (".minnctapersm" in kernel.asm["ptx"]) == together
    if together:
        sass = kernel.asm["sass"]
        loads = [
            line.split("LDG.E.128 R")[1].split(",")[0] for line in sass.splitlines() if "LDG.E.128" in line
        ]
        assert len(loads) >= 4 and len(set(loads[:4])) == 4


@triton.jit
def centered(x, y, n, BLOCK: tl.constexpr, HINT: tl.constexpr):
    """Reads a row twice."""
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + start + tl.arange(0, BLOCK))
    mean = tl.sum(total) / n
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(y + at, tl.load(x + at) - mean, cache_modifier=HINT)


@triton.jit
def doubled(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) * 2)


def first_store(kernel, *args, target="cuda:90", **options) -> str:
    """The first store to global memory of what it is compiled to."""
    ptx = kernel.warmup(*args, grid=(1,), target=target, **options).asm["ptx"]
    return next(line.split()[0] for line in ptx.splitlines() if "st.global" in line)


def test_stores_leave_what_is_read_again_in_the_l1_cache():
    for target, hint, store in (
        ("cuda:90", "", "st.global.L1::no_allocate.v4.b32"),
        ("cuda:90", ".cs", "st.global.cs.v4.b32"),
        ("cuda:80", "", "st.global.v4.b32"),
    ):
        assert (
            first_store(centered, np.float32, np.float32, 8192, BLOCK=512, HINT=hint, target=target) == store
        )
    # Nothing is read again, and 32 elements a thread fit its registers; 64 in 1024 threads do not.
    assert first_store(rows, np.float32, np.float32, 8192, BLOCK=512, HINT="") == "st.global.v4.b32"
    for block, store in ((32768, "st.global.v4.b32"), (65536, "st.global.L1::no_allocate.v4.b32")):
        assert first_store(doubled, np.float32, np.float32, BLOCK=block, num_warps=32) == store
    assert first_store(ragged, np.float32, np.float32, 8191, BLOCK=512) == "st.global.b32"


@triton.jit
def roots(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, libdevice.cbrt(tl.load(x + at)))


def test_libdevice_is_linked_in(monkeypatch):
    ptx = roots.warmup(np.float32, 128, grid=(1,), target="cuda:90").asm["ptx"]
    assert "__nv_" not in ptx and ".func" not in ptx
    monkeypatch.setenv("TRITON_LIBDEVICE_PATH", "/nowhere/libdevice.10.bc")
    monkeypatch.setenv("TILEWRIGHT_ALWAYS_COMPILE", "1")
    with pytest.raises(
        triton.CompilationError, match=r"/nowhere/libdevice.10.bc(.|\n)*pip install nvidia-nvvm"
    ):
        roots.warmup(np.float32, 256, grid=(1,), target="cuda:90")


RAW = """
import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tle.raw import InOut, dialect


@dialect(name="ptx", source="add.rn.f32 %[x], %[x], 0f40000000;")
def more(x: InOut["tensor<?xf32>"]): ...


@triton.jit
def kernel(x_ptr):
    at = tl.arange(0, 128)
    tl.store(x_ptr + at, tle.raw.call(more, [tl.load(x_ptr + at)]))
"""


def command_of(path, *words):
    command = [sys.executable, "-m", "tilewright", *words, f"{path}::kernel", "--signature", "*fp32"]
    return subprocess.run([*command, "--target", "cuda:90"], capture_output=True, text=True)


def test_the_command_asks_python_for_functions_in_other_languages(tmp_path):
    path = tmp_path / "raw_kernel.py"
    path.write_text(RAW)
    done = command_of(path, "inspect")
    assert done.returncode == 0, done.stderr
    assert "FADD 1" in done.stdout and "raw_kernel.py" in done.stdout
    assert command_of(path, "compile", "-o", str(tmp_path / "out")).returncode == 0
    assert "add.rn.f32" in (tmp_path / "out" / "kernel.ptx").read_text()
    # The file's own fault is the command's.
    path.write_text(RAW + "\nraise RuntimeError('not today')\n")
    failed = command_of(path, "inspect")
    assert failed.returncode == 1 and "raw_kernel.py cannot be imported" in failed.stderr, failed.stderr
    assert "RuntimeError: not today" in failed.stderr and "line 17" in failed.stderr
