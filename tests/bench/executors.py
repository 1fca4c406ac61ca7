"""The CPU executor and the PTX simulator on three kernels, medians.

``python executors.py`` runs ours. ``TRITON_INTERPRET=1 python executors.py triton`` runs the same sources in Triton's
interpreter, for the ratio (needs torch and triton).
"""

import os
import statistics
import sys
import time

import numpy as np
from peers import load, load_for_triton


def cases(get, put):
    """Name, what to run, and a check."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(1 << 20, dtype=np.float32) for _ in range(2))
    total = np.zeros_like(x)
    add = get("vector_add").add
    yield (
        "add 1M fp32, blocks of 1024",
        lambda: add(put(x), put(y), put(total)),
        lambda: np.testing.assert_array_equal(total, x + y),
    )
    rows = rng.standard_normal((1024, 1024), dtype=np.float32)
    out = np.zeros_like(rows)
    softmax = get("softmax")
    yield (
        "softmax 1024x1024 fp32",
        lambda: softmax.softmax(put(rows), put(out)),
        lambda: np.testing.assert_allclose(out, softmax.reference(rows), rtol=1e-4, atol=1e-6),
    )
    a, b = (rng.standard_normal((512, 512)).astype(np.float16) for _ in range(2))
    c = np.zeros((512, 512), np.float16)
    matmul = get("matmul").matmul
    yield (
        "matmul 512^3 fp16, 64x64x32",
        lambda: matmul(put(a), put(b), put(c), (64, 64, 32)),
        lambda: np.testing.assert_allclose(
            c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-2, atol=1e-1
        ),
    )


def median_ms(run, runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def main(package: str = "tilewright") -> None:
    if package == "triton":
        import torch

        for name, run, check in cases(load_for_triton, torch.from_numpy):
            ms = median_ms(run, 3)
            check()
            print(f"{name:32} {ms:10.3f} ms  Triton's interpreter", flush=True)
        return
    for backend in ("interp", "ptxsim"):
        os.environ["TILEWRIGHT_BACKEND"] = backend
        for name, run, check in cases(load, lambda x: x):
            run()
            check()
            ms = median_ms(run, 20 if backend == "interp" else 3)
            print(f"{name:32} {ms:10.3f} ms  {backend}, {os.cpu_count()} cores", flush=True)
    del os.environ["TILEWRIGHT_BACKEND"]


if __name__ == "__main__":
    main(*sys.argv[1:])
