"""CUDA C++: compiled to PTX by NVRTC in the process, or by ``nvcc`` or ``clang`` where ``compiler`` says so, and inlined.

The function is one of the device (``__device__``). With a ``library`` of LTO-IR, or ``link="nvjitlink"``, it is compiled to LTO-IR, and nvJitLink makes the
PTX of both as one program. What is written in the source, in what it includes, in libraries, in the options and in the compilers
themselves makes the PTX, which is part of the kernel's key in the cache.
"""

import inspect
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
from . import _nvjitlink, _nvrtc
from ._ptx_text import function_of, joined

NAME, SUFFIX = "cuda", "cu"
OPTIONS = {"compiler": "nvrtc", "library": (), "link": None, "options": (), "include": ()}
IN_REGISTERS = False
COMPILERS = ("nvrtc", "nvcc", "clang")
# C++'s own words for an instance of a template: the address of one has the compiler make it.
_INSTANCE = "\n__device__ auto* tilewright_instance = &{name};\n"


# What is called is there for the linker, which would leave it out otherwise.
_KEPT = '\nextern "C" __global__ void tilewright_kept(void** at) {{ *at = (void*)&{name}; }}\n'
# What the driver has, and no library.
_SYSTEM = ("vprintf", "__assertfail", "malloc", "free")


def check(options):
    """Refuses a compiler that there is none of, and lists that are none."""
    if options["compiler"] not in COMPILERS:
        raise ValueError(f"compiler is one of {', '.join(COMPILERS)}, not {options['compiler']!r}")
    if isinstance(options["library"], (str, os.PathLike)):
        options["library"] = [options["library"]]
    for key, kinds in (
        ("options", str),
        ("include", (str, os.PathLike)),
        ("library", (str, os.PathLike)),
    ):
        given = options[key]
        if not isinstance(given, (list, tuple)) or not all(isinstance(x, kinds) for x in given):
            raise TypeError(f"`{key}` of a function in CUDA is a list of strings, not {given!r}")
    if options["link"] not in (None, "nvjitlink"):
        raise ValueError(f'`link` of a function in CUDA is "nvjitlink", not {options["link"]!r}')
    for path in options["library"]:
        if Path(path).suffix not in (".ptx", *_nvjitlink.KINDS):
            there = ", ".join((".ptx", *_nvjitlink.KINDS))
            raise ValueError(f"a library of CUDA functions ends in one of {there}, not {str(path)!r}")
    if _is_linked(options) and options["compiler"] != "nvrtc":
        raise ValueError(
            f"LTO-IR for nvJitLink is made by compiler='nvrtc', not {options['compiler']!r}: leave `compiler` out"
        )


def _is_linked(options):
    """Whether nvJitLink makes the PTX."""
    return options["link"] is not None or any(
        Path(path).suffix in _nvjitlink.KINDS for path in options["library"]
    )


def compile(function, target):
    """PTX of the source."""
    text, file = function.text()
    name = function.options["extern_func_name"] or function.name
    linked = _is_linked(function.options)
    if "<" in name and not linked:
        text += _INSTANCE.format(name=name)
    arch = _arch(target)
    folders = (*map(str, function.options["include"]), str(Path(file).parent), *_headers())
    options = (
        "-std=c++17",
        "-lineinfo",
        *(f"-I{folder}" for folder in folders),
        *function.options["options"],
    )
    libraries = [_library(function, path) for path in function.options["library"]]
    if linked:
        code = _nvrtc.compile(text + _KEPT.format(name=name), file, arch, options, lto=True)
        inputs = [
            (data, _nvjitlink.KINDS[path.suffix], str(path))
            for path, data in libraries
            if path.suffix != ".ptx"
        ]
        ptx = _nvjitlink.link([(code, _nvjitlink.KINDS[".ltoir"], file), *inputs], arch, f"`{function.name}`")
    else:
        run = {"nvrtc": _nvrtc.compile, "nvcc": _by_nvcc, "clang": _by_clang}[function.options["compiler"]]
        ptx = run(text, file, arch, options)
    ptx = joined(ptx, [data.decode() for path, data in libraries if path.suffix == ".ptx"])
    missing = [
        symbol
        for symbol in re.findall(r"\.extern\s+\.func\s*(?:\([^)]*\)\s*)?([\w$]+)", ptx)
        if symbol not in _SYSTEM
    ]
    if missing:
        raise ValueError(
            f"{file} calls {', '.join(missing)}, which no `library` of `{function.name}` defines"
        )
    symbol, parameters = function_of(ptx, name)
    return Code("ptx", symbol, ptx, parameters)


def _library(function, path):
    """The path of a library, from the folder of the Python file on, and its bytes."""
    path = Path(inspect.getsourcefile(function.fn) or ".").parent / path
    if not path.is_file():
        raise FileNotFoundError(f"the library {path} of `{function.name}` is not there")
    return path, path.read_bytes()


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
