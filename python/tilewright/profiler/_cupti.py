"""Where CUPTI may lie."""

from __future__ import annotations

import glob
import os
import sys

from .. import knobs

__all__ = ["places"]

# Names that the system's loader is asked for, the newest first.
_NAMES = ("libcupti.so.13", "libcupti.so.12", "libcupti.so")


def places(folder: str = "") -> tuple[list[str], bool]:
    """The files that may be CUPTI, the best first, and whether the user says which.

    :param folder: the only folder to look in; without one, ``knobs.proton.cupti_lib_dir`` is.
    """
    folder = folder or knobs.proton.cupti_lib_dir
    if folder:
        return _in([folder]) or [os.path.join(folder, _NAMES[-1])], True
    packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    wheels = [f"{path}/nvidia/{package}/lib" for path in packages for package in ("cu[1-9]*", "cuda_cupti")]
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    toolkits = [f"{home}/{below}" for home in homes if home for below in ("extras/CUPTI/lib64", "lib64")]
    return [*_in(wheels), *_NAMES, *_in(toolkits)], False


def _in(folders: list[str]) -> list[str]:
    # The shortest name is a link to what is behind it.
    found = (
        sorted(glob.glob(f"{folder}/libcupti.so*"), key=lambda path: (len(path), path)) for folder in folders
    )
    return list(dict.fromkeys(path for paths in found for path in paths))
