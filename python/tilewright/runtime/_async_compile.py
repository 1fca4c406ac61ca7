"""Compiling in the background: within ``with AsyncCompileMode(executor):``, ``kernel.warmup(…)`` gives a :class:`FutureKernel`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, as_completed
from contextvars import ContextVar

__all__ = ["AsyncCompileMode", "FutureKernel"]

active_mode: ContextVar[AsyncCompileMode | None] = ContextVar("async_compile_mode", default=None)


class FutureKernel:
    """A kernel that is being compiled."""

    def __init__(self, finalize_compile: Callable, future: Future):
        self.finalize_compile = finalize_compile
        self.future = future
        self.kernel = None

    def result(self, ignore_errors: bool = False):
        """The kernel, once it is compiled; ``None`` for one that does not compile when errors are ignored."""
        if self.kernel is None:
            try:
                kernel = self.future.result()
            except Exception:
                if ignore_errors:
                    return None
                raise
            self.finalize_compile(kernel)
            self.kernel = kernel
        return self.kernel


class AsyncCompileMode:
    """Has warmups compile on an executor's threads. Leaving the ``with`` block waits for all, and raises what one raised.

    :param ignore_errors: kernels that do not compile are no error.
    """

    def __init__(self, executor: Executor, *, ignore_errors: bool = False):
        self.executor = executor
        self.ignore_errors = ignore_errors
        self.raw_futures: list[Future] = []
        self.future_kernels: dict[object, FutureKernel] = {}

    def submit(self, key, compile_fn: Callable, finalize_fn: Callable) -> FutureKernel:
        """Compiles in the background, unless something with this key is compiled already."""
        if (known := self.future_kernels.get(key)) is not None:
            return known
        future = self.executor.submit(compile_fn)
        future._key = key
        self.raw_futures.append(future)
        self.future_kernels[key] = FutureKernel(finalize_fn, future)
        return self.future_kernels[key]

    def __enter__(self) -> AsyncCompileMode:
        if active_mode.get() is not None:
            raise RuntimeError("another AsyncCompileMode is active already")
        active_mode.set(self)
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        active_mode.set(None)
        for future in as_completed(self.raw_futures):
            self.future_kernels[future._key].result(self.ignore_errors)
