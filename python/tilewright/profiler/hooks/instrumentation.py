"""Instrumented kernels: not supported yet."""

from .hook import Hook

__all__ = ["InstrumentationHook"]


class InstrumentationHook(Hook):
    """Would have kernels record what happens inside of them."""

    def __init__(self, mode_obj=None):
        raise NotImplementedError("not supported yet: instrumented kernels (backend='instrumentation')")
