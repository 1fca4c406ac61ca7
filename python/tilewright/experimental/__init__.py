"""TLE under the names by which programs import it: ``experimental.tle`` and ``experimental.tle.language`` are :mod:`tilewright.tle`."""

import sys

from .. import tle
from ..tle import distributed, dsa, gpu, raw
from ..tle.dsa import ascend
from ..tle.raw import mlir

for _name in ("tle", "tle.language"):
    sys.modules[f"{__name__}.{_name}"] = tle
    for _part in (distributed, dsa, ascend, gpu, raw, mlir):
        sys.modules[f"{__name__}.{_name}{_part.__name__.removeprefix(tle.__name__)}"] = _part

__all__ = ["tle"]
