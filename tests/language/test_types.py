"""Type checkers, and so editors, know the language: its names, the types of parameters and results, the methods of tensors."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
import tilewright.language as tl
from tilewright import _tilewright, testing  # noqa: F401
from tilewright.language import _marker
from tilewright.language.extra import cuda, libdevice  # noqa: F401

ROOT = Path(__file__).parents[2]
SAMPLES = Path(__file__).parent / "types"


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


@pytest.mark.parametrize(("sample", "count"), [("kernel", 14), ("host", 19)])
def test_right_and_wrong_uses(tmp_path, sample, count):
    """Every wrong line of the sample is found, with the kind of error that it has, and no right one."""
    path = SAMPLES / f"{sample}.py"
    wanted = {
        number: line.split("# error: ")[1]
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if "# error: " in line and not line.startswith('"""')
    }
    assert len(wanted) == count
    assert errors(path, tmp_path) == wanted


def test_every_public_name_is_known(tmp_path):
    """The names of each module, and the methods that tensors have."""
    # Without those that TLE adds where it is imported.
    methods = [
        name
        for name, value in vars(tl.tensor).items()
        if isinstance(value, _marker._LanguageFunction) and ".tle" not in value.__module__
    ]
    assert "sum" in methods and "exp" in methods and "reshape" in methods
    lines = ["import tilewright", "import tilewright.language as tl", "from tilewright import testing"]
    lines += ["from tilewright.language.extra import cuda, libdevice"]
    for module in ("tilewright", "testing", "tl", "tl.target_info", "cuda", "libdevice"):
        lines += [f"{module}.{name}" for name in eval(module).__all__]
    lines += [f"tl.tensor.{name}" for name in methods]
    unknown = [f"{module}.no_such_name" for module in ("tilewright", "tl", "cuda", "libdevice", "tl.tensor")]
    names = tmp_path / "names.py"
    names.write_text("\n".join(lines + unknown) + "\n")
    wanted = dict.fromkeys(range(len(lines) + 1, len(lines + unknown) + 1), "attr-defined")
    assert errors(names, tmp_path / "cache") == wanted


def test_the_stub_of_the_extension_has_what_it_has():
    """Names, and those of parameters; the stub is written by hand."""
    stub = ast.parse((Path(tilewright.__file__).parent / "_tilewright.pyi").read_text())

    def parameters(node):
        return [a.arg for a in node.args.args]

    declared, methods = {}, {}
    for node in stub.body:
        if isinstance(node, ast.FunctionDef):
            declared[node.name] = parameters(node)
        elif isinstance(node, ast.ClassDef):
            methods[node.name] = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    there = {name: getattr(_tilewright, name) for name in dir(_tilewright) if not name.startswith("__")}
    functions = {name: value for name, value in there.items() if inspect.isbuiltin(value)}
    assert declared == {name: list(inspect.signature(value).parameters) for name, value in functions.items()}
    classes = {name: value for name, value in there.items() if inspect.isclass(value)}
    assert methods.keys() == classes.keys()
    for name, value in classes.items():
        own = {n for n in vars(value) if not n.startswith("__")}
        assert own - {"required", "limit", "name"} <= methods[name] <= own | set(dir(value)) | {"__getattr__"}


def test_wheels_carry_the_stubs():
    """Checkers read them only beside ``py.typed``. A wheel has every file below ``python`` that git does not ignore."""
    git = ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "python"]
    files = subprocess.run(git, capture_output=True, text=True, check=True).stdout.split()
    assert "python/tilewright/py.typed" in files
    stubs = {str(path.relative_to(ROOT)) for path in (ROOT / "python").rglob("*.pyi")}
    assert len(stubs) == 10 and stubs <= set(files)
