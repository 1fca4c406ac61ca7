"""NVRTC, NVIDIA's compiler of CUDA as a library."""

import ctypes

from . import _libraries


def _library():
    library = _libraries.load("nvrtc", "cuda_nvrtc")
    if library is None:
        raise RuntimeError(
            "there is no NVRTC, which compiles CUDA: pip install nvidia-cuda-nvrtc, or give compiler='nvcc'"
        )
    return library


def _check(status):
    if status:
        library = _library()
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise RuntimeError(f"NVRTC: {library.nvrtcGetErrorString(status).decode()}")


def _bytes(program, what):
    library, size = _library(), ctypes.c_size_t()
    _check(getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(getattr(library, f"nvrtcGet{what}")(program, buffer))
    return buffer.raw


def _text(program, what):
    return _bytes(program, what).split(b"\0")[0].decode(errors="replace")


def compile(text, file, arch, options, lto=False):
    """PTX of CUDA source, in which functions of the device stay; with ``lto`` the bytes of its LTO-IR.

    :raises RuntimeError: NVRTC refuses it; its messages name the file and line.
    """
    library = _library()
    options = ["-rdc=true", f"--gpu-architecture=compute_{arch}", *options, *(("-dlto",) if lto else ())]
    program = ctypes.c_void_p()
    _check(library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), file.encode(), 0, None, None))
    try:
        array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = library.nvrtcCompileProgram(program, len(options), array)
        if status:
            raise RuntimeError(f"NVRTC refuses {file}:\n{_text(program, 'ProgramLog').strip() or status}")
        return _bytes(program, "LTOIR") if lto else _text(program, "PTX")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
