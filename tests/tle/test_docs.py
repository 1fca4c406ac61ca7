"""The examples of `docs/tle.md` run as one program, in the order of the page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tle.md"


@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
def test_examples(backend, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 9
    program = tmp_path / "tle.py"
    program.write_text("\n".join([*blocks, 'print("all")']))
    environment = {**os.environ, "TILEWRIGHT_BACKEND": backend}
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, env=environment)
    assert done.stdout == "all\n", done.stderr
