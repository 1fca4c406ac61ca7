"""NVIDIA's compilers as libraries, through ``ctypes``: a handful of their functions is all that is needed, for which a binding as large as
``cuda-bindings`` is too much. They come with torch, with the toolkit, and as packages."""

import ctypes
import ctypes.util
import sys
from functools import lru_cache
from pathlib import Path


@lru_cache
def load(name, folder):
    """The library ``lib{name}``: from Python's packages (``folder`` is where older ones have it), else from the system; ``None`` where there is none."""
    packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    patterns = (f"nvidia/cu[1-9]*/lib/lib{name}.so.*", f"nvidia/{folder}/lib/lib{name}.so.*")
    found = [str(p) for path in packages for pattern in patterns for p in sorted(Path(path).glob(pattern))]
    found = [path for path in found if "alt" not in path]
    for path in (*found, ctypes.util.find_library(name), f"/usr/local/cuda/lib64/lib{name}.so"):
        if path is None:
            continue
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None
