"""Settings of the running process. Environment variables are read by what they concern; here are the hooks.

``knobs.runtime.launch_enter_hook.add(f)`` has ``f(metadata)`` called before each launch, ``launch_exit_hook`` after it has
been queued; ``metadata.get()`` is a dict with the kernel's ``name``, the ``stream`` (``None`` on the CPU) and what the
kernel's ``@jit(launch_metadata=…)`` gives. Assigning a function or ``None`` replaces all hooks.
"""

from __future__ import annotations

from collections.abc import Callable

from . import _tilewright

__all__ = ["HookChain", "LaunchMetadata", "runtime"]


class HookChain:
    """Functions that are called one after the other, each only once however often it is added."""

    def __init__(self, reversed: bool = False):
        self.calls: list[Callable] = []
        self.reversed = reversed

    def add(self, function: Callable) -> None:
        """Adds a function at the end."""
        if not callable(function):
            raise TypeError(f"a hook must be callable, and {function!r} is not")
        if function not in self.calls:
            self.calls.append(function)
        _update()

    def remove(self, function: Callable) -> None:
        """Takes a function out, if it is there."""
        if function in self.calls:
            self.calls.remove(function)
        _update()

    def __call__(self, *args, **kwargs) -> None:
        for function in self.calls[::-1] if self.reversed else list(self.calls):
            function(*args, **kwargs)


class LaunchMetadata:
    """What a launch hook gets. :meth:`get` puts it together, so that hooks which do not ask cost little."""

    def __init__(self, name, stream, more, grid, metadata, arguments):
        self.data = {"name": name, "stream": stream}
        self._more = more
        self._of_more = (grid, metadata, arguments)

    def get(self) -> dict:
        """Name, stream, and what the kernel's ``launch_metadata(grid, metadata, arguments)`` gives."""
        if self._more is not None:
            self.data.update(self._more(*self._of_more))
            self._more = None
        return self.data


class _Runtime:
    """The hooks around launches."""

    def __init__(self):
        self._enter, self._exit = HookChain(), HookChain(reversed=True)

    @property
    def launch_enter_hook(self) -> HookChain:
        """Called before each launch."""
        return self._enter

    @launch_enter_hook.setter
    def launch_enter_hook(self, hook: HookChain | Callable | None) -> None:
        self._enter = _chain(hook, reversed=False)
        _update()

    @property
    def launch_exit_hook(self) -> HookChain:
        """Called after each launch, the hook that was added last at first."""
        return self._exit

    @launch_exit_hook.setter
    def launch_exit_hook(self, hook: HookChain | Callable | None) -> None:
        self._exit = _chain(hook, reversed=True)
        _update()


def _chain(hook, reversed: bool) -> HookChain:
    if isinstance(hook, HookChain):
        return hook
    chain = HookChain(reversed)
    if hook is not None:
        chain.add(hook)
    return chain


def _update() -> None:
    """Launches look for hooks only when there are some."""
    _tilewright.hook_launches(bool(runtime.launch_enter_hook.calls or runtime.launch_exit_hook.calls))


runtime = _Runtime()
