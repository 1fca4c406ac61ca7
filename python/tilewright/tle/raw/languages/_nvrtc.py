"""NVRTC, NVIDIA's compiler of CUDA as a library, through ``ctypes``: six of its functions are all that is needed, for which a binding as large
as ``cuda-bindings`` is too much. It comes with torch, with the toolkit, and as the package ``nvidia-cuda-nvrtc``."""

import ctypes
import ctypes.util
import sys
from functools import lru_cache
from pathlib import Path

_PATTERNS = (
    "nvidia/cu[1-9]*/lib/libnvrtc.so.*",
    "nvidia/cuda_nvrtc/lib/libnvrtc.so.*",
)


@lru_cache
def _library():
    packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    found = [str(p) for path in packages for pattern in _PATTERNS for p in sorted(Path(path).glob(pattern))]
    found = [path for path in found if "alt" not in path]
    for path in (*found, ctypes.util.find_library("nvrtc"), "/usr/local/cuda/lib64/libnvrtc.so"):
        if path is None:
            continue
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise RuntimeError(
        "there is no NVRTC, which compiles CUDA: pip install nvidia-cuda-nvrtc, or give compiler='nvcc'"
    )


def _check(status):
    if status:
        library = _library()
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise RuntimeError(f"NVRTC: {library.nvrtcGetErrorString(status).decode()}")


def _text(program, what):
    library, size = _library(), ctypes.c_size_t()
    _check(getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(getattr(library, f"nvrtcGet{what}")(program, buffer))
    return buffer.value.decode(errors="replace")


def compile(text, file, arch, options):
    """PTX of CUDA source, in which functions of the device stay.

    :raises RuntimeError: NVRTC refuses it; its messages name the file and line.
    """
    library = _library()
    options = ["-rdc=true", f"--gpu-architecture=compute_{arch}", *options]
    program = ctypes.c_void_p()
    _check(library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), file.encode(), 0, None, None))
    try:
        array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = library.nvrtcCompileProgram(program, len(options), array)
        if status:
            raise RuntimeError(f"NVRTC refuses {file}:\n{_text(program, 'ProgramLog').strip() or status}")
        return _text(program, "PTX")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
