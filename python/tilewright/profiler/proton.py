"""``python -m tilewright.profiler.proton [options] program.py argument …``: profiles a whole program, or pytest."""

from __future__ import annotations

import argparse
import os
import runpy
import sys

from .flags import flags
from .profile import _finalize, _start

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tilewright.profiler.proton",
        description="Profiles a program, or pytest. What it says of sessions itself (start, finalize) is left out.",
    )
    parser.add_argument("-n", "--name", help="the profile's file, without its ending (proton)")
    parser.add_argument("-b", "--backend", choices=["cupti", "host", "roctracer", "instrumentation"])
    parser.add_argument(
        "-c", "--context", default="shadow", choices=["shadow", "python"], help="what paths are made of"
    )
    parser.add_argument("-m", "--mode", help="a mode of the backend")
    parser.add_argument("-d", "--data", default="tree", choices=["tree", "trace"])
    parser.add_argument(
        "-k", "--hook", choices=["triton"], help="names and metrics from @jit(launch_metadata=…)"
    )
    parser.add_argument("target_args", nargs=argparse.REMAINDER, metavar="program.py | pytest …")
    return parser


def _run(program: str, arguments: list[str]) -> int:
    """Runs the program and gives its exit status."""
    before = sys.argv, list(sys.path)
    sys.argv = [program, *arguments]
    try:
        if os.path.basename(program) == "pytest":
            import pytest

            return int(pytest.main(arguments))
        sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
        runpy.run_path(program, run_name="__main__")
        return 0
    except SystemExit as exit:
        if exit.code is None or isinstance(exit.code, int):
            return exit.code or 0
        print(exit.code, file=sys.stderr)
        return 1
    finally:
        sys.argv, sys.path[:] = before


def main(arguments: list[str] | None = None) -> int:
    """Profiles the program that the arguments name, and gives its exit status. The profile is written also when it fails."""
    parser = _parser()
    args = parser.parse_args(arguments)
    if not args.target_args:
        parser.error("there is no program to run")
    program, *rest = args.target_args
    if os.path.basename(program) != "pytest" and not os.path.exists(program):
        parser.error(f"there is no file {program}")
    _start(args.name, args.context, args.data, args.backend, args.mode, args.hook)
    flags.command_line = True
    try:
        return _run(program, rest)
    finally:
        flags.command_line = False
        _finalize(None, "")


if __name__ == "__main__":
    sys.exit(main())
