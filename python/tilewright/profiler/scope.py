"""Scopes: the names that a path is made of, with metrics of the program's own."""

from __future__ import annotations

import threading
import time
from functools import wraps

from .._C.libproton import proton as libproton
from .flags import flags

__all__ = ["MetricValueType", "cpu_timed_scope", "enter_scope", "exit_scope", "scope"]

MetricValueType = float | int

_CPU_TIME = "cpu_time"


class scope:
    """Gives a name to what happens in the ``with`` block, or in the decorated function.

    :param name: the name. Scopes of one name in one place are one, whose metrics add up.
    :param metrics: numbers by name: ``{"flops16": 2.0 * m * n * k, "bytes": size}``. What a scope has counts for those around it, too,
        unless the name ends with ``(exc)``; the last value of one that ends with ``(pty)``, which may be a text, holds.
    """

    def __init__(self, name: str, metrics: dict[str, MetricValueType] | None = None) -> None:
        self.name = name
        self.metrics = metrics
        self.id: int | None = None
        # What is open: a scope may be entered again within itself.
        self._open: list[tuple[int | None, int]] = []

    def _enter_scope(self) -> None:
        entered = None
        if flags.profiling_on:
            entered = libproton.record_scope()
            libproton.enter_scope(entered, self.name)
            try:
                libproton.add_metrics(entered, self.metrics or {})
            except BaseException:
                libproton.exit_scope(entered, self.name)
                raise
        self.id = entered
        self._open.append((entered, time.time_ns()))

    def _exit_scope(self) -> None:
        entered, start = self._open.pop()
        if entered is not None:
            libproton.exit_scope(entered, self.name)
            self._left(entered, start)

    def _left(self, entered: int, start: int) -> None:
        """What is known at the end."""

    def __enter__(self) -> scope:
        self._enter_scope()
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        self._exit_scope()

    def __call__(self, function):
        @wraps(function)
        def wrapper(*args, **kwargs):
            # A scope of its own for each call, which may be on another thread.
            with type(self)(self.name, self.metrics):
                return function(*args, **kwargs)

        return wrapper


class cpu_timed_scope(scope):
    """A scope that measures its time by the host's clock, too, as the metric ``cpu_time``."""

    def __init__(self, name: str, metrics: dict[str, float] | None = None) -> None:
        if metrics and _CPU_TIME in metrics:
            raise ValueError(f"The metric name '{_CPU_TIME}' is reserved.")
        super().__init__(name, metrics)

    def _left(self, entered: int, start: int) -> None:
        libproton.add_metrics(entered, {f"{_CPU_TIME} (ns)(exc)": time.time_ns() - start})


_thread = threading.local()


def _scopes() -> list[tuple[int, str]]:
    if not hasattr(_thread, "scopes"):
        _thread.scopes = []
    return _thread.scopes


def enter_scope(name: str, *, metrics: dict[str, MetricValueType] | None = None) -> int | None:
    """Enters a scope on this thread; gives its number, or ``None`` when nothing is profiled."""
    if not flags.profiling_on:
        return None
    entered = libproton.record_scope()
    libproton.enter_scope(entered, name)
    _scopes().append((entered, name))
    if metrics:
        libproton.add_metrics(entered, metrics)
    return entered


def exit_scope(name: str | None = None, *, metrics: dict[str, MetricValueType] | None = None) -> int | None:
    """Leaves the scope that was entered last on this thread; gives its number.

    :param name: its name, to be checked.
    :param metrics: what is known at its end.
    """
    if not flags.profiling_on:
        return None
    scopes = _scopes()
    if not scopes:
        raise RuntimeError("exit_scope: this thread is in no scope that enter_scope entered")
    entered, found = scopes[-1]
    if name and name != found:
        raise ValueError(f"Scope name mismatch: {name} != {found}")
    scopes.pop()
    libproton.exit_scope(entered, found)
    if metrics:
        libproton.add_metrics(entered, metrics)
    return entered
