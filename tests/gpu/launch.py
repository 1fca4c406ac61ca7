"""Host time of one launch: an empty kernel with four run-time arguments, next to Triton's on the same call."""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from peers import load, versions

SOURCE = """
import {package} as triton
import {package}.language as tl


@triton.jit
def empty(x_ptr, y_ptr, n, alpha):
    pass
"""


def kernel(package: str):
    """The same source under one of the two packages."""
    folder = Path(tempfile.mkdtemp())
    (folder / f"empty_{package}.py").write_text(SOURCE.format(package=package))
    sys.path.insert(0, str(folder))
    return __import__(f"empty_{package}").empty


def microseconds(k, x, y, calls: int = 2000) -> float:
    """Host time of a call in µs: the median over rounds, the device drained between them."""
    grid = (1,)
    for _ in range(50):
        k[grid](x, y, 1000, 0.5)
    torch.cuda.synchronize()
    rounds = []
    for _ in range(15):
        start = time.perf_counter()
        for _ in range(calls // 10):
            k[grid](x, y, 1000, 0.5)
        rounds.append((time.perf_counter() - start) / (calls // 10) * 1e6)
        torch.cuda.synchronize()
    return statistics.median(rounds)


def main():
    print(versions())
    x, y = torch.zeros(1024, device="cuda"), torch.zeros(1024, device="cuda", dtype=torch.float16)
    kernels = {"tilewright": kernel("tilewright"), "triton": kernel("triton")}
    times = {name: [] for name in kernels}
    for _ in range(3):
        for name, k in kernels.items():
            times[name].append(microseconds(k, x, y))
    for name, t in times.items():
        print(f"launch {name:12} {statistics.median(t):6.2f} us")
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
