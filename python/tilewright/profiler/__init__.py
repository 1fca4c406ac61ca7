"""Which part of a program took how long on the GPU: Triton's Proton, with CUPTI's times, under the same names.

::

    import tilewright.profiler as proton

    proton.start("matmul", hook="triton")
    with proton.scope("forward", {"flops16": 2.0 * m * n * k}):
        kernel[grid](a, b, c)
    proton.finalize()                       # writes matmul.hatchet

    # python -m tilewright.profiler.viewer -m time/ms,tflop16/s matmul.hatchet

Every kernel of the process counts, torch's too; those of a CUDA graph stand where it was replayed. Kernels that the CPU executor or the
simulator run are there with the time of the host's clock, and their ``device_type`` says so.
"""

from . import context, mode, specs
from .profile import DEFAULT_PROFILE_NAME, activate, deactivate, finalize, profile, start
from .scope import cpu_timed_scope, enter_scope, exit_scope, scope
from .state import enter_state, exit_state, state

__all__ = [
    "DEFAULT_PROFILE_NAME",
    "activate",
    "context",
    "cpu_timed_scope",
    "deactivate",
    "enter_scope",
    "enter_state",
    "exit_scope",
    "exit_state",
    "finalize",
    "mode",
    "profile",
    "scope",
    "specs",
    "start",
    "state",
]
