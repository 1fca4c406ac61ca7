"""Host time of one launch: empty kernels with 4 and with 20 run-time arguments, next to Triton's on the same calls and to the
driver's own (`cuLaunchKernel` called through ctypes, which adds what a call of ctypes takes)."""

import argparse
import ctypes
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from peers import about, load
from results import OURS, TRITON, Record, Result, times

SOURCE = """
import {package} as triton
import {package}.language as tl


@triton.jit
def empty4(x_ptr, y_ptr, n, alpha):
    pass


@triton.jit
def empty20(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t):
    pass
"""


def kernels(package: str):
    """The same source under one of the two packages."""
    folder = Path(tempfile.mkdtemp())
    (folder / f"empty_{package}.py").write_text(SOURCE.format(package=package))
    sys.path.insert(0, str(folder))
    return __import__(f"empty_{package}")


def microseconds(call, calls: int = 200) -> float:
    """Host time of a call in µs: the median over rounds, the device drained between them."""
    for _ in range(50):
        call()
    torch.cuda.synchronize()
    rounds = []
    for _ in range(15):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        rounds.append((time.perf_counter() - start) / calls * 1e6)
        torch.cuda.synchronize()
    return statistics.median(rounds)


def launcher(kernel, arguments):
    """A call as programs write it."""
    grid = (1,)
    return lambda: kernel[grid](*arguments)


def through_ctypes(compiled, arguments):
    """A call of the driver alone, with everything at hand that it takes."""
    launch = ctypes.CDLL("libcuda.so.1").cuLaunchKernel
    uint, pointer = ctypes.c_uint, ctypes.c_void_p
    launch.argtypes = [pointer, uint, uint, uint, uint, uint, uint, uint, pointer, pointer, pointer]
    cells = [ctypes.c_uint64(a.data_ptr() if hasattr(a, "data_ptr") else int(a)) for a in arguments]
    params = (ctypes.c_void_p * len(cells))(*(ctypes.addressof(c) for c in cells))
    stream = torch.cuda.current_stream().cuda_stream
    given = (compiled.function, 1, 1, 1, 128, 1, 1, 0, stream, ctypes.addressof(params), None)

    def call():
        # The driver reads the cells through `params`: both must live as long as this.
        assert launch(*given) == 0 and params and cells

    return call


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", help="the file of raw results to add to")
    record = Record(parser.parse_args().record, about())
    print(record.run.about)
    x, y = torch.zeros(1024, device="cuda"), torch.zeros(1024, device="cuda", dtype=torch.float16)
    arguments = {"empty4": (x, y, 1000, 0.5), "empty20": (x, y) * 5 + tuple(range(1000, 1010))}
    modules = {OURS: kernels("tilewright"), TRITON: kernels("triton")}
    for kernel, given in arguments.items():
        calls = {name: launcher(getattr(module, kernel), given) for name, module in modules.items()}
        calls["`cuLaunchKernel` through ctypes"] = through_ctypes(calls[OURS](), given)
        case = f"{len(given)} run-time arguments"
        result = Result("launch", case, case, laps={name: [] for name in calls})
        for _ in range(5):
            for name, call in calls.items():
                result.laps[name].append(microseconds(call) / 1e3)
        print(times(record.add(result)))
    graph = torch.cuda.CUDAGraph()
    out = torch.zeros(4096, device="cuda")
    vector_add = load("vector_add")
    vector_add.add(out, out + 1, out)
    with torch.cuda.graph(graph):
        vector_add.add(out, out, out)
    out.fill_(3)
    graph.replay()
    torch.cuda.synchronize()
    assert out.eq(6).all()
    print("graph capture ok")


if __name__ == "__main__":
    main()
