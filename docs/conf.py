"""The documentation site: `make docs`. Sphinx, as the docstrings' roles are its own and it is the generator with the most upkeep."""

import re
from pathlib import Path

project = "Tilewright"
author = "The Tilewright authors"
html_title = "Tilewright"
html_theme = "furo"
html_show_copyright = False
extensions = ["myst_parser", "sphinx.ext.autodoc"]
# The table of contents of the folder; the front page includes it.
exclude_patterns = ["README.md"]
myst_heading_anchors = 4
# Calls, not objects: `tl.load(pointer, …)`.
add_module_names = False
autodoc_preserve_defaults = True
# Code blocks in languages that Pygments has no lexer for (IR), and a folder named in a text.
suppress_warnings = ["misc.highlighting_failure"]


def _front_page(app, page, content):
    # The front page is README.md, then the tables of contents. Files outside of this folder, and folders, are read in the
    # repository: the site names them, with no link (`log` would lead to `tl.log`).
    if page == "index":
        readme = (Path(app.srcdir) / "README.md").read_text()
        content[0] = re.sub(r"\[([^]]+)\]\((?:\.\./[^)]+|log)\)", r"`\1`", readme) + "\n" + content[0]


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", _front_page)
