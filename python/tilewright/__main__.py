"""``python -m tilewright`` and the ``tilewright`` command: compile, inspect, run passes, simulate PTX."""

import signal
import sys

from ._tilewright import command


def main() -> int:
    # No Python runs below, so that nothing would look at the flag that Python's own handler sets.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return command(["tilewright", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
