"""The CPU executor as a backend. A kernel for it ends as ``ttir``; with ``TILEWRIGHT_BACKEND=ptxsim`` the simulator takes its place."""

from __future__ import annotations

from types import SimpleNamespace

from ... import _tilewright
from ..compiler import BaseBackend, GPUTarget

__all__ = ["CPUBackend"]


class CPUBackend(BaseBackend):
    """What the executor compiles for."""

    binary_ext = "ttir"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether the target is the CPU."""
        return target.backend in ("cpu", "interp")

    def hash(self) -> str:
        """The release."""
        return f"tilewright-{_tilewright.__version__}-cpu"

    def parse_options(self, options: dict) -> SimpleNamespace:
        """The options that a launch takes, with their defaults; others are left out."""
        known = _tilewright.option_defaults()
        given = {name: value for name, value in options.items() if name in known and value is not None}
        return SimpleNamespace(**{**known, **given})

    def pack_metadata(self, metadata) -> tuple[int, int, int]:
        """What a launch needs of a kernel's metadata."""
        return metadata.num_warps, metadata.num_ctas, metadata.shared
