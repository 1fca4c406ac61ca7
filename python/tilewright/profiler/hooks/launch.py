"""Names and metrics of kernels, from their ``@jit(launch_metadata=…)``."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from ..._C.libproton import proton as libproton
from .hook import Hook

if TYPE_CHECKING:
    from ... import knobs

__all__ = ["COMPUTE_METADATA_SCOPE_NAME", "LaunchHook", "id", "op_name"]

#: The state in which ``launch_metadata`` runs, so that the kernels that it launches are told apart.
COMPUTE_METADATA_SCOPE_NAME = "__proton_launch_metadata"

#: The name of the kernel that is being launched.
op_name: ContextVar[str | None] = ContextVar("op_name", default=None)
#: The number under which its metrics are.
id: ContextVar[int | None] = ContextVar("id", default=None)


class LaunchHook(Hook):
    """Gives a kernel the name and the metrics that its ``launch_metadata`` says. There is one."""

    priority = 100
    flops_width = (8, 16, 32, 64)
    metrics = (*(f"flops{width}" for width in flops_width), "bytes", "flops")

    _instance: LaunchHook | None = None

    def __new__(cls):
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def enter(self, metadata: knobs.LaunchMetadata) -> None:
        """Announces the launch."""
        libproton.enter_state(COMPUTE_METADATA_SCOPE_NAME)
        try:
            says = metadata.get()
        finally:
            libproton.exit_state()
        number = libproton.record_scope()
        op_name.set(says["name"])
        id.set(number)
        libproton.enter_op(number, says["name"])
        libproton.add_metrics(number, {name: says[name] for name in LaunchHook.metrics if name in says})

    def exit(self, metadata: knobs.LaunchMetadata) -> None:
        """The launch has been made."""
        number = id.get()
        if number is not None:
            libproton.exit_op(number, op_name.get() or "")
