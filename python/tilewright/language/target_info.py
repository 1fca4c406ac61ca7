"""What a kernel is compiled for, as constants: ``if tl.target_info.cuda_capability_geq(9, 0): …``.

In a kernel these functions speak of the target of the compilation, also where that is not the GPU at hand; on the CPU executor
there is none. Called by Python they speak of the GPU that a launch would go to, or what is simulated.
"""

from ._marker import builtin, constexpr_function

__all__ = [
    "cuda_capability_geq",
    "current_target",
    "is_cuda",
    "is_hip",
    "is_hip_cdna3",
    "is_hip_cdna4",
]


@builtin(on_host=True)
def current_target():
    """The target, with ``backend`` (``"cuda"``), ``arch`` (``90``) and ``warp_size``; ``None`` where there is none."""
    import os

    from ..runtime.driver import driver

    if driver.is_active() or os.environ.get("TILEWRIGHT_BACKEND") == "ptxsim":
        return driver.active.get_current_target()
    return None


@constexpr_function
def is_cuda():
    """Whether the target is an NVIDIA GPU."""
    target = current_target()
    return target is not None and target.backend == "cuda"


@constexpr_function
def cuda_capability_geq(major, minor=0):
    """Whether the target is an NVIDIA GPU of this compute capability or a later one."""
    target = current_target()
    return target is not None and target.backend == "cuda" and target.arch >= major * 10 + minor


@constexpr_function
def is_hip():
    """Whether the target is an AMD GPU."""
    target = current_target()
    return target is not None and target.backend == "hip"


@constexpr_function
def is_hip_cdna3():
    """Whether the target is an AMD GPU of the third CDNA generation."""
    target = current_target()
    return target is not None and target.arch == "gfx942"


@constexpr_function
def is_hip_cdna4():
    """Whether the target is an AMD GPU of the fourth CDNA generation."""
    target = current_target()
    return target is not None and target.arch == "gfx950"
