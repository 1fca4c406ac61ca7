"""Which ranks launches run on."""

from __future__ import annotations

from contextvars import ContextVar

#: Those of the simulated mesh that the caller is in.
_simulated = ContextVar("tilewright_ranks", default=None)

#: Those of this process, once :func:`tilewright.distributed.init` has joined them.
_joined = None


def current():
    """What the launch path reads: ``base``, ``stride``, ``count``, ``programs`` and ``parts``; ``None`` where a launch has one rank."""
    return _simulated.get() or _joined


def join(ranks):
    """From now on launches are those of one rank of several processes; ``None``: of no such."""
    global _joined
    _joined = ranks
