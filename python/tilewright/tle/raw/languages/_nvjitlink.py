"""nvJitLink, NVIDIA's linker as a library: LTO-IR of several places, optimized as one program, as PTX."""

import ctypes

from . import _libraries

#: What a library may be, by what its file ends with, as nvJitLink numbers its inputs.
KINDS = {".ltoir": 3, ".fatbin": 4, ".o": 5, ".a": 6}


def _log(library, link):
    size = ctypes.c_size_t()
    library.nvJitLinkGetErrorLogSize(link, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value + 1)
    library.nvJitLinkGetErrorLog(link, buffer)
    return buffer.value.decode(errors="replace").strip()


def link(inputs, arch, what):
    """PTX of inputs, each its bytes, the number of its kind, and its name.

    :raises RuntimeError: there is no nvJitLink, or it refuses an input; ``what`` is linked.
    """
    library = _libraries.load("nvJitLink", "nvjitlink")
    if library is None:
        raise RuntimeError(f"there is no nvJitLink, which links {what}: pip install nvidia-nvjitlink")
    options = [b"-arch=sm_" + arch.encode(), b"-lto", b"-ptx", b"-lineinfo"]
    handle = ctypes.c_void_p()
    created = library.nvJitLinkCreate(
        ctypes.byref(handle), len(options), (ctypes.c_char_p * len(options))(*options)
    )
    if created:
        raise RuntimeError(f"nvJitLink cannot link for sm_{arch} (status {created})")
    try:
        for data, kind, name in inputs:
            if library.nvJitLinkAddData(handle, kind, data, ctypes.c_size_t(len(data)), name.encode()):
                raise RuntimeError(f"nvJitLink refuses {name}:\n{_log(library, handle)}")
        if library.nvJitLinkComplete(handle):
            raise RuntimeError(f"nvJitLink cannot link {what}:\n{_log(library, handle)}")
        size = ctypes.c_size_t()
        if library.nvJitLinkGetLinkedPtxSize(handle, ctypes.byref(size)):
            raise RuntimeError(f"nvJitLink gives no PTX of {what}:\n{_log(library, handle)}")
        buffer = ctypes.create_string_buffer(size.value + 1)
        library.nvJitLinkGetLinkedPtx(handle, buffer)
        return buffer.value.decode(errors="replace")
    finally:
        library.nvJitLinkDestroy(ctypes.byref(handle))
