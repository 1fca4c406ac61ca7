"""`make bench-gpu`: correctness, launch time, compile time and speed on a GPU, against Triton in the same process.

`make bench-gpu ARGS='products speed'` runs only those parts.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "gpu"))

import check
import compile_time
import launch
import memory_bound
import products
import speed

PARTS = {
    "launch": launch.main,
    "compile_time": compile_time.main,
    "speed": speed.main,
    "products": products.main,
    "memory_bound": memory_bound.main,
}

if __name__ == "__main__":
    parts = sys.argv[1:] or list(PARTS)
    if unknown := [p for p in parts if p not in PARTS]:
        sys.exit(f"unknown parts: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    del sys.argv[1:]
    if check.main():
        sys.exit("wrong results: nothing is timed")
    for part in parts:
        PARTS[part]()
