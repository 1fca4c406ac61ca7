"""C extensions that are compiled when they are needed, as backends and launchers of other projects do it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sysconfig
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from .. import knobs
from .cache import get_cache_manager

__all__ = ["compile_module_from_src"]


def compile_module_from_src(
    src: str,
    name: str,
    library_dirs: Sequence[str] | None = None,
    include_dirs: Sequence[str] | None = None,
    libraries: Sequence[str] | None = None,
    ccflags: Sequence[str] | None = None,
) -> ModuleType:
    """The Python module ``name`` made from C source; the cache keeps it by its source and the machine.

    :raises RuntimeError: there is no C compiler: ``CC`` names one, or ``knobs.build.impl`` is one
    :raises subprocess.CalledProcessError: the compiler refused the source
    """
    machine = (platform.machine(), platform.system(), *platform.architecture())
    key = hashlib.sha256("\0".join((src, *machine)).encode()).hexdigest()
    cache = get_cache_manager(key)
    file = f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    kept = cache.get_file(file)
    if kept is not None:
        try:
            return _load(name, kept)
        except (ImportError, OSError) as error:
            warnings.warn(f"{kept} is no module, and is made again: {error}", RuntimeWarning, stacklevel=2)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{name}.c"
        source.write_text(src)
        lists = (list(given or ()) for given in (library_dirs, include_dirs, libraries, ccflags))
        made = Path(_build(name, str(source), folder, *lists))
        kept = cache.put(made.read_bytes(), file, binary=True)
    return _load(name, kept)


def _build(
    name: str,
    src: str,
    srcdir: str,
    library_dirs: list[str],
    include_dirs: list[str],
    libraries: list[str],
    ccflags: list[str],
) -> str:
    """Compiles the file ``src`` to a shared library in ``srcdir``, whose path is the result."""
    if knobs.build.impl:
        return knobs.build.impl(name, src, srcdir, library_dirs, include_dirs, libraries)
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        raise RuntimeError(
            "no C compiler was found: install gcc or clang, or name one by the environment variable CC or by knobs.build.impl"
        )
    made = os.path.join(srcdir, f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}")
    headers = sysconfig.get_path("include")
    command = [compiler, src, "-O3", "-shared", "-fPIC", "-Wno-psabi", "-o", made]
    # A file with or without a version, as `libcuda.so.1`, is meant by its own name.
    command += [f"-l:{lib}" if re.search(r"\.(so(\.\d+)*|a)$", lib) else f"-l{lib}" for lib in libraries]
    command += [f"-L{folder}" for folder in library_dirs]
    command += [
        f"-I{folder}" for folder in (*include_dirs, srcdir, headers, *knobs.build.backend_dirs) if folder
    ]
    subprocess.run([*command, *ccflags], check=True, stdout=subprocess.DEVNULL)
    return made


def _load(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
