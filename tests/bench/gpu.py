"""`make bench-gpu`: correctness, launch time, compile time and speed on a GPU, against Triton in the same process."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "gpu"))

import check
import compile_time
import launch
import speed

if __name__ == "__main__":
    if check.main():
        sys.exit("wrong results: nothing is timed")
    launch.main()
    compile_time.main()
    speed.main()
