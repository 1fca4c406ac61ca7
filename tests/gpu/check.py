"""Runs every example on the GPU and says which pass."""

import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from peers import EXAMPLES, Device, load, versions

NAMES = sorted(p.stem for p in EXAMPLES.glob("*.py") if "def example(" in p.read_text())


def main() -> int:
    print(versions())
    failed = []
    for name in sys.argv[1:] or NAMES:
        try:
            load(name).example(Device(cuda=True))
            print(f"{name:20} ok", flush=True)
        except Exception:
            failed.append(name)
            print(f"{name:20} FAILED\n{traceback.format_exc(limit=-4)[-1500:]}", flush=True)
    print(f"{len(failed)} failed: {failed}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
