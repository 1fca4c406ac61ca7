"""Type checkers, and so editors, know the language: its names, the types of parameters and results, the methods of tensors."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
import tilewright.language as tl
from tilewright.language import _marker

ROOT = Path(__file__).parents[2]
SAMPLE = Path(__file__).parent / "types" / "sample.py"


def errors(path: Path, cache: Path) -> dict[int, str]:
    """The code of the error that mypy finds in each line."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file=",
        f"--cache-dir={cache}",
        "--follow-imports=silent",
    ]
    run = subprocess.run(
        [*command, "--no-error-summary", str(path)],
        capture_output=True,
        text=True,
        cwd=path.parent,
        env={"MYPYPATH": str(ROOT / "python"), "PATH": ""},
        check=False,
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return {
        int(line): code
        for line, code in re.findall(
            rf"^{re.escape(path.name)}:(\d+): error: .*\[([a-z-]+)\]$", run.stdout, re.M
        )
    }


def test_the_stubs_are_current():
    """``make stubs`` has been run since a declaration changed."""
    subprocess.run([sys.executable, ROOT / "scripts" / "stubs.py", "--check"], check=True)


def test_right_and_wrong_uses(tmp_path):
    """Every wrong line of the sample is found, with the kind of error that it has, and no right one."""
    wanted = {
        number: line.split("# error: ")[1]
        for number, line in enumerate(SAMPLE.read_text().splitlines(), 1)
        if "# error: " in line and not line.startswith('"""')
    }
    assert len(wanted) == 14
    assert errors(SAMPLE, tmp_path) == wanted


def test_every_public_name_is_known(tmp_path):
    """The names of ``tilewright`` and ``tilewright.language``, and the methods that tensors have."""
    methods = [
        name for name, value in vars(tl.tensor).items() if isinstance(value, _marker._LanguageFunction)
    ]
    assert "sum" in methods and "exp" in methods and "reshape" in methods
    lines = ["import tilewright", "import tilewright.language as tl"]
    lines += [f"tilewright.{name}" for name in tilewright.__all__]
    lines += [f"tl.{name}" for name in tl.__all__]
    lines += [f"tl.tensor.{name}" for name in methods]
    lines.append("tl.no_such_name")
    names = tmp_path / "names.py"
    names.write_text("\n".join(lines) + "\n")
    assert errors(names, tmp_path / "cache") == {len(lines): "attr-defined"}


@pytest.mark.parametrize("module", ["core", "math", "standard", "random"])
def test_the_package_says_that_it_is_typed(module):
    """Checkers read the stubs of an installed package only beside ``py.typed``."""
    package = Path(tilewright.__file__).parent
    assert (package / "py.typed").exists() and (package / "language" / f"{module}.pyi").exists()
