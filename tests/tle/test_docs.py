"""The examples of a page run as one program, in their order: `docs/tle.md`, `docs/tle-raw.md`, `docs/tle-dsa.md`, `docs/distributed.md`,
`docs/warp-level.md`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
@pytest.mark.parametrize("page,least", [("tle", 10), ("tle-raw", 6), ("distributed", 2), ("warp-level", 4)])
def test_examples(backend, page, least, tmp_path):
    run(backend, page, least, tmp_path)


def test_examples_of_named_memories(tmp_path):
    run("interp", "tle-dsa", 3, tmp_path)


def run(backend, page, least, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL)
    assert len(blocks) >= least
    program = tmp_path / "page.py"
    program.write_text("\n".join([*blocks, 'print("all")']))
    environment = {**os.environ, "TILEWRIGHT_BACKEND": backend}
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, env=environment)
    assert done.stdout == "all\n", done.stderr
