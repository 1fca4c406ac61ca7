"""The documentation site: `make docs`. Sphinx, as the docstrings' roles are its own and it is the generator with the most upkeep."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "Tilewright"
author = "The Tilewright authors"
html_title = "Tilewright"
html_theme = "furo"
# The longest name of the language fits into a line.
html_theme_options = {"light_css_variables": {"--sidebar-width": "17em"}}
html_show_copyright = False
html_copy_source = False
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "examples"]
templates_path = ["templates"]
html_static_path = ["static"]
html_css_files = ["site.css"]
# The table of contents of the folder, which the front page includes; what is no page.
exclude_patterns = ["README.md", "examples", "extensions", "templates"]
myst_heading_anchors = 4
# Calls, not objects: `tl.load(pointer, …)`.
add_module_names = False
# A line for each parameter of a longer call.
maximum_signature_line_length = 100
autodoc_preserve_defaults = True
# Code blocks in languages that Pygments has no lexer for (IR), and a folder named in a text.
suppress_warnings = ["misc.highlighting_failure"]

REFERENCE = """
| [](reference/language/index) | write kernels: every function of `tl`, with an example |
| [](reference/python/index) | compile, launch, tune and measure them |"""


def _source(app, page, content):
    # The front page is README.md, then the tables of contents. Files outside of this folder, and folders, are read in the
    # repository: the site names them, with no link (`log` would lead to `tl.log`).
    if page == "index":
        readme = (Path(app.srcdir) / "README.md").read_text()
        readme = readme.replace("\n| --- | --- |", "\n| --- | --- |" + REFERENCE)
        content[0] = re.sub(r"\[([^]]+)\]\((?:\.\./[^)]+|log)\)", r"`\1`", readme) + "\n" + content[0]
    # A page is called by its title.
    content[0] = re.sub(r"\[[\w-]+\.md\]\(([\w-]+\.md)\)", r"[](\1)", content[0])


def _short_navigation(app, page, template, context, doctree):
    # The theme lays all of the navigation into every page: with a page for each function, most of the time that the site takes.
    toctree = context["toctree"]
    context["toctree"] = lambda **options: toctree(**options | {"collapse": True})


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", _source)
    app.connect("html-page-context", _short_navigation, priority=100)
