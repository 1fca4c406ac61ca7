"""States: a name behind the path of all that happens in them."""

from __future__ import annotations

from functools import wraps

from .._C.libproton.proton import enter_state, exit_state
from .flags import flags

__all__ = ["enter_state", "exit_state", "state"]


class state:
    """Puts a name behind the path of every scope and kernel of the ``with`` block, or of the decorated function.

    One state at a time: within another, the inner one holds.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._entered: list[bool] = []

    def __enter__(self) -> state:
        on = flags.profiling_on
        self._entered.append(on)
        if on:
            enter_state(self.name)
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        if self._entered.pop():
            exit_state()

    def __call__(self, function):
        @wraps(function)
        def wrapper(*args, **kwargs):
            with state(self.name):
                return function(*args, **kwargs)

        return wrapper
