"""Functions beyond the core language that NVIDIA's GPUs have."""

import sys

from .. import libdevice
from .gdc import gdc_launch_dependents, gdc_wait
from .utils import (
    convert_custom_float8,
    convert_custom_float8_sm70,
    convert_custom_float8_sm80,
    globaltimer,
    num_threads,
    num_warps,
    smid,
)

# The same module under the name that programs import it by.
sys.modules[f"{__name__}.libdevice"] = libdevice

__all__ = [
    "convert_custom_float8",
    "convert_custom_float8_sm70",
    "convert_custom_float8_sm80",
    "gdc_launch_dependents",
    "gdc_wait",
    "globaltimer",
    "libdevice",
    "num_threads",
    "num_warps",
    "smid",
]
