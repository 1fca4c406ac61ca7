"""Where the calling thread is."""

from __future__ import annotations

from .._C.libproton import proton as libproton
from .flags import flags

__all__ = ["depth"]


def depth(session: int | None = 0) -> int | None:
    """How many names the path of the calling thread has in a session: scopes, or Python's frames. ``None`` when nothing is profiled."""
    return libproton.get_context_depth(session) if flags.profiling_on else None
