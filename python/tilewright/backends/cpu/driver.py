"""The CPU as programs ask a driver for it."""

from __future__ import annotations

import os
from typing import Any

from ..compiler import GPUTarget
from ..driver import Benchmarker, DriverBase

__all__ = ["CPUDriver", "CPUUtils"]


class CPUUtils:
    """Questions about the CPU as if it were a GPU."""

    @staticmethod
    def get_device_properties(device: int = 0) -> dict[str, Any]:
        """Its cores as multiprocessors. The executor bounds neither shared memory nor registers; what is given bounds no kernel."""
        return {
            "multiprocessor_count": os.cpu_count() or 1,
            "max_shared_mem": 2**31 - 1,
            "max_num_regs": 2**31 - 1,
            "warpSize": 1,
        }


class CPUDriver(DriverBase):
    """The driver of the CPU executor; ``driver.set_active(CPUDriver())`` makes it the current one."""

    def __init__(self) -> None:
        self.utils = CPUUtils()

    @classmethod
    def is_active(cls) -> bool:
        """No: there always is a CPU, but it is for programs to choose it."""
        return False

    def get_current_target(self) -> GPUTarget:
        """The CPU."""
        return GPUTarget("cpu", "", 1)

    def get_current_device(self) -> int:
        """0."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one CPU: anything but 0 is an error."""
        if device not in (0, -1):
            raise ValueError(f"there is no CPU {device}")

    def get_current_stream(self, device: int | None = None) -> int:
        """0: a launch has run when it returns."""
        return 0

    def get_active_torch_device(self) -> Any:
        """The CPU as a ``torch.device``."""
        import torch

        return torch.device("cpu")

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The C type in which a launcher would take an argument of a signature's type."""
        from ..nvidia.driver import ty_to_cpp

        return "void*" if ty.startswith("*") else ty_to_cpp(ty)

    def get_benchmarker(self) -> Benchmarker:
        """The function that autotuning times kernels with."""
        from ...testing import do_bench

        return do_bench
