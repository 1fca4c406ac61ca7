"""Runs every language test on each backend present: ``interp`` and ``ptxsim`` always, ``cuda`` where torch sees a GPU.

``TILEWRIGHT_TEST_BACKENDS`` (comma-separated) chooses others. What a test takes back with ``device.numpy`` must agree between
the backends, and no test may leave one out.
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import agreement
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


class Recorder(Device):
    """A device that remembers what was read back from it.

    A test with a reason to differ more than its dtype's rounding between backends sets ``rounding`` (a share of the
    element or of its row's spread, as ``agreement.ROUNDING`` is).
    """

    def __init__(self, backend: str):
        super().__init__(cuda=backend == "cuda")
        self.backend = backend
        self.outputs = []
        self.rounding = None

    def numpy(self, array):
        result = super().numpy(array)
        self.outputs.append(result.copy())
        return result


@pytest.fixture(params=_backends())
def device(request, monkeypatch):
    """A :class:`common.Device` of one backend."""
    if request.param != "cuda":
        monkeypatch.setenv("TILEWRIGHT_BACKEND", request.param)
    return Recorder(request.param)


@pytest.fixture(scope="session", autouse=True)
def outputs_folder(tmp_path_factory):
    """A folder that is the same in all of xdist's processes."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "language-outputs"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """After a test has passed, its outputs must be those of the other backends."""
    try:
        result = yield
    except pytest.skip.Exception as skipped:
        raise AssertionError(f"every language test runs on every backend: {skipped}") from None
    if device := getattr(item, "funcargs", {}).get("device"):
        agreement.check(
            item.funcargs["outputs_folder"], item.nodeid, device.backend, device.outputs, device.rounding
        )
    return result
