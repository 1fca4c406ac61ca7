"""The tests of TLE run as those of the language: on every backend present, which must agree."""

import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "language"
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[1] / "examples")]

from importlib.util import module_from_spec, spec_from_file_location  # noqa: E402

import pytest  # noqa: E402

_SPEC = spec_from_file_location("language_conftest", FOLDER / "conftest.py")
_LANGUAGE = module_from_spec(_SPEC)
_SPEC.loader.exec_module(_LANGUAGE)


@pytest.fixture(params=[backend for backend in _LANGUAGE._backends() if backend != "interp"])
def native(request, monkeypatch):
    """The same for what the CPU executor does not run: code in PTX, LLVM IR and CUDA."""
    if request.param != "cuda":
        monkeypatch.setenv("TILEWRIGHT_BACKEND", request.param)
    return _LANGUAGE.Recorder(request.param)


device = _LANGUAGE.device
outputs_folder = _LANGUAGE.outputs_folder
pytest_runtest_call = _LANGUAGE.pytest_runtest_call
