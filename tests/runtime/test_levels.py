"""`docs/levels.md` shows a kernel at each level of its way to a target with instructions of whole warps; what `tilewright compile` says there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "levels.md"
COMMAND = [sys.executable, "-m", "tilewright"]
LEVEL = re.compile(r"<!-- level: (.*?) -->\n```text\n(.*?)```", re.DOTALL)
KERNEL = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL).group(1)
ARGUMENTS = re.findall(r"--(?:signature|constexpr) \"?([^\s\"]+)", PAGE.read_text())


def compile_kernel(folder, target="xe:pvc", warps=32):
    source = folder / "matmul.py"
    source.write_text(KERNEL)
    signature, *constants = ARGUMENTS
    command = [*COMMAND, "compile", f"{source}::matmul", "--target", target, "--num-warps", str(warps)]
    command += ["--signature", signature, *(word for c in constants for word in ("--constexpr", c))]
    return subprocess.run([*command, "-o", str(folder / "out")], capture_output=True, text=True)


def plain(text):
    """Without places in the source."""
    lines = (re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", line) for line in text.splitlines())
    return "\n".join(line.rstrip() for line in lines if not line.startswith("#loc")) + "\n"


def test_page(tmp_path):
    done = compile_kernel(tmp_path)
    ttir = tmp_path / "out" / "matmul.ttir"
    assert ttir.exists(), done.stderr

    def text(passes):
        if passes == "ttir":
            return plain(ttir.read_text())
        command = [*COMMAND, "opt", str(ttir), "-target=xe:pvc", "-num-warps=32", *passes.split()]
        opt = subprocess.run(command, capture_output=True, text=True)
        assert opt.returncode == 0, opt.stderr
        return plain(opt.stdout)

    page = PAGE.read_text()
    new = LEVEL.sub(lambda m: f"<!-- level: {m[1]} -->\n```text\n{text(m[1])}```", page)
    if os.environ.get("TILEWRIGHT_BLESS", "0") != "0":
        PAGE.write_text(new)
    assert len(LEVEL.findall(page)) == 4
    assert new == PAGE.read_text(), "TILEWRIGHT_BLESS=1 writes the page anew"


def test_all_stages_are_written(tmp_path):
    done = compile_kernel(tmp_path)
    assert done.returncode == 0, done.stderr
    written = {path.name.partition(".")[2] for path in (tmp_path / "out").iterdir()}
    assert {"ttir", "ttgir", "spv", "bin", "asm", "usage.json"} <= written
    ttgir = (tmp_path / "out" / "matmul.ttgir").read_text()
    # ML-Triton, Listing 4.
    assert ttgir.count("= tt.dot ") == 32
    assert ttgir.count("= tt.descriptor_load ") == 3


def test_another_chip_is_another_row(tmp_path):
    """What is the same in the table of facts is compiled alike."""
    texts = []
    for target in ("xe:pvc", "xe:bmg"):
        compile_kernel(tmp_path, target)
        texts.append((tmp_path / "out" / "matmul.ttgir").read_text().replace(target, ""))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("target", ["xe:dg2", "xe"])
def test_no_such_chip(target, tmp_path):
    done = compile_kernel(tmp_path, target)
    assert done.returncode == 1
    assert "there are interp, cuda:80" in done.stderr and "xe:pvc, xe:bmg" in done.stderr
