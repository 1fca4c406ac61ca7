"""The same kernel file under Tilewright and under Triton."""

import functools
import importlib
import re
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

from common import Device  # noqa: E402, F401 - for the scripts that import this one


def load(name: str):
    """The example under Tilewright."""
    return importlib.import_module(name)


def load_for_triton(name: str):
    """The example's own source with Triton imported in Tilewright's place, in it and in the examples that it imports."""
    _write_for_triton(name)
    return importlib.import_module(f"{name}_triton")


def _write_for_triton(name: str) -> None:
    path = _for_triton() / f"{name}_triton.py"
    if path.exists():
        return
    text = (EXAMPLES / f"{name}.py").read_text().replace("import tilewright", "import triton")
    text = text.replace("import triton as triton", "import triton").replace(
        "from tilewright.", "from triton."
    )

    def imported(line: re.Match) -> str:
        source = EXAMPLES / f"{line['module']}.py"
        if not source.exists() or "tilewright" not in source.read_text():
            return line[0]
        _write_for_triton(line["module"])
        return f"from {line['module']}_triton import"

    path.write_text(re.sub(r"^from (?P<module>\w+) import", imported, text, flags=re.MULTILINE))


@functools.cache
def _for_triton() -> Path:
    folder = tempfile.mkdtemp()
    sys.path.insert(0, folder)
    return Path(folder)


def versions() -> str:
    """GPU and versions, for the record."""
    import torch
    import triton

    import tilewright

    return f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}, Tilewright {tilewright.__version__}"
