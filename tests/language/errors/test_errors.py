"""Wrong kernels and calls: each case of ``cases/`` raises what its snapshot says, and the process lives on.

``TILEWRIGHT_BLESS=1`` writes the snapshots anew.
"""

import importlib.util
import os
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = sorted((HERE / "cases").glob("*.py"))


def normalized(message: str) -> str:
    """The message without what differs between machines and runs: folders and addresses."""
    message = message.replace(str(HERE / "cases") + "/", "")
    return re.sub(r"0x[0-9a-f]+", "0x…", message).rstrip() + "\n"


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_error(path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    spec = importlib.util.spec_from_file_location(f"error_case_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(Exception) as caught:
        module.call()
    found = normalized(f"{type(caught.value).__name__}\n{caught.value}")
    snapshot = path.with_suffix(".txt")
    if os.environ.get("TILEWRIGHT_BLESS"):
        snapshot.write_text(found)
    assert snapshot.exists(), f"no snapshot; TILEWRIGHT_BLESS=1 writes it:\n{found}"
    assert found == snapshot.read_text()
