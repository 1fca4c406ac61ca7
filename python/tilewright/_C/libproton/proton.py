"""Sessions, scopes and metrics of the profiler, as functions; ``tilewright.profiler`` is what programs use."""

from __future__ import annotations

import threading

from ... import _tilewright
from ..._tilewright import profiler_add_metrics as add_metrics
from ..._tilewright import profiler_context_depth as get_context_depth
from ..._tilewright import profiler_enter_op as enter_op
from ..._tilewright import profiler_enter_scope as enter_scope
from ..._tilewright import profiler_record_scope as record_scope

__all__ = [
    "activate",
    "activate_all",
    "add_metrics",
    "deactivate",
    "deactivate_all",
    "enter_op",
    "enter_scope",
    "enter_state",
    "exit_op",
    "exit_scope",
    "exit_state",
    "finalize",
    "finalize_all",
    "get_context_depth",
    "record_scope",
    "start",
]


def start(
    path: str,
    contextSourceName: str,
    dataName: str,
    profilerName: str,
    mode: str = "",
    profilerPath: str = "",
) -> int:
    """Starts a session, which is active, and gives its number; see :func:`tilewright.profiler.start`.

    :param profilerPath: the folder that holds CUPTI; without one it is looked for.
    """
    from ...profiler._cupti import places

    if profilerName in ("instrumentation", "roctracer"):
        raise NotImplementedError(f"not supported yet: the profiler's backend {profilerName!r}")
    if mode:
        raise NotImplementedError(f"not supported yet: the profiler's mode {mode!r}")
    files, chosen = places(profilerPath) if profilerName == "cupti" else ([], False)
    return _tilewright.profiler_start(path, contextSourceName, dataName, profilerName, files, chosen)


def activate(session: int) -> None:
    """Has a session record again."""
    _tilewright.profiler_activate(session)


def activate_all() -> None:
    """Has every session record again."""
    _tilewright.profiler_activate(None)


def deactivate(session: int) -> None:
    """Has a session record no more for now."""
    _tilewright.profiler_deactivate(session)


def deactivate_all() -> None:
    """Has every session record no more for now."""
    _tilewright.profiler_deactivate(None)


def finalize(session: int, output_format: str = "") -> list[str]:
    """Ends a session; gives the file that was written."""
    return _tilewright.profiler_finalize(session, output_format)


def finalize_all(output_format: str = "") -> list[str]:
    """Ends all sessions; gives the files that were written."""
    return _tilewright.profiler_finalize(None, output_format)


def exit_scope(scope: int, name: str) -> None:
    """Leaves a scope."""
    _tilewright.profiler_exit_scope(scope)


def exit_op(scope: int, name: str) -> None:
    """The launch that :func:`enter_op` announced has been made."""
    _tilewright.profiler_exit_op(scope)


_thread = threading.local()


def enter_state(name: str) -> None:
    """Puts a name behind every path of this thread, in the place of another state's."""
    _states().append(name)
    _tilewright.profiler_set_state(name)


def exit_state() -> None:
    """Ends the last state; the one around it, if there is one, holds again."""
    states = _states()
    if states:
        states.pop()
    _tilewright.profiler_set_state(states[-1] if states else None)


def _states() -> list[str]:
    if not hasattr(_thread, "states"):
        _thread.states = []
    return _thread.states
