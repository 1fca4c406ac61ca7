"""Which hooks are called around launches, for which sessions."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar

from ... import knobs

__all__ = ["Hook", "HookManager"]


class Hook:
    """Something that is called around each launch while a session that has it is active."""

    #: The highest goes first in front of a launch, and last behind it.
    priority: int = 0

    def init_handle(
        self, module: Any, function: Any, name: str, metadata_group: dict[str, str], hash: str
    ) -> None:
        """A kernel's code was loaded; nothing calls this."""

    def enter(self, metadata: knobs.LaunchMetadata) -> None:
        """In front of a launch."""
        raise NotImplementedError

    def exit(self, metadata: knobs.LaunchMetadata) -> None:
        """Behind a launch."""
        raise NotImplementedError

    def activate(self) -> None:
        """The first session that has the hook begins to record."""

    def deactivate(self) -> None:
        """The last session that has the hook ceases to record."""


class HookManager:
    """The hooks of all sessions, one entry in ``knobs.runtime.launch_enter_hook`` and ``launch_exit_hook``."""

    #: Hooks of active sessions, in the order in which they are called.
    active_hooks: ClassVar[list[Hook]] = []
    #: For each session its hooks, and whether they are active for it.
    session_hooks: ClassVar[defaultdict[int, dict[Hook, bool]]] = defaultdict(dict)

    @staticmethod
    def enter(metadata: knobs.LaunchMetadata) -> None:
        """In front of a launch."""
        for hook in list(HookManager.active_hooks):
            hook.enter(metadata)

    @staticmethod
    def exit(metadata: knobs.LaunchMetadata) -> None:
        """Behind a launch."""
        for hook in HookManager.active_hooks[::-1]:
            hook.exit(metadata)

    @staticmethod
    def register(hook: Hook, session: int) -> None:
        """Gives a session a hook, which is active."""
        HookManager.session_hooks[session][hook] = True
        HookManager._refresh()

    @staticmethod
    def unregister(session: int | None = None) -> None:
        """Takes a session's hooks away, or all."""
        if session is None:
            HookManager.session_hooks.clear()
        else:
            HookManager.session_hooks.pop(session, None)
        HookManager._refresh()

    @staticmethod
    def activate(session: int | None = None) -> None:
        """A session begins to record, or all do."""
        HookManager._set(session, True)

    @staticmethod
    def deactivate(session: int | None = None) -> None:
        """A session ceases to record, or all do."""
        HookManager._set(session, False)

    @staticmethod
    def _set(session: int | None, active: bool) -> None:
        for number, hooks in HookManager.session_hooks.items():
            if session is None or number == session:
                hooks.update(dict.fromkeys(hooks, active))
        HookManager._refresh()

    @staticmethod
    def _refresh() -> None:
        """Has the hooks of active sessions, and no others, be called."""
        of_sessions = HookManager.session_hooks.values()
        wanted = dict.fromkeys(hook for hooks in of_sessions for hook, active in hooks.items() if active)
        before = list(HookManager.active_hooks)
        HookManager.active_hooks[:] = sorted(wanted, key=lambda hook: -hook.priority)
        for hook in before:
            if hook not in wanted:
                hook.deactivate()
        for hook in wanted:
            if hook not in before:
                hook.activate()
        enter, exit = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
        if wanted:
            enter.add(HookManager.enter)
            exit.add(HookManager.exit)
        else:
            enter.remove(HookManager.enter)
            exit.remove(HookManager.exit)
