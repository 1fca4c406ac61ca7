"""What autotuning found, on disk: a small JSON file for each kernel, set of configurations, key and machine.

Files are written whole or not at all; one that can't be read, or that knows other configurations, counts as missing and is
written anew. Nothing here raises: a folder that can't be written costs the next process a measurement.
"""

from __future__ import annotations

import hashlib
import json
import os

from .. import _tilewright
from .cache import get_cache_manager


class Results:
    """The file of one measurement."""

    def __init__(self, manager, name: str):
        self._manager, self._name = manager, name

    def read(self, configs) -> tuple | None:
        """The best configuration and the times of all of them, if they are known."""
        try:
            path = self._manager.get_file(self._name)
            if path is None:
                return None
            with open(path) as file:
                times = json.load(file)["times"]
            known = {config: [float(t) for t in times[str(config)]] for config in configs}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        if not all(known.values()) or all(times[0] == float("inf") for times in known.values()):
            return None
        return min(known, key=lambda c: known[c][0]), known

    def write(self, timings) -> None:
        """Keeps the times of the configurations."""
        times = {str(config): _numbers(found) for config, found in timings.items()}
        try:
            self._manager.put(json.dumps({"times": times}), self._name, binary=False)
        except (OSError, RuntimeError):
            pass


def of(tuner, key: tuple, configs) -> Results | None:
    """The file for a tuner's kernel, a key, configurations and this machine; ``None`` where something has no stable text."""
    kernel = tuner.fn
    while not hasattr(kernel, "cache_key"):
        kernel = kernel.fn
    if not all(value is None or isinstance(value, (str, int, float, bool)) for value in key):
        return None
    facts = [kernel.cache_key, repr(key), *_machine(), *sorted(map(str, configs))]
    digest = hashlib.sha256("\0".join(facts).encode()).hexdigest()
    try:
        return Results(get_cache_manager(digest), f"{tuner.__name__}.autotune.json")
    except (OSError, RuntimeError):
        return None


def _numbers(times) -> list[float]:
    return [float(t) for t in times] if isinstance(times, (list, tuple)) else [float(times)]


def _machine() -> list[str]:
    """What times depend on besides the kernel: where it runs, and what it is compiled with."""
    backend = os.environ.get("TILEWRIGHT_BACKEND", "")
    if backend in ("interp", "ptxsim", "npusim", "xesim") or _tilewright.device_count() == 0:
        target = "interp"
        where = f"{backend or 'cpu'} {os.cpu_count()}"
    else:
        properties = _tilewright.device_properties(_tilewright.current_device())
        target = properties["target"]
        where = json.dumps(properties, sort_keys=True, default=str)
    return [where, *(f"{name} {text}" for name, text in _tilewright.made_with(target))]
