"""What the profiler is doing in this process."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ProfilerFlags", "flags"]


@dataclass
class ProfilerFlags:
    """Switches that the functions of this package look at."""

    #: Whether a session has been started and not all are finalized.
    profiling_on: bool = False
    #: Whether kernels are instrumented; never, so far.
    instrumentation_on: bool = False
    #: Whether the program is run by ``python -m tilewright.profiler.proton``, which starts and finalizes the one session.
    command_line: bool = False


flags = ProfilerFlags()
