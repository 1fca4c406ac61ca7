"""The few functions of Triton's native half that programs use. IR can be looked at, not built; its passes are not there."""

from __future__ import annotations

import importlib
import os

__all__ = ["get_cache_invalidating_env_vars", "getenv", "getenv_bool"]

# What changes the code that is made; each is in the key of our cache on disk.
_INVALIDATING = ("DISABLE_PTXAS_OPT", "PTXAS_OPTIONS", "TRITON_DEFAULT_FP_FUSION", "TRITON_F32_DEFAULT")


def getenv(key: str, default: str | None = None) -> str | None:
    """The value of an environment variable."""
    return os.environ.get(key, default)


def getenv_bool(key: str, default: bool | None = None) -> bool | None:
    """Whether an environment variable says yes: ``1``, ``true``, ``on``, ``yes`` or ``y``."""
    value = os.environ.get(key)
    return default if value is None else value.lower() in ("1", "true", "on", "yes", "y")


def get_cache_invalidating_env_vars() -> dict[str, str]:
    """The variables that are set and change the code that is made."""
    return {name: os.environ[name] for name in _INVALIDATING if os.environ.get(name)}


def __getattr__(name: str):
    if name in ("ir", "nvidia"):
        return importlib.import_module(f"{__package__}.{name}")
    if name == "native_specialize_impl":
        return importlib.import_module("tilewright.runtime.jit").native_specialize_impl
    raise AttributeError(
        f"not supported yet: triton._C.libtriton.{name} (the compiler is not taken apart in Python)"
    )
