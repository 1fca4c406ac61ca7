"""``python -m tilewright.as_triton program.py …``: runs a program that imports ``triton``."""

from __future__ import annotations

import io
import os
import runpy
import sys
from types import ModuleType

import tilewright.as_triton  # noqa: F401  (has `import triton` give Tilewright)

USAGE = """usage: python -m tilewright.as_triton program.py [argument …]
       python -m tilewright.as_triton -m module [argument …]
       python -m tilewright.as_triton -c text [argument …]

Runs a Python program in which `triton` is Tilewright."""


def main(arguments: list[str]) -> int:
    """Runs the program that the arguments name, as ``python`` would."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    first, rest = arguments[0], arguments[1:]
    if first in ("-m", "-c"):
        if not rest:
            print(f"python -m tilewright.as_triton: {first} needs an argument\n{USAGE}", file=sys.stderr)
            return 2
        sys.argv = [first, *rest[1:]]
        if first == "-m":
            # As Python does: the folder one stands in is searched, which `-m` has put there already.
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = ""
            _run(rest[0], "<string>", None)
    elif first.startswith("-") and first != "-":
        print(f"python -m tilewright.as_triton: there is no option {first}\n{USAGE}", file=sys.stderr)
        return 2
    else:
        sys.argv = arguments
        if first == "-":
            sys.path[0] = ""
            _run(sys.stdin.read(), "<stdin>", None)
        elif os.path.isfile(first) and not first.endswith((".zip", ".pyz", ".pyc")):
            sys.path[0] = os.path.dirname(os.path.realpath(first))
            with io.open_code(first) as file:
                source = file.read()
            _run(source, first, os.path.abspath(first))
        elif os.path.exists(first):
            # A folder or an archive with a `__main__`; runpy puts it on the path.
            del sys.path[0]
            runpy.run_path(first, run_name="__main__")
        else:
            print(f"python -m tilewright.as_triton: there is no file {first}", file=sys.stderr)
            return 2
    return 0


def _run(source: str | bytes, name: str, file: str | None) -> None:
    # A module of its own that stays: classes of the program are pickled, and processes started, by this name.
    module = ModuleType("__main__")
    vars(module).update(__file__=file, __cached__=None) if file else None
    module.__builtins__ = __builtins__
    sys.modules["__main__"] = module
    exec(compile(source, name, "exec", dont_inherit=True), vars(module))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
