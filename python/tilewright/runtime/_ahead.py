"""Compiling an autotuner's configurations side by side, before the turn of each to be measured."""

from __future__ import annotations

from .. import knobs
from .._tilewright import CompilationError, CompileAhead, available_parallelism
from .jit import _async_mode


class Ahead:
    """Kernels under way on other threads, by configuration. Leaving the ``with`` block stops what is not finished.

    A configuration that is not here (where hooks watch compilations, say) is compiled by its first launch, as ever.

    :param fn: what the autotuner tunes. ``calls`` gives a configuration, and the call that is to be compiled for it.
    """

    def __init__(self, fn, calls, count: int, warmup: bool = False):
        self._kernels: dict = {}
        self._pool = None
        threads = min(knobs.autotuning.threads or available_parallelism(), count)
        begin = getattr(fn, "_begin", None)
        if threads < 2 or begin is None or knobs.compiles_are_hooked() or _async_mode() is not None:
            return
        self._pool = CompileAhead(threads)
        for config, call in calls:
            try:
                args, kwargs = call()
                self._kernels[config] = begin(self._pool, warmup, args, kwargs)
            except CompilationError as error:
                self._kernels[config] = error
            except Exception:
                # What the call itself is to say.
                continue

    def settle(self, config) -> None:
        """Waits for a configuration's kernel; raises why there is none."""
        kernel = self._kernels.pop(config, None)
        if isinstance(kernel, Exception):
            raise kernel
        if kernel is not None:
            kernel.wait()

    def settle_all(self, progress) -> None:
        """Waits for all kernels; :meth:`settle` raises why there is none."""
        for config in list(self._kernels):
            progress.now(f"compiling {config}")
            try:
                self.settle(config)
            except Exception as error:
                self._kernels[config] = error

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *_) -> None:
        self._kernels.clear()
        if self._pool is not None:
            self._pool.stop()
