"""The CPU executor against Triton's interpreter (TRITON_INTERPRET=1) on the same machine, same sources.

Run as ``python interp_speed.py`` (ours) and ``TRITON_INTERPRET=1 python interp_speed.py triton``.
"""

import sys
import time

import numpy as np


def measure(name, run, check):
    run()
    check()
    times = []
    for _ in range(3 if "triton" in sys.argv else 15):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    print(f"{name:28} {sorted(times)[len(times) // 2] * 1e3:10.3f} ms", flush=True)


def main():
    from peers import load, load_for_triton

    if "triton" in sys.argv:
        import torch

        pick, put = load_for_triton, torch.from_numpy
    else:
        pick, put = load, lambda x: x
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(1 << 20, dtype=np.float32) for _ in range(2))
    out = np.zeros_like(x)
    module = pick("vector_add")
    measure("add 1M, blocks of 1024", lambda: module.add(put(x), put(y), put(out)), lambda: np.testing.assert_array_equal(out, x + y))
    x = rng.standard_normal((1024, 1024), dtype=np.float32)
    soft = np.zeros_like(x)
    module2 = pick("softmax")
    measure("softmax 1024x1024", lambda: module2.softmax(put(x), put(soft)),
            lambda: np.testing.assert_allclose(soft, module2.reference(x), rtol=1e-4, atol=1e-6))  # fmt: skip
    a, b = (rng.standard_normal((512, 512)).astype(np.float16) for _ in range(2))
    c = np.zeros((512, 512), np.float16)
    module3 = pick("matmul")
    want = a.astype(np.float32) @ b.astype(np.float32)
    measure("matmul 512^3 fp16, 64x64x32", lambda: module3.matmul(put(a), put(b), put(c), (64, 64, 32)),
            lambda: np.testing.assert_allclose(c, want, rtol=1e-2, atol=1e-1))  # fmt: skip


if __name__ == "__main__":
    main()
