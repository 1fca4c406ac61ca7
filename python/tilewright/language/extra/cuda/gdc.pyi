# Made by scripts/stubs.py from gdc.py; `make stubs` makes it anew.
import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any, Literal, TypeAlias, overload

from ...core import _AnyDtype, _Flag, _Function, _Int, _Shape, _Text, _Value, _Values, constexpr, tensor

def gdc_wait() -> None: ...
def gdc_launch_dependents() -> None: ...
