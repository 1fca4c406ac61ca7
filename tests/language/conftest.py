"""Runs every language test on each backend present: ``interp`` and ``ptxsim`` always, ``cuda`` where torch sees a GPU.

``TILEWRIGHT_TEST_BACKENDS`` (comma-separated) chooses others.
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from common import Device


def _backends() -> list[str]:
    if chosen := os.environ.get("TILEWRIGHT_TEST_BACKENDS"):
        return chosen.split(",")
    try:
        import torch

        present = ["cuda"] if torch.cuda.is_available() else []
    except ImportError:
        present = []
    return ["interp", "ptxsim", *present]


@pytest.fixture(params=_backends())
def device(request, monkeypatch):
    """A :class:`common.Device` of one backend."""
    if request.param != "cuda":
        monkeypatch.setenv("TILEWRIGHT_BACKEND", request.param)
    return Device(cuda=request.param == "cuda")
