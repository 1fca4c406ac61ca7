"""Programmatic dependent launch: a kernel that begins before the one ahead of it in the stream has ended.

It takes effect where the launch asks for it (``kernel[grid](…, launch_pdl=True)``) on a GPU from compute capability 9.0.
On the CPU executor and in the simulator one kernel runs at a time, and nothing happens.
"""

from __future__ import annotations

from ..._marker import builtin

__all__ = ["gdc_launch_dependents", "gdc_wait"]


@builtin
def gdc_wait():
    """Waits until the kernels ahead have ended; what they wrote is seen by what stands behind."""


@builtin
def gdc_launch_dependents():
    """Lets the kernel behind this one begin once every program has called this or ended.

    Later calls mean nothing.
    """
