"""Modes of the profiler's backends. None is supported yet: :func:`tilewright.profiler.start` says so."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["BaseMode", "PCSampling"]


@dataclass(frozen=True)
class BaseMode:
    """A mode with its name."""

    name: str


@dataclass(frozen=True)
class PCSampling(BaseMode):
    """Samples of where kernels are, each so many cycles: not supported yet."""

    name: str = field(default="pcsampling", init=False)
    interval: int = 1000

    def __post_init__(self):
        if self.interval <= 0:
            raise ValueError("Interval must be a positive integer.")

    def __str__(self):
        return f"{self.name}:interval={self.interval}"
