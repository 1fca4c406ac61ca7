"""`make bench-gpu`: correctness, launch time, compile time and speed on a GPU, against Triton in the same process.

`make bench-gpu ARGS='products speed'` runs only those parts. Raw results are added to bench/results/<date>-<gpu>.json, from which
`python scripts/performance.py` writes the tables.
"""

import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "gpu"))

import check
import compile_time
import launch
import memory_bound
import products
import speed
import torch
from results import FOLDER

PARTS = {
    "launch": launch.main,
    "compile_time": compile_time.main,
    "speed": speed.main,
    "products": products.main,
    "memory_bound": memory_bound.main,
}

RECORDED = ("speed", "products", "memory_bound")

if __name__ == "__main__":
    parts = sys.argv[1:] or list(PARTS)
    if unknown := [p for p in parts if p not in PARTS]:
        sys.exit(f"unknown parts: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    gpu = re.search(r"[A-Z]+\d+\w*", torch.cuda.get_device_name())[0].lower()
    record = FOLDER / f"{time.strftime('%Y-%m-%d')}-{gpu}.json"
    del sys.argv[1:]
    if check.main():
        sys.exit("wrong results: nothing is timed")
    for part in parts:
        sys.argv[1:] = ["--record", str(record)] if part in RECORDED else []
        PARTS[part]()
