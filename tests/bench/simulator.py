"""How fast the PTX simulator runs the softmax kernel on one core: thread-instructions a second, medians.

``python simulator.py [--record FILE]``
"""

import argparse
import os
import time

import numpy as np
from peers import load, machine
from results import SIMULATOR, Record, Result

from tilewright.testing import simulate_ptx

ROWS, COLUMNS, WARPS, RUNS = 4096, 1024, 4, 5


def millions(result: Result) -> float:
    """Thread-instructions a second, in millions."""
    return result.amount / result.ms(SIMULATOR) * 1e-3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", help="the file of raw results to add to")
    options, _ = parser.parse_known_args()
    record = Record(options.record, machine())
    softmax = load("softmax")
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), dtype=np.float32)
    out = np.zeros_like(x)
    given = [COLUMNS, COLUMNS, COLUMNS]
    os.environ["TILEWRIGHT_BACKEND"] = "ptxsim"
    kernel = softmax.softmax_kernel[(1,)](out, x, *given, BLOCK=COLUMNS, num_warps=WARPS)
    del os.environ["TILEWRIGHT_BACKEND"]
    for checks in (True, False):
        case = f"softmax {ROWS}×{COLUMNS} fp32, {WARPS} warps, checks {'on' if checks else 'off'}"
        result = Result("simulator", case, case, "Ginstr/s")
        result.laps[SIMULATOR] = []
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
            result.laps[SIMULATOR].append(round((time.perf_counter() - start) * 1e3, 3))
            assert not report["findings"], report["findings"]
            result.amount = report["counters"]["thread_instructions"]
        np.testing.assert_allclose(out, softmax.reference(x), rtol=1e-4, atol=1e-6)
        record.add(result)
        print(f"{case}: {millions(result):6.1f} million thread-instructions a second", flush=True)


if __name__ == "__main__":
    main()
