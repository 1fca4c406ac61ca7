"""What the profiler does around launches."""

from .hook import HookManager
from .instrumentation import InstrumentationHook
from .launch import LaunchHook

__all__ = ["HookManager", "InstrumentationHook", "LaunchHook"]
