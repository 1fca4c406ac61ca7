"""The CPU executor and the PTX simulator on three kernels, medians.

``python executors.py [--record FILE] [--triton PYTHON]``: of Triton's interpreter, on the same sources, where the Python of an
environment is given that has torch and Triton (and a NumPy that its interpreter can use).
"""

import argparse
import json
import os
import subprocess
import time

import numpy as np
from peers import load, load_for_triton, machine
from results import OURS, SIMULATOR, TRITON, Record, Result


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


def laps_ms(run, rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(round((time.perf_counter() - start) * 1e3, 4))
    return times


def in_triton() -> None:
    """In a process of its own: the laps of Triton's interpreter by case, as JSON."""
    import torch
    import triton

    found = {}
    for name, run, check in cases(load_for_triton, torch.from_numpy):
        found[name] = laps_ms(run, 3)
        check()
    print(json.dumps({"triton": triton.__version__, "laps": found}))


def of_triton(python: str) -> dict:
    """What `in_triton` says in another environment."""
    command = [python, __file__, "--in-triton"]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | {"TRITON_INTERPRET": "1"})  # fmt: skip
    return json.loads(said.stdout.splitlines()[-1])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--record", help="the file of raw results to add to")
    parser.add_argument(
        "--triton",
        metavar="PYTHON",
        help="the Python of an environment with torch and Triton, to compare with",
    )
    parser.add_argument("--in-triton", action="store_true", help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args(arguments)
    if options.in_triton:
        in_triton()
        return
    peer = of_triton(options.triton) if options.triton else {}
    record = Record(options.record, machine() | {k: v for k, v in peer.items() if k == "triton"})
    found: dict[str, Result] = {}
    for backend, who, rounds in (("interp", OURS, 20), ("ptxsim", SIMULATOR, 3)):
        os.environ["TILEWRIGHT_BACKEND"] = backend
        for name, run, check in cases(load, lambda x: x):
            run()
            check()
            result = found.setdefault(name, Result("executor", name, name, "ms"))
            result.laps[who] = laps_ms(run, rounds)
            print(f"{name:32} {result.ms(who):10.3f} ms  {backend}", flush=True)
    del os.environ["TILEWRIGHT_BACKEND"]
    for name, result in found.items():
        if peer:
            result.laps[TRITON] = peer["laps"][name]
            print(f"{name:32} {result.ms(TRITON):10.3f} ms  Triton's interpreter", flush=True)
        record.add(result)


if __name__ == "__main__":
    main()
