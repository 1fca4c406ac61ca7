"""Kernels whose inner part is CUDA and whose loads and stores are the language's (``tests/tle/raw_workloads.py``), against the same kernels
written wholly in CUDA (``raw.cu``), whose inner part is the same code: results first, then times.

Both are compiled by NVRTC; the latter are launched by the driver, with no Python between.
"""

import ctypes
import functools
import sys
from pathlib import Path

import timing
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tle"))

import raw_workloads

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


def launch(function, programs, args):
    """Launches a kernel on tensors and integers."""
    values = [ctypes.c_void_p(a.data_ptr()) if isinstance(a, torch.Tensor) else ctypes.c_int(a) for a in args]
    array = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    checked(
        DRIVER.cuLaunchKernel(function, programs, 1, 1, raw_workloads.THREADS, 1, 1, 0, stream, array, None)
    )


def main(programs):
    torch.empty(1, device="cuda")
    module = cuda_module()
    print(
        f"{torch.cuda.get_device_name()}, {programs} programs; ms, the raw kernel beside the one wholly in CUDA"
    )
    for name, kernel, inputs, outputs, others, check in raw_workloads.workloads(programs):
        given = [torch.from_numpy(x).cuda() for x in inputs]
        ours, theirs = ([torch.from_numpy(x).cuda() for x in outputs] for _ in range(2))
        function = cuda_kernel(module, kernel.fn.__name__)
        args, cuda_args = (*given, *ours, *others), (*given, *theirs, *others)
        run = functools.partial(kernel[(programs,)], *args, num_warps=raw_workloads.WARPS)
        run_cuda = functools.partial(launch, function, programs, cuda_args)
        compiled = run()
        run_cuda()
        torch.cuda.synchronize()
        for out in (ours, theirs):
            check(*inputs, *(x.cpu().numpy() for x in out))
        times = timing.race({"raw": run, "cuda": run_cuda})
        print(
            f"{name:24} {times['raw']:.4f} {times['cuda']:.4f}  {times['raw'] / times['cuda']:.3f}"
            f"  registers {compiled.n_regs}, spills {compiled.n_spills}",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 16384)
