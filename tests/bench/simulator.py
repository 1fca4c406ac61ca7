"""How fast the PTX simulator runs the softmax kernel on one core: thread-instructions a second, medians."""

import os
import statistics
import time

import numpy as np
from peers import load

from tilewright.testing import simulate_ptx

ROWS, COLUMNS, WARPS, RUNS = 4096, 1024, 4, 5


def main() -> None:
    softmax = load("softmax")
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), dtype=np.float32)
    out = np.zeros_like(x)
    given = [COLUMNS, COLUMNS, COLUMNS]
    os.environ["TILEWRIGHT_BACKEND"] = "ptxsim"
    kernel = softmax.softmax_kernel[(1,)](out, x, *given, BLOCK=COLUMNS, num_warps=WARPS)
    del os.environ["TILEWRIGHT_BACKEND"]
    for checks in (True, False):
        speeds = []
        for _ in range(RUNS):
            start = time.perf_counter()
            report = simulate_ptx(
                kernel.asm["ptx"],
                kernel.name,
                ROWS,
                32 * WARPS,
                [out, x, *given],
                shared=kernel.metadata.shared,
                checks=checks,
                threads=1,
            )
            seconds = time.perf_counter() - start
            assert not report["findings"], report["findings"]
            speeds.append(report["counters"]["thread_instructions"] / seconds / 1e6)
        np.testing.assert_allclose(out, softmax.reference(x), rtol=1e-4, atol=1e-6)
        print(
            f"softmax {ROWS}x{COLUMNS} fp32, PTX simulator, one core, checks {'on' if checks else 'off'}: "
            f"{statistics.median(speeds):6.1f} million thread-instructions a second",
            flush=True,
        )


if __name__ == "__main__":
    main()
