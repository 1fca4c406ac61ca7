"""The documentation site (``make docs``) builds without a warning and has every public name."""

import re
import subprocess
import sys
from pathlib import Path

import tilewright.language as tl

DOCS = Path(__file__).parents[2] / "docs"


def test_every_function_of_the_language_has_its_place():
    """Functions and classes stand in one group of the reference; dtypes are values, which :class:`dtype` tells about."""
    listed = re.findall(
        r"^\.\. auto(?:function|class):: (\w+)$", (DOCS / "reference" / "language.rst").read_text(), re.M
    )
    public = [
        name
        for name in tl.__all__
        if callable(getattr(tl, name)) and not isinstance(getattr(tl, name), tl.dtype)
    ]
    assert sorted(listed) == sorted(public)


def test_the_site_builds(tmp_path):
    """A broken link, a page in no table of contents or a docstring that is no reStructuredText is an error."""
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-d",
        tmp_path / "trees",
        DOCS,
        tmp_path / "site",
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    page = (tmp_path / "site" / "reference" / "language.html").read_text()
    assert 'id="tilewright.language.load"' in page and "padding_option" in page
