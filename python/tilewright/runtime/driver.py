"""The driver in use, under the names that Triton programs use (``driver.active.get_current_target()``)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..backends.compiler import GPUTarget
    from ..backends.driver import DriverBase

__all__ = ["DriverConfig", "GPUTarget", "driver"]


class DriverConfig:
    """``driver.active`` is what programs ask about GPUs; :meth:`set_active` puts another one there. Launches ask none."""

    def __init__(self) -> None:
        self._default: DriverBase | None = None
        self._active: DriverBase | None = None

    @property
    def default(self) -> DriverBase:
        """The driver of NVIDIA's GPUs."""
        if self._default is None:
            from ..backends.nvidia.driver import CudaDriver

            self._default = CudaDriver()
        return self._default

    @property
    def active(self) -> DriverBase:
        """The driver in use."""
        return self.default if self._active is None else self._active

    def set_active(self, driver: DriverBase) -> None:
        """Puts another driver in use."""
        self._active = driver

    def reset_active(self) -> None:
        """Puts the default driver in use again."""
        self._active = None

    def is_active(self) -> bool:
        """Whether there is a GPU."""
        return type(self.active).is_active()


driver = DriverConfig()


def __getattr__(name: str):
    if name == "GPUTarget":
        from ..backends.compiler import GPUTarget

        return GPUTarget
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
