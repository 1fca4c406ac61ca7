"""What a launch tells the CUDA driver, seen through a stand-in for it that needs no GPU (crates/runtime/tests).

Each test runs a program of its own: the driver is loaded once a process.
"""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PRELUDE = """
import numpy as np
import tilewright as triton
import tilewright.language as tl

class OnGpu:
    '''Something on the GPU that is no torch tensor.'''
    def __init__(self, address, dtype=np.float32, device="cuda:0"):
        self.address, self.dtype, self.device = address, np.dtype(dtype), device
    def data_ptr(self):
        return self.address

@triton.jit
def kernel(x, y, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * scale, mask=i < n)

def log():
    import os
    return [l for l in open(os.environ["FAKE_CUDA_LOG"]).read().splitlines() if not l.startswith("  ")]
"""


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler for the stand-in")
    library = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    source = ROOT / "crates/runtime/tests/fake_cuda.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@pytest.fixture
def run(fake_driver, tmp_path):
    """Runs a program against the stand-in; gives what it printed."""

    def run(program, **environment):
        log = tmp_path / "log"
        log.write_text("")
        script = tmp_path / "program.py"
        script.write_text(PRELUDE + textwrap.dedent(program))
        base = {k: v for k, v in os.environ.items() if not k.startswith("TILEWRIGHT_")}
        result = subprocess.run(
            [sys.executable, script],
            env=base
            | {
                "TILEWRIGHT_LIBCUDA": str(fake_driver),
                "FAKE_CUDA_LOG": str(log),
                "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
            }
            | environment,
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


def test_a_launch_passes_what_the_kernel_takes(run):
    output = run("""
        compiled = kernel[(3, 2)](OnGpu(0x10000), OnGpu(0x20008), 1000, 2.5, BLOCK=64, num_warps=2)
        print([l for l in log() if l.startswith("launch")])
        print(compiled.n_regs, compiled.metadata.signature, sorted(compiled.asm))
    """)
    assert "launch grid 3 2 1 block 64 1 1" in output
    assert "42 ['*fp32:16', '*fp32', 'i32:8', 'fp32', '64/constexpr']" in output
    assert "'ptx'" in output and "'ttgir'" in output


def test_a_second_launch_only_launches(run):
    output = run("""
        kernel[(1,)](OnGpu(0x10000), OnGpu(0x20000), 7, 2.5, BLOCK=64)
        before = len(log())
        kernel[(1,)](OnGpu(0x30000), OnGpu(0x40000), 9, 1.5, BLOCK=64)
        print([l.split()[0] for l in log()[before:]])
    """)
    assert output.strip() == "['launch']", "a launch that allocates or waits cannot be captured into a graph"


def test_an_empty_grid_compiles_and_launches_nothing(run):
    output = run("""
        print(kernel[(0,)](OnGpu(0x10000), OnGpu(0x20000), 7, 2.5, BLOCK=64).name)
        print([l for l in log() if l.startswith("launch")])
    """)
    assert output.split() == ["kernel", "[]"]


def test_host_and_gpu_arrays_do_not_mix(run):
    output = run("""
        for warm in (False, True):
            try:
                kernel[(1,)](np.zeros(4, np.float32), OnGpu(0x20000), 4, 1.0, BLOCK=4)
            except ValueError as error:
                print(error)
    """)
    assert output.count("argument 'x' is in host memory, but argument 'y' is on GPU 0") == 2


def test_too_many_threads_is_explained(run):
    output = run("""
        try:
            kernel[(1,)](OnGpu(0x10000), OnGpu(0x20000), 7, 2.5, BLOCK=1024, num_warps=16)
        except triton.DriverError as error:
            print(error)
    """)
    assert "the block has 512 threads; this kernel allows 256" in output


def test_host_arrays_go_by_copies_when_the_backend_is_forced(run):
    output = run(
        """
        x = np.arange(8, dtype=np.float32)
        kernel[(1,)](x[2:], x, 4, 2.0, BLOCK=4)
        print([l.split()[0] for l in log()])
        """,
        TILEWRIGHT_BACKEND="cuda",
    )
    # One allocation for both views; the stand-in runs nothing.
    assert "'launch', 'synchronize'" in output


def test_properties(run):
    output = run("""
        driver = triton.runtime.driver
        p = driver.active.utils.get_device_properties(driver.active.get_current_device())
        print(p["multiprocessor_count"], p["max_shared_mem"], p["warpSize"], driver.active.get_current_target())
    """)
    assert output.startswith("132 232448 32 GPUTarget(backend='cuda', arch=90, warp_size=32)")


def test_compiled_for_a_gpu_that_is_not_there(run):
    output = run(
        """
        compiled = kernel.warmup(np.float32, np.float32, 7, 2.5, BLOCK=64, grid=(1,))
        print(compiled, compiled.metadata.target)
        try:
            compiled[(1,)](np.zeros(64, np.float32), np.zeros(64, np.float32), 7, 2.5)
        except (TypeError, ValueError) as error:
            print(error)
        """,
        TILEWRIGHT_TARGET="cuda:80",
        TILEWRIGHT_LIBCUDA="/nonexistent/libcuda.so",
    )
    assert "cuda:80" in output.splitlines()[0]
    assert "running on cuda:80" in output


def test_no_driver_is_said_plainly(run):
    output = run(
        """
        try:
            kernel[(1,)](np.zeros(64, np.float32), np.zeros(64, np.float32), 7, 2.5, BLOCK=64)
        except triton.DriverError as error:
            print(error)
        """,
        TILEWRIGHT_BACKEND="cuda",
        TILEWRIGHT_LIBCUDA="/nonexistent/libcuda.so",
    )
    assert "no CUDA driver" in output and "TILEWRIGHT_BACKEND=interp" in output


def test_a_process_forked_from_one_with_a_gpu_compiles_and_says_that_it_cannot_launch(run):
    output = run(
        """
        import os
        x, y = OnGpu(0x1000), OnGpu(0x2000)
        kernel[(1,)](x, y, 64, 2.5, BLOCK=64)
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
        else:
            from tilewright.compiler import ASTSource
            signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "scale": "fp32"}
            source = ASTSource(kernel, signature, {"BLOCK": 128})
            print(triton.compile(source, target="cuda:90").metadata.target)
            try:
                kernel[(1,)](x, y, 64, 2.5, BLOCK=64)
            except triton.DriverError as error:
                print(error, flush=True)
            os._exit(0)
        """
    )
    assert (
        "arch=90" in output
        and "forked from one that had initialized CUDA" in output
        and "forkserver" in output
    )


def test_the_cache_serves_another_process(run, tmp_path):
    program = """
        import time
        start = time.perf_counter()
        compiled = kernel.warmup(np.float32, np.float32, 7, 2.5, BLOCK=64, grid=(1,))
        print(compiled.asm["ptx"][:8], len(compiled.asm.get("cubin", b"")))
    """
    first = run(program, TILEWRIGHT_TARGET="cuda:90")
    entries = list((tmp_path / "cache").glob("*/kernel.ptx"))
    assert len(entries) == 1
    stamp = entries[0].stat().st_mtime_ns
    assert run(program, TILEWRIGHT_TARGET="cuda:90") == first
    assert entries[0].stat().st_mtime_ns == stamp
    # Damage is noticed, and repaired.
    entries[0].write_text("damaged")
    assert run(program, TILEWRIGHT_TARGET="cuda:90") == first
    assert "damaged" not in entries[0].read_text()
    # Another target, another entry.
    run(program, TILEWRIGHT_TARGET="cuda:80")
    assert len(list((tmp_path / "cache").glob("*/kernel.ptx"))) == 2


def test_a_cache_that_cannot_be_written_is_a_warning(run, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    program = """
        import os, sys
        os.dup2(1, 2)
        kernel.warmup(np.float32, np.float32, 7, 2.5, BLOCK=64, grid=(1,))
        kernel.warmup(np.float32, np.float32, 7, 2.5, BLOCK=32, grid=(1,))
        print("went on")
    """
    output = run(program, TILEWRIGHT_TARGET="cuda:90", TILEWRIGHT_CACHE_DIR=str(blocked / "cache"))
    assert output.count("cannot be written") == 1
    assert "went on" in output


FAKE_TORCH = """
import ctypes, os, sys, types

class Tensor:
    '''A plain tensor on the GPU.'''
    dtype = "torch.float32"
    def __init__(self, address):
        self.address = address
    def data_ptr(self):
        print("data_ptr asked")
        return self.address
    def get_device(self):
        return 0

class Description(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int), ("device", ctypes.c_int), ("rank", ctypes.c_int),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]

@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Description))
def describe(tensor, out):
    if tensor.address % 16 == 4:
        # As torch refuses what has no memory that could be described. (What a callback raises is ignored.)
        return -1
    out[0] = Description(tensor.address - 16, 2, 0, 1, 2, 32, 1, None, None, 16)
    return 0

@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
def stream(device_type, device, out):
    out[0] = 0x77
    return 0

table = (ctypes.c_uint64 * 7)(MAJOR | 3 << 32, 0, 0, 0, 0, *(ctypes.cast(f, ctypes.c_void_p).value for f in (describe, stream)))
name = b"dlpack_exchange_api"
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
Tensor.__dlpack_c_exchange_api__ = new(ctypes.addressof(table), name, None)

torch = types.ModuleType("torch")
torch.Tensor, torch.nn, torch._C = Tensor, types.SimpleNamespace(Parameter=type("Parameter", (Tensor,), {})), types.SimpleNamespace()
torch._C._cuda_getDevice = lambda: 0
torch._C._cuda_getCurrentRawStream = lambda device: 0x55
sys.modules["torch"] = torch

kernel[(1,)](Tensor(0x10000), Tensor(ADDRESS), 7, 2.5, BLOCK=64)
print([l.split()[-1] for l in log() if l.startswith("launch")])
print(open(os.environ["FAKE_CUDA_LOG"]).read())
"""


@pytest.mark.parametrize(
    ("version", "address", "asked", "stream"),
    [(1, 0x20000, 0, "0x77"), (1, 0x20004, 1, "0x77"), (2, 0x20000, 2, "0x55")],
    ids=["described", "not_described", "another_version"],
)
def test_a_tensor_is_described_by_one_call_of_c(run, version, address, asked, stream):
    """By torch's table of DLPack functions where it has one; else, or where that refuses, by the tensor's methods."""
    output = run(FAKE_TORCH.replace("MAJOR", str(version)).replace("ADDRESS", hex(address)))
    assert output.count("data_ptr asked") == asked
    assert f"['{stream}']" in output
    assert "parameter 0 = 0x10000" in output and f"parameter 1 = {address:#x}" in output
