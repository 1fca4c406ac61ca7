"""The examples of the reference: cells of the files in ``docs/examples``, and the Sphinx extension that puts each below what it shows.

A file is a topic. Its head imports what its cells use, and may define what they share; a cell begins with ``# %%`` and the names of what it shows, as the code spells
them, and needs the head alone.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
MARK = "# %% "

#: What names of the package are called in examples; the longest that fits holds.
SPELLINGS = {
    "tilewright.language.extra.libdevice.": "libdevice.",
    "tilewright.language.extra.cuda.": "cuda.",
    "tilewright.language.": "tl.",
    "tilewright.tools.tensor_descriptor.": "",
    "tilewright.testing.simulate_ptx": "simulate_ptx",
    "tilewright.testing.tensor_map": "tensor_map",
    "tilewright.": "triton.",
}

#: Imports that the reference says once, for all examples.
KNOWN = ("np", "triton", "tl")


@dataclass(frozen=True)
class Cell:
    """A cell: where it stands, what it shows and its text."""

    path: Path
    line: int
    names: tuple[str, ...]
    text: str

    @property
    def head(self) -> str:
        """What stands above the file's first cell."""
        return self.path.read_text().partition("\n" + MARK)[0]

    def shown(self) -> list[str]:
        """The lines to read: the imports that it uses, but those that everybody knows, and its text.

        A head that defines something stands on the page, above all cells.
        """
        head, text = ast.parse(self.head).body, self.text.strip("\n").replace("\n\n\n", "\n\n").splitlines()
        if any(isinstance(node, ast.FunctionDef) for node in head):
            return text
        used = {n.id for n in ast.walk(ast.parse(self.text)) if isinstance(n, ast.Name)} - {*KNOWN}
        imports = []
        for node in head:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                node.names = [n for n in node.names if (n.asname or n.name) in used]
                imports += [ast.unparse(node)] if node.names else []
        return [*imports, "", *text] if imports else text

    def run(self) -> None:
        """Runs it below the head of its file. Its lines keep their numbers, as kernels are found by them."""
        space = {"__name__": self.path.stem}
        exec(compile(self.head, self.path, "exec"), space)
        exec(compile("\n" * self.line + self.text, self.path, "exec"), space)

    def uses(self, name: str) -> bool:
        """Whether the code says the name; of a method, whether something of that name is called."""
        nodes = [
            node for node in ast.walk(ast.parse(self.text)) if isinstance(node, (ast.Attribute, ast.Name))
        ]
        if name.startswith(("tl.tensor.", "tl.tensor_descriptor.", "TensorDescriptor.")):
            return any(
                isinstance(node, ast.Attribute) and node.attr == name.rpartition(".")[2] for node in nodes
            )
        return any(ast.unparse(node) == name for node in nodes)


def cells() -> list[Cell]:
    """Every cell, by file and line."""
    found = []
    for path in sorted(EXAMPLES.glob("*.py")):
        lines = path.read_text().splitlines()
        starts = [number for number, line in enumerate(lines) if line.startswith(MARK)]
        for start, end in zip(starts, [*starts[1:], len(lines)]):
            names = tuple(lines[start].removeprefix(MARK).split(", "))
            text = "\n".join(lines[start + 1 : end]).rstrip()
            found.append(Cell(path, start + 1, names, text))
    return found


def spelling(name: str) -> str:
    """What an object, by its full name, is called in examples."""
    prefix = max((p for p in SPELLINGS if name.startswith(p)), key=len)
    return SPELLINGS[prefix] + name.removeprefix(prefix)


def setup(app):
    """Called by Sphinx."""
    by_name = {name: cell for cell in cells() for name in cell.names}
    # What has shown a cell on a page; what else it shows there refers to that.
    first = {}

    def add(app, what, name, obj, options, lines):
        cell = by_name.get(spelling(name)) if name.startswith("tilewright.") else None
        if cell is None or what == "module":
            return
        before = first.setdefault((app.env.docname, cell), name)
        if before != name:
            lines += ["", f"See the example of :obj:`~{before}`."]
        else:
            lines += ["", ".. rubric:: Example", "", ".. code-block:: python", ""]
            lines += [f"   {line}" for line in cell.shown()] + [""]

    app.connect("autodoc-process-docstring", add)
    return {"parallel_read_safe": True}
