"""The files of the profiler, whose frames are no part of a path of Python's frames."""

from pathlib import Path

from .. import knobs

_HERE = Path(__file__).parent

#: As the code objects name them.
FILES = frozenset([*(str(_HERE / path.relative_to(_HERE)) for path in _HERE.rglob("*.py")), knobs.__file__])
