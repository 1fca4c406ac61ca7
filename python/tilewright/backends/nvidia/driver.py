"""NVIDIA's GPUs as programs ask for them: ``driver.active.utils.get_device_properties(0)`` and so on."""

from __future__ import annotations

import functools
import os
from typing import Any

from ... import _tilewright
from ..compiler import GPUTarget
from ..driver import Benchmarker, GPUDriver

__all__ = ["CudaDriver", "CudaUtils", "include_dirs", "libcuda_dirs", "library_dirs", "ty_to_cpp"]  # noqa: F822

# The bytes that the cache before a timed run is cleared with: more than any L2 has.
_CACHE_BYTES = 256 * 1024 * 1024

_C_TYPES = {
    "i1": "int8_t",
    "u1": "uint8_t",
    "fp16": "double",
    "bf16": "double",
    "fp32": "double",
    "f32": "double",
    "fp64": "double",
    "nvTmaDesc": "CUtensorMap",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
}


def ty_to_cpp(ty: str) -> str:
    """The C type in which a launcher takes an argument of a signature's type."""
    if ty.startswith("*"):
        return "CUdeviceptr"
    if ty.startswith("tensordesc"):
        return "CUtensorMap"
    return _C_TYPES[ty]


def library_dirs() -> list[str]:
    """Folders with the driver's library: those that the environment names, or that the dynamic linker knows."""
    named = [
        os.environ.get("TRITON_LIBCUDA_PATH"),
        os.path.dirname(os.environ.get("TILEWRIGHT_LIBCUDA", "")),
    ]
    return [folder for folder in named if folder] or _known_to_the_linker("libcuda.so")


def libcuda_dirs() -> list[str]:
    """The same, under the name by which programs ask whether there is a driver."""
    return library_dirs()


def _known_to_the_linker(library: str) -> list[str]:
    import subprocess

    try:
        said = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    places = (line.partition("=> ")[2] for line in said.splitlines() if line.split()[:1] == [library])
    return sorted({os.path.dirname(place) for place in places if place})


def _include_dirs() -> list[str]:
    """Folders with ``cuda.h``: NVIDIA's packages for Python, then the toolkit."""
    import site
    from glob import glob

    folders = [
        folder for base in site.getsitepackages() for folder in sorted(glob(f"{base}/nvidia/*/include"))
    ]
    folders += [f"{home}/include" for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if home]
    return [folder for folder in folders if os.path.exists(f"{folder}/cuda.h")]


def __getattr__(name: str):
    # As in Triton it is a list; it is looked for only when it is asked for.
    if name == "include_dirs":
        return _include_dirs()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class CudaUtils:
    """Questions to the CUDA driver."""

    @staticmethod
    def get_device_properties(device: int) -> dict[str, Any]:
        """Shared memory, registers, multiprocessors, clocks, … of a GPU; the first three of the target where kernels run without one."""
        return _tilewright.device_properties(int(device))

    def __getattr__(self, name: str):
        raise AttributeError(f"not supported yet: driver.active.utils.{name}")


class CudaDriver(GPUDriver):
    """The driver of NVIDIA's GPUs."""

    def __init__(self) -> None:
        super().__init__()
        self.utils = CudaUtils()

    @classmethod
    def is_active(cls) -> bool:
        """Whether there is a GPU."""
        return _tilewright.device_count() > 0

    def get_current_target(self) -> GPUTarget:
        """The GPU that a launch compiles for; without one, what is compiled for and simulated."""
        if (
            os.environ.get("TILEWRIGHT_BACKEND") in ("ptxsim", "npusim", "xesim", "interp")
            or not self.is_active()
        ):
            return GPUTarget.parse(os.environ.get("TILEWRIGHT_TARGET") or "cuda:90")
        return GPUTarget.parse(_tilewright.device_properties(self.get_current_device())["target"])

    def get_active_torch_device(self) -> Any:
        """The GPU as a ``torch.device``."""
        import torch

        return torch.device("cuda", self.get_current_device())

    def get_device_interface(self) -> Any:
        """``torch.cuda``."""
        import torch

        return torch.cuda

    def map_python_to_cpp_type(self, ty: str) -> str:
        """See :func:`ty_to_cpp`."""
        return ty_to_cpp(ty)

    def get_benchmarker(self) -> Benchmarker:
        """The function that autotuning times kernels with."""
        from ...testing import do_bench

        return do_bench

    @functools.cached_property
    def _cache(self):
        import torch

        return torch.empty(_CACHE_BYTES // 4, dtype=torch.int, device="cuda")

    def get_empty_cache_for_benchmark(self) -> Any:
        """A tensor that is larger than the L2 cache."""
        return self._cache

    def clear_cache(self, cache) -> None:
        """Fills the L2 cache with such a tensor."""
        cache.zero_()
