"""Kernels whose inner part is CUDA and whose loads and stores are the language's (``tests/tle/raw_workloads.py``, ``raw_matmul.py``), against the
same kernels written wholly in CUDA (``raw.cu``), whose inner part is the same code: results first, then times.

Both are compiled by NVRTC; the latter are launched by the driver, with no Python between.
"""

import argparse
import ctypes
import functools
import sys
from pathlib import Path

import timing
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tle"))

import raw_matmul
import raw_workloads
from peers import about
from results import OURS, Record, Result
from tolerance import close, poison

from tilewright.tle.raw.languages import _nvrtc
from tilewright.tle.raw.languages.cuda import _headers

HERE = Path(__file__).parent
DRIVER = ctypes.CDLL("libcuda.so.1")


def checked(status):
    assert status == 0, f"the driver's error {status}"


def cuda_module():
    """The kernels in CUDA, loaded."""
    major, minor = torch.cuda.get_device_capability()
    folders = [str(HERE.parent / "tle"), *_headers()]
    options = ["-std=c++17", *(f"-I{folder}" for folder in folders)]
    ptx = _nvrtc.compile((HERE / "raw.cu").read_text(), "raw.cu", f"{major}{minor}a", options)
    module = ctypes.c_void_p()
    checked(DRIVER.cuModuleLoadData(ctypes.byref(module), ptx.encode()))
    return module


def cuda_kernel(module, name):
    function = ctypes.c_void_p()
    checked(DRIVER.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
    return function


def argument(value):
    """A tensor, an integer, or what is passed by value, as the driver wants it."""
    if isinstance(value, torch.Tensor):
        return ctypes.c_void_p(value.data_ptr())
    return ctypes.c_int(value) if isinstance(value, int) else value


def launch(function, grid, args, threads=raw_workloads.THREADS, shared=0):
    """Launches a kernel with so many bytes of dynamic shared memory."""
    values = [argument(a) for a in args]
    array = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    checked(DRIVER.cuLaunchKernel(function, *grid, 1, threads, 1, 1, shared, stream, array, None))


def tensor_map(x):
    """A descriptor of a matrix of float16 as [K / 8, rows, 8], for blocks of [8, 128, 8]: aligned to 64 bytes, with what it lies in."""
    rows, k = x.shape
    room = (ctypes.c_char * 192)()
    made = (ctypes.c_char * 128).from_buffer(room, -ctypes.addressof(room) % 64)
    extents, strides = (ctypes.c_uint64 * 3)(8, rows, k // 8), (ctypes.c_uint64 * 2)(2 * k, 16)
    box, steps = (ctypes.c_uint32 * 3)(8, 128, 8), (ctypes.c_uint32 * 3)(1, 1, 1)
    float16, plain, lines_of_128_bytes = 6, 0, 2
    at = ctypes.c_void_p(x.data_ptr())
    checked(
        DRIVER.cuTensorMapEncodeTiled(
            made, float16, 3, at, extents, strides, box, steps, plain, plain, lines_of_128_bytes, plain
        )
    )
    return made


def matmul(record, module, size):
    """The two matmuls of ``size``³: the results, then the times."""
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
    ours, theirs = (torch.empty(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
    function, shared, programs = cuda_kernel(module, "matmul_kernel"), 131072, size // raw_matmul.BLOCK
    most_shared = 8
    checked(DRIVER.cuFuncSetAttribute(function, most_shared, shared))
    args = [tensor_map(a), tensor_map(b), theirs, size, size]
    run = functools.partial(raw_matmul.matmul, a, b, ours)
    run_cuda = functools.partial(launch, function, (programs, programs), args, 384, shared)
    for c in (ours, theirs):
        poison(c)
    compiled = run()
    run_cuda()
    want = a.float() @ b.float().T
    for c in (ours, theirs):
        close(c, want, 1e-3)
    report(record, f"matmul {size}³", run, run_cuda, compiled)


def report(record, name, run, run_cuda, compiled):
    result = Result("raw", name, name)
    result.counts = {"registers": compiled.n_regs, "spills": compiled.n_spills}
    timing.compare(record, result, {OURS: run, "wholly CUDA": run_cuda}, graph=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", help="the file of raw results to add to")
    parser.add_argument("--programs", type=int, default=16384)
    options = parser.parse_args()
    programs = options.programs
    torch.empty(1, device="cuda")
    record = Record(options.record, about(beside_triton=False))
    print(record.run.about)
    module = cuda_module()
    for name, kernel, inputs, outputs, others, check in raw_workloads.workloads(programs):
        given = [torch.from_numpy(x).cuda() for x in inputs]
        ours, theirs = ([torch.from_numpy(x).cuda() for x in outputs] for _ in range(2))
        function = cuda_kernel(module, kernel.fn.__name__)
        args, cuda_args = (*given, *ours, *others), (*given, *theirs, *others)
        run = functools.partial(kernel[(programs,)], *args, num_warps=raw_workloads.WARPS)
        run_cuda = functools.partial(launch, function, (programs, 1), cuda_args)
        for out in (*ours, *theirs):
            poison(out)
        compiled = run()
        run_cuda()
        torch.cuda.synchronize()
        for out in (ours, theirs):
            check(*inputs, *(x.cpu().numpy() for x in out))
        report(record, f"{name}, {programs} programs", run, run_cuda, compiled)
    for size in (512, 8192):
        matmul(record, module, size)


if __name__ == "__main__":
    main()
