"""Which ranks launches run on."""

from __future__ import annotations

from contextvars import ContextVar

#: Those of the simulated mesh that the caller is in.
_simulated = ContextVar("tilewright_ranks", default=None)

#: Those of this process, once :func:`tilewright.distributed.init` has joined them.
_joined = None


def current():
    """What the launch path reads: ``base``, ``stride``, ``count``, ``programs``, ``scratch`` and ``allowed``; ``None`` where a launch has one rank."""
    found = _simulated.get()
    if found is None and _joined is not None:
        _joined.check()
        found = _joined
    return found


def join(ranks):
    """From now on launches are those of one rank of several processes; ``None``: of no such."""
    global _joined
    _joined = ranks
