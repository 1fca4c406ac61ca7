"""IR to look at, under the names of Triton's bindings; see :class:`module`."""

from __future__ import annotations

from pathlib import Path

from .._tilewright import ir as _ir

__all__ = ["block", "context", "load_dialects", "module", "operation", "parse_mlir_module", "region", "value"]

module = _ir.module
operation = _ir.operation
region = _ir.region
block = _ir.block
value = _ir.value


class context:
    """What holds types and attributes in Triton. A module holds its own here, so that nothing is in it."""


def load_dialects(context: context) -> None:
    """Every dialect is there already."""


def parse_mlir_module(path: str, context: context) -> module:
    """The module of a file; raises ``TilewrightError`` where that holds none."""
    return module(Path(path).read_text(), str(path))
