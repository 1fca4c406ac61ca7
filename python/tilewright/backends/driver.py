"""What a driver is to programs that look at one, or bring their own to ``driver.set_active``."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["Benchmarker", "DriverBase", "GPUDriver"]


class Benchmarker(Protocol):
    """Times a function; ``do_bench`` is one."""

    def __call__(self, kernel_call: Callable, *, quantiles: list[float], **kwargs) -> Sequence[float]: ...


class DriverBase(metaclass=ABCMeta):
    """What there is to know of the devices of one kind."""

    @classmethod
    @abstractmethod
    def is_active(cls) -> bool:
        """Whether there is a device of this kind."""

    @abstractmethod
    def map_python_to_cpp_type(self, ty: str) -> str:
        """The C type of a type of a signature."""

    @abstractmethod
    def get_current_target(self):
        """What the current device is compiled for."""

    @abstractmethod
    def get_active_torch_device(self) -> Any:
        """The current device as torch's."""

    @abstractmethod
    def get_benchmarker(self) -> Benchmarker:
        """What times kernels on it."""


class GPUDriver(DriverBase):
    """A driver of GPUs."""

    @staticmethod
    def get_current_device() -> int:
        """The number of the GPU that a launch goes to."""
        from .. import _tilewright

        return _tilewright.current_device()

    @staticmethod
    def set_current_device(device: int) -> None:
        """Has launches go to this GPU."""
        import torch

        torch.cuda.set_device(device)

    @staticmethod
    def get_current_stream(device: int | None = None) -> int:
        """The handle of the stream that a launch goes to."""
        import sys

        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_available():
            return 0
        return torch._C._cuda_getCurrentRawStream(
            GPUDriver.get_current_device() if device is None else device
        )

    @staticmethod
    def get_device_capability(device: int | None = None) -> tuple[int, int]:
        """Compute capability of a GPU."""
        import torch

        return torch.cuda.get_device_capability(device)

    def assemble_tensormap_to_arg(self, tensormaps_info, args):
        """The arguments as they are: launches make tensor maps themselves."""
        return args
