"""What is known about the GPU, under the names that Triton programs use (``driver.active.utils…``)."""

from __future__ import annotations

import sys
from typing import NamedTuple

from .. import _tilewright


class GPUTarget(NamedTuple):
    """A GPU to compile for."""

    backend: str
    arch: int
    warp_size: int


class _Utils:
    @staticmethod
    def get_device_properties(device: int) -> dict:
        """Shared memory, registers, multiprocessors, clocks, … of a GPU."""
        return _tilewright.device_properties(int(device))


class _CudaDriver:
    utils = _Utils()

    @staticmethod
    def get_current_device() -> int:
        """The number of the GPU that a launch goes to."""
        return _tilewright.current_device()

    @staticmethod
    def get_current_stream(device: int) -> int:
        """The handle of the stream that a launch goes to."""
        torch = sys.modules.get("torch")
        return torch._C._cuda_getCurrentRawStream(device) if torch is not None else 0

    def get_current_target(self) -> GPUTarget:
        """The GPU that a launch compiles for."""
        target = _tilewright.device_properties(self.get_current_device())["target"]
        return GPUTarget("cuda", int(target.removeprefix("cuda:")), 32)

    def get_active_torch_device(self):
        """The GPU as a ``torch.device``."""
        import torch

        return torch.device("cuda", self.get_current_device())

    def get_device_interface(self):
        """``torch.cuda``."""
        import torch

        return torch.cuda

    def get_benchmarker(self):
        """The function that autotuning times kernels with."""
        from ..testing import do_bench

        return do_bench


class _Driver:
    """``driver.active`` is the one driver there is."""

    active = _CudaDriver()

    @staticmethod
    def is_active() -> bool:
        """Whether there is a GPU."""
        return _tilewright.device_count() > 0


driver = _Driver()
