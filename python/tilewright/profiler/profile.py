"""Sessions: when what is measured, and where it goes."""

from __future__ import annotations

import functools
import os
import warnings

from .. import _tilewright, knobs
from .._C.libproton import proton as libproton
from .flags import flags
from .hooks import HookManager, LaunchHook
from .hooks.hook import Hook
from .mode import BaseMode

__all__ = ["DEFAULT_PROFILE_NAME", "activate", "deactivate", "finalize", "profile", "start"]

DEFAULT_PROFILE_NAME = "proton"

# Sessions that are there.
_sessions: set[int] = set()
# What CUPTI had said when the first of them was started.
_before: dict[str, int] = {}


def _select_backend() -> str:
    """CUPTI where kernels run on a GPU, and the host's clock elsewhere."""
    on_host = os.environ.get("TILEWRIGHT_BACKEND") in ("interp", "ptxsim", "npusim", "xesim")
    return "host" if on_host or _tilewright.device_count() == 0 else "cupti"


def start(
    name: str | None = None,
    *,
    context: str | None = "shadow",
    data: str | None = "tree",
    backend: str | None = None,
    mode: str | BaseMode | None = None,
    hook: str | Hook | None = None,
) -> int | None:
    """Starts a session, which is active, and gives its number; ``None`` when ``knobs.proton.disable`` is on or the program is run by
    ``python -m tilewright.profiler.proton``.

    :param name: the file, without its ending; ``"proton"`` unless it is given. A name that a session has makes that one active again.
    :param context: what paths are made of: ``"shadow"``, the scopes that the program enters, or ``"python"``, Python's frames.
    :param data: ``"tree"`` adds up what happens at each path; ``"trace"`` keeps every kernel, as an event for Chrome's tracing.
    :param backend: ``"cupti"`` for NVIDIA's GPUs, ``"host"`` for the CPU executor and the simulator alone; ``None`` takes the one for
        this machine. ``"roctracer"`` and ``"instrumentation"`` are not supported yet.
    :param mode: not supported yet: ``"pcsampling"``.
    :param hook: ``"triton"`` gives each kernel the name and the metrics that its ``@jit(launch_metadata=…)`` says.
    :raises DriverError: there is no driver, no CUPTI, or something else profiles the process.
    """
    if flags.command_line or knobs.proton.disable:
        return None
    return _start(name, context, data, backend, mode, hook)


def _start(name, context, data, backend, mode, hook) -> int:
    if hook is not None and hook not in ("triton", "launch") and not isinstance(hook, Hook):
        raise ValueError(f"Unknown hook: {hook}; it may be 'triton'")
    if not _sessions:
        _before.update(_tilewright.profiler_facts())
    session = libproton.start(
        os.fspath(name) if name is not None else DEFAULT_PROFILE_NAME,
        context,
        data,
        _select_backend() if backend is None else backend,
        str(mode) if mode else "",
    )
    _sessions.add(session)
    flags.profiling_on = True
    if hook is not None:
        HookManager.register(hook if isinstance(hook, Hook) else LaunchHook(), session)
    return session


def _check_command_line(what: str, session: int | None) -> None:
    if flags.command_line and session not in (None, 0):
        raise ValueError(f"Only one session can be {what} when running from the command line.")


def activate(session: int | None = None) -> None:
    """Has a session record again, or all sessions. The GPU is waited for."""
    _check_command_line("activated", session)
    if session is None:
        libproton.activate_all()
    else:
        libproton.activate(session)
    HookManager.activate(session)


def deactivate(session: int | None = None) -> None:
    """Has a session record no more for now, or all sessions; what it has is kept. The GPU is waited for."""
    _check_command_line("deactivated", session)
    HookManager.deactivate(session)
    if session is None:
        libproton.deactivate_all()
    else:
        libproton.deactivate(session)


def finalize(session: int | None = None, output_format: str | None = "") -> None:
    """Ends a session, or all sessions, and writes ``<name>.hatchet``, or ``<name>.chrome_trace`` for ``data="trace"``.

    :param output_format: ``"hatchet"`` or ``"chrome_trace"``, which must go with the session's ``data``.
    """
    _check_command_line("finalized", session)
    if not flags.command_line:
        _finalize(session, output_format or "")


def _finalize(session: int | None, output_format: str) -> None:
    HookManager.unregister(session)
    try:
        if session is None:
            libproton.finalize_all(output_format)
        else:
            libproton.finalize(session, output_format)
    finally:
        if session is None:
            _sessions.clear()
        _sessions.discard(session)
        flags.profiling_on = bool(_sessions)
        if not _sessions:
            _warn_of_losses()


def _warn_of_losses() -> None:
    """Says it when the profile lacks kernels."""
    facts = _tilewright.profiler_facts()
    new = {name: facts[name] - _before.get(name, 0) for name in ("launches", "kernels", "dropped")}
    where = f"CUPTI is {facts['library']}, version {facts['version']}"
    if new["launches"] and not new["kernels"]:
        text = f"the profile is empty: {new['launches']} launches were seen, and CUPTI reported no kernel ({where})"
        warnings.warn(text, RuntimeWarning, stacklevel=4)
    if new["dropped"]:
        text = f"the profile is not complete: CUPTI had no room for {new['dropped']} kernels ({where})"
        warnings.warn(text, RuntimeWarning, stacklevel=4)


def profile(
    func=None,
    *,
    name: str | None = None,
    context: str | None = "shadow",
    data: str | None = "tree",
    backend: str | None = None,
    mode: str | BaseMode | None = None,
    hook: str | Hook | None = None,
):
    """A decorator: a session is active while the function runs; ``finalize()`` writes it. Takes what :func:`start` does."""

    def decorator(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            session = start(name, context=context, data=data, backend=backend, mode=mode, hook=hook)
            try:
                return function(*args, **kwargs)
            finally:
                if session is not None:
                    deactivate(session)

        return wrapper

    return decorator if func is None else decorator(func)
