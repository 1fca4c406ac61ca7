"""CUDA C++: compiled to PTX by NVRTC in the process, or by ``nvcc`` or ``clang`` where ``compiler`` says so, and inlined.

The function is one of the device (``__device__``). What is written in the source, in what it includes, in the options and in the compiler
itself makes the PTX, which is part of the kernel's key in the cache.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from .._function import Code
from . import _nvrtc
from ._ptx_text import function_of

NAME, SUFFIX = "cuda", "cu"
OPTIONS = {"compiler": "nvrtc", "library": None, "options": (), "include": ()}
IN_REGISTERS = False
COMPILERS = ("nvrtc", "nvcc", "clang")
# C++'s own words for an instance of a template: the address of one has the compiler make it.
_INSTANCE = "\n__device__ auto* tilewright_instance = &{name};\n"


def check(options):
    """Refuses a compiler that there is none of, and lists that are none."""
    if options["compiler"] not in COMPILERS:
        raise ValueError(f"compiler is one of {', '.join(COMPILERS)}, not {options['compiler']!r}")
    for key, kinds in (("options", str), ("include", (str, os.PathLike))):
        given = options[key]
        if not isinstance(given, (list, tuple)) or not all(isinstance(x, kinds) for x in given):
            raise TypeError(f"`{key}` of a function in CUDA is a list of strings, not {given!r}")
    if options["library"] is not None:
        raise NotImplementedError("not supported yet: `library` of CUDA functions")


def compile(function, target):
    """PTX of the source."""
    text, file = function.text()
    name = function.options["extern_func_name"] or function.name
    if "<" in name:
        text += _INSTANCE.format(name=name)
    arch = _arch(target)
    folders = (*map(str, function.options["include"]), str(Path(file).parent), *_headers())
    options = (
        "-std=c++17",
        "-lineinfo",
        *(f"-I{folder}" for folder in folders),
        *function.options["options"],
    )
    run = {"nvrtc": _nvrtc.compile, "nvcc": _by_nvcc, "clang": _by_clang}[function.options["compiler"]]
    ptx = run(text, file, arch, options)
    symbol, parameters = function_of(ptx, name)
    return Code("ptx", symbol, ptx, parameters)


def _arch(target):
    """``90a`` for ``cuda:90``: instructions of that architecture alone can be had."""
    number = re.search(r"(\d+)a?$", target)[1]
    return f"{number}a" if int(number) >= 90 else number


@lru_cache
def _headers():
    """The folders of CUDA's own headers in Python's packages."""
    packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    patterns = ("nvidia/cu[1-9]*/include", "nvidia/cuda_runtime/include")
    return tuple(str(p) for path in packages for pattern in patterns for p in Path(path).glob(pattern))


def _by_nvcc(text, file, arch, options):
    program = os.environ.get("NVCC") or shutil.which("nvcc") or _packaged("nvcc")
    if program is None:
        raise RuntimeError("there is no nvcc: pip install nvidia-cuda-nvcc, or set NVCC")
    return _run([program, "-ptx", "-rdc=true", f"-arch=compute_{arch}", *options], text, file)


def _by_clang(text, file, arch, options):
    program = os.environ.get("CLANG") or shutil.which("clang++") or shutil.which("clang")
    if program is None:
        raise RuntimeError("there is no clang: install one that compiles CUDA, or set CLANG")
    flags = shlex.split(os.environ.get("CLANG_FLAGS", ""))
    options = [option for option in options if option != "-lineinfo"]
    command = [
        program,
        "-x",
        "cuda",
        "-O3",
        "-S",
        "--cuda-device-only",
        f"--cuda-gpu-arch=sm_{arch}",
        "-fgpu-rdc",
    ]
    return _run([*command, *flags, *options], text, file)


def _packaged(name):
    for folder in sys.path:
        for program in sorted(Path(folder).glob(f"nvidia/*/bin/{name}"), reverse=True):
            return str(program)
    return None


def _run(command, text, file):
    """Runs a compiler on a copy of the source whose messages name the original."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "source.cu"), Path(folder, "out.ptx")
        source.write_text(f'#line 1 "{file}"\n{text}')
        done = subprocess.run([*command, str(source), "-o", str(out)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(
                f"{Path(command[0]).name} refuses {file}:\n{done.stderr.strip() or done.stdout.strip()}"
            )
        return out.read_text()
