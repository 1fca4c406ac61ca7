"""The examples' sources as Triton gets them, for comparisons: nothing of Tilewright may be left, not even by an import."""

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import peers


@pytest.mark.parametrize("name", ["persistent_matmul", "flash_attention_backward", "softmax"])
def test_an_example_for_triton_imports_nothing_of_ours(name):
    peers._write_for_triton(name)
    work, seen = [f"{name}_triton"], set()
    while work:
        module = work.pop()
        seen.add(module)
        tree = ast.parse((peers._for_triton() / f"{module}.py").read_text())
        for node in ast.walk(tree):
            imported = []
            if isinstance(node, ast.Import):
                imported = [a.name for a in node.names]
            elif isinstance(node, ast.ImportFrom):
                imported = [node.module]
            assert not [i for i in imported if i.startswith("tilewright")]
            work += [i for i in imported if i.endswith("_triton") and i not in seen]
    if name == "persistent_matmul":
        assert seen == {"persistent_matmul_triton", "matmul_triton"}
