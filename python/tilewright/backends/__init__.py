"""The backends by name, as programs look for them: ``backends["nvidia"].compiler`` and ``.driver``."""

from __future__ import annotations

from dataclasses import dataclass

from .compiler import BaseBackend, GPUTarget
from .driver import DriverBase

__all__ = ["Backend", "BaseBackend", "DriverBase", "GPUTarget", "backends"]


@dataclass(frozen=True)
class Backend:
    """The two classes of a backend."""

    compiler: type[BaseBackend]
    driver: type[DriverBase]


def __getattr__(name: str):
    # Most programs only call kernels, and ask for no backend.
    if name != "backends":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .cpu.compiler import CPUBackend
    from .cpu.driver import CPUDriver
    from .nvidia.compiler import CUDABackend
    from .nvidia.driver import CudaDriver

    globals()[name] = {
        "nvidia": Backend(CUDABackend, CudaDriver),
        "cpu": Backend(CPUBackend, CPUDriver),
    }
    return globals()[name]
