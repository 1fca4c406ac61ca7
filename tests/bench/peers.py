"""The same kernel file under Tilewright and under Triton."""

import functools
import importlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

from common import Device  # noqa: E402, F401 - for the scripts that import this one


def load(name: str, copy: int = 0):
    """The example under Tilewright; of each ``copy`` the kernels are compiled and loaded by themselves."""
    return _copy_of(importlib.import_module(name), copy)


def load_for_triton(name: str, copy: int = 0):
    """The example's own source with Triton imported in Tilewright's place, in it and in the examples that it imports."""
    _write_for_triton(name)
    return _copy_of(importlib.import_module(f"{name}_triton"), copy)


def _copy_of(module, copy: int):
    if copy == 0:
        return module
    name = f"{module.__name__}_{copy}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, module.__file__)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


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


def one_ptxas() -> str:
    """Lets both compilers assemble with one ``ptxas``: that of ``TRITON_PTXAS_PATH``, which both obey, or else Triton's own. Gives its version."""
    if "TRITON_PTXAS_PATH" not in os.environ:
        import triton

        os.environ["TRITON_PTXAS_PATH"] = triton.knobs.nvidia.ptxas.path
    path = os.environ["TRITON_PTXAS_PATH"]
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"V(\d+\.\d+\.\d+)", said)[1]


def commit() -> str:
    """Of the checkout that measures, where it is one; ``COMMIT`` says it for a copy of other files."""
    if said := os.environ.get("COMMIT"):
        return said
    said = subprocess.run(["git", "-C", EXAMPLES, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)  # fmt: skip
    return said.stdout.strip()


def machine() -> dict:
    """The processor and versions, for the record of what needs no GPU."""
    import tilewright

    model = [line.split(": ")[1] for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]  # fmt: skip
    return {
        "cpu": model[0],
        "cores": os.cpu_count(),
        "load average": round(os.getloadavg()[0], 1),
        "date": time.strftime("%Y-%m-%d"),
        "tilewright": tilewright.__version__,
        "commit": commit(),
    }


def about(beside_triton: bool = True) -> dict:
    """GPU and versions, for the record; from here on both compilers have one ``ptxas``, where there are two."""
    import torch
    import triton

    import tilewright

    query = [
        "nvidia-smi",
        "--query-gpu=driver_version,power.limit,clocks.max.sm,uuid",
        "--format=csv,noheader",
    ]
    driver, limit, clock, uuid = subprocess.run(query, capture_output=True, text=True).stdout.strip().split("\n")[0].split(", ")  # fmt: skip
    peer = {"ptxas": one_ptxas(), "triton": triton.__version__} if beside_triton else {}
    return {
        "gpu": torch.cuda.get_device_name(),
        "uuid": uuid,
        "date": time.strftime("%Y-%m-%d"),
        "driver": driver,
        "power limit": limit,
        "largest clock": clock,
        "torch": torch.__version__,
        **peer,
        "tilewright": tilewright.__version__,
        "commit": commit(),
        "order of turns": "each round's own",
    }


def versions() -> str:
    """The same in a line."""
    return ", ".join(f"{name} {value}" for name, value in about().items())
