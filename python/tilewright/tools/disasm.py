"""The instructions of a cubin as text."""

from __future__ import annotations

import os
import subprocess
import tempfile

from .. import knobs

__all__ = ["extract", "get_sass", "path_to_cuobjdump"]


def path_to_cuobjdump() -> str:
    """Where ``cuobjdump`` is."""
    return knobs.nvidia.cuobjdump.path


def get_sass(cubin_asm: bytes, fun: str | None = None) -> str:
    """The instructions of a cubin, or of one function in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.cubin")
        with open(path, "wb") as file:
            file.write(cubin_asm)
        return extract(path, fun)


def extract(file_path: str, fun: str | None = None) -> str:
    """The instructions of a file with a cubin, or of one function in it: lines of address and instruction under its name."""
    command = [path_to_cuobjdump(), *(["-fun", fun] if fun else []), "-sass", file_path]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = []
    for line in said.splitlines():
        line = line.strip()
        if line.startswith("Function :"):
            lines.append(f"Function:{line.removeprefix('Function :').strip()}")
        elif line.startswith("/*") and ";" in line:
            address, _, rest = line.removeprefix("/*").partition("*/")
            lines.append(f"{address}  {rest.partition(';')[0].strip()};")
    return "".join(f"{line}\n" for line in lines)
