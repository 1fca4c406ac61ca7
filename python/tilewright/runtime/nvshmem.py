"""NVSHMEM, as its Python package brings it: symmetric memory that the ranks of several nodes reach, and the functions by which kernels do.

The package (``nvidia-nvshmem-cu13``, or ``-cu12``) holds ``libnvshmem_host.so``, whose C interface is called here, and the functions for kernels as LLVM bitcode, which is linked
into each kernel that reaches other ranks. Of the bitcode it must be a release that LLVM 19 reads: 3.4 is.
"""

from __future__ import annotations

import ctypes
import os
from importlib.util import find_spec
from pathlib import Path

#: What the packages are called, for messages.
PACKAGE = "nvidia-nvshmem-cu13==3.4.5 (or -cu12, as torch's CUDA is)"

#: Of ``nvshmemx_hostlib_init_attr``: the ranks know each other by an id that one of them has made.
_WITH_UNIQUE_ID = 1 << 3


class _UniqueId(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int), ("content", ctypes.c_char * 124)]


class _UniqueIdArguments(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int),
        ("id", ctypes.c_void_p),
        ("rank", ctypes.c_int),
        ("count", ctypes.c_int),
    ]


class _Arguments(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int), ("unique_id", _UniqueIdArguments), ("content", ctypes.c_char * 96)]


class _Attributes(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int), ("communicator", ctypes.c_void_p), ("arguments", _Arguments)]


def _version(structure):
    return (1 << 16) + ctypes.sizeof(structure)


def folder() -> Path | None:
    """Where the package has its libraries; ``None`` where it is not installed."""
    if find_spec("nvidia") is None:
        return None
    found = find_spec("nvidia.nvshmem")
    places = found.submodule_search_locations if found else None
    return Path(places[0]) / "lib" if places else None


def device_library(capability: int | None = None) -> Path:
    """The bitcode for kernels, of a GPU's compute capability where there are several.

    :raises RuntimeError: the package is not installed, or holds none.
    """
    lib = folder()
    if lib is None:
        raise RuntimeError(f"NVSHMEM is not installed: pip install {PACKAGE}")
    library = lib / "libnvshmem_device.bc"
    if library.exists():
        return library
    fitting = sorted(
        (int(path.stem.rsplit("_", 1)[1]), path) for path in lib.glob("libnvshmem_device_sm_*.bc")
    )
    fitting = [path for sm, path in fitting if capability is None or sm <= capability]
    if not fitting:
        raise RuntimeError(f"NVSHMEM's package in {lib} holds no bitcode for kernels: pip install {PACKAGE}")
    return fitting[-1]


class Library:
    """The library, opened, and this process joined with the others of a ``torch.distributed`` group."""

    def __init__(self, group, nbytes):
        import torch
        import torch.distributed as dist

        lib = folder()
        if lib is None:
            raise RuntimeError(f"NVSHMEM is not installed: pip install {PACKAGE}")
        # NVLink multicast stays off, as everywhere.
        os.environ.setdefault("NVSHMEM_DISABLE_NVLS", "1")
        # Room for what is asked for, and for what it needs itself.
        os.environ.setdefault("NVSHMEM_SYMMETRIC_SIZE", str(nbytes + (1 << 28)))
        # It looks for this one by its name alone.
        for plugin in lib.glob("nvshmem_bootstrap_uid.so*"):
            ctypes.CDLL(str(plugin), ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(str(next(lib.glob("libnvshmem_host.so*"))), ctypes.RTLD_GLOBAL)
        for name, result, arguments in (
            ("nvshmem_malloc", ctypes.c_void_p, [ctypes.c_size_t]),
            ("nvshmem_free", None, [ctypes.c_void_p]),
            ("nvshmem_ptr", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int]),
            ("nvshmemx_cumodule_init", ctypes.c_int, [ctypes.c_void_p]),
        ):
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        self.rank, self.count = dist.get_rank(group), dist.get_world_size(group)
        torch.cuda.synchronize()
        made = _UniqueId(_version(_UniqueId))
        if self.rank == 0:
            self._call("nvshmemx_get_uniqueid", ctypes.byref(made))
        given = [bytes(made)]
        dist.broadcast_object_list(given, src=dist.get_global_rank(group, 0), group=group)
        self._id = _UniqueId.from_buffer_copy(given[0])
        attributes = _Attributes(_version(_Attributes))
        attributes.arguments.version = _version(_Arguments)
        attributes.arguments.unique_id.version = _version(_UniqueIdArguments)
        self._call(
            "nvshmemx_set_attr_uniqueid_args",
            self.rank,
            self.count,
            ctypes.byref(self._id),
            ctypes.byref(attributes),
        )
        self._call("nvshmemx_hostlib_init_attr", _WITH_UNIQUE_ID, ctypes.byref(attributes))

    def _call(self, name, *arguments):
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"NVSHMEM: {name} failed with {status} on rank {self.rank}")

    def allocate(self, nbytes: int) -> int:
        """Symmetric memory: each rank asks for as much. Gives where this rank's begins.

        :raises MemoryError: there is not so much.
        """
        address = self._library.nvshmem_malloc(nbytes)
        if not address:
            raise MemoryError(
                f"NVSHMEM has no {nbytes} bytes of symmetric memory: NVSHMEM_SYMMETRIC_SIZE says how much it has"
            )
        return address

    def free(self, address: int) -> None:
        """Gives symmetric memory back; each rank does."""
        self._library.nvshmem_free(address)

    def reaches(self, address: int, rank: int) -> bool:
        """Whether loads and stores reach another rank's place, as they do on one host."""
        return bool(self._library.nvshmem_ptr(address, rank))

    def finish(self) -> None:
        """Ends what the constructor began; each rank does."""
        self._library.nvshmemx_hostlib_finalize()

    def prepare(self, module: int) -> None:
        """Tells a module of the driver's, by its handle, where everything is."""
        self._call("nvshmemx_cumodule_init", module)


_joined: Library | None = None


def join(group, nbytes: int) -> Library:
    """The library for the ranks of a group, which are to have at least so much symmetric memory; a process joins one group at most.

    :raises RuntimeError: it is not installed, or has joined ranks of another group.
    """
    global _joined
    if _joined is None:
        _joined = Library(group, nbytes)
    import torch.distributed as dist

    if (_joined.rank, _joined.count) != (dist.get_rank(group), dist.get_world_size(group)):
        raise RuntimeError("NVSHMEM joins the ranks of one group of a process, and has joined another's")
    return _joined


def prepare(module: int) -> None:
    """What the extension calls for each module that holds NVSHMEM's variables."""
    if _joined is None:
        raise RuntimeError(
            'the kernel reaches ranks by NVSHMEM, which has not been joined: tilewright.distributed.init(by="nvshmem")'
        )
    _joined.prepare(module)
