"""The documentation site (``make docs``) builds without a warning and has a page for everything public."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import tilewright
import tilewright.language as tl
from tilewright import testing
from tilewright.language import target_info
from tilewright.language.extra import cuda, libdevice

DOCS = Path(__file__).parents[2] / "docs"
SPACES = [tl, target_info, cuda, tilewright, testing]


def public() -> list[str]:
    """Full names of functions and classes; dtypes are values, which :class:`dtype` tells about."""
    return [
        f"{space.__name__}.{name}"
        for space in SPACES
        for name in space.__all__
        if callable(getattr(space, name)) and not isinstance(getattr(space, name), tl.dtype)
    ]


def listed() -> list[str]:
    """What the tables of the reference list, which is what has a page."""
    names = []
    for page in sorted((DOCS / "reference").glob("*/*.rst")):
        text = page.read_text()
        module = "".join(re.findall(r"^\.\. currentmodule:: (.+)$", text, re.M))
        for table in re.findall(r"^\.\. autosummary::\n(?:   :.+\n)+\n((?:   .+\n)+)", text, re.M):
            names += [f"{module}.{name}" for name in table.split()]
    return names


def test_everything_public_has_its_place():
    """One table lists it. ``TensorDescriptor`` is reached by its module alone."""
    assert sorted(listed()) == sorted([*public(), "tilewright.tools.tensor_descriptor.TensorDescriptor"])


def test_every_dtype_is_named():
    """On the page of types."""
    page = (DOCS / "reference" / "language" / "types.rst").read_text()
    assert [n for n in tl.__all__ if isinstance(getattr(tl, n), tl.dtype) and f"``{n}``" not in page] == []


def test_the_site_builds(tmp_path):
    """A broken link, a page in no table of contents or a docstring that is no reStructuredText is an error."""
    source, site = tmp_path / "docs", tmp_path / "site"
    shutil.copytree(DOCS, source)
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-d",
        tmp_path / "trees",
        source,
        site,
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    pages = {page.stem: page.read_text() for page in (site / "reference").glob("*/api/*.html")}
    assert "padding_option" in pages["tilewright.language.load"]
    assert [name for name in listed() if f'id="{name}"' not in pages[name]] == []
    # Another name of an error refers to it.
    aliases = {"tilewright.InterpreterError", "tilewright.TritonError"}
    assert {name for name in listed() if "Example</p>" not in pages[name]} == aliases
    functions = (site / "reference/language/libdevice.html").read_text()
    assert functions.count("Example</p>") + functions.count("See the example of") == len(libdevice.__all__)
    assert [
        n for n in libdevice.__all__ if f'id="tilewright.language.extra.libdevice.{n}"' not in functions
    ] == []
