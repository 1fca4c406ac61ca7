"""The same kernel file under Tilewright and under Triton."""

import importlib.util
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
    """The example's own source with Triton imported in Tilewright's place."""
    text = (EXAMPLES / f"{name}.py").read_text().replace("import tilewright", "import triton")
    text = text.replace("import triton as triton", "import triton").replace(
        "from tilewright.", "from triton."
    )
    path = Path(tempfile.mkdtemp()) / f"{name}_triton.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def versions() -> str:
    """GPU and versions, for the record."""
    import torch
    import triton

    import tilewright

    return f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}, Tilewright {tilewright.__version__}"
