"""Every example passes its own check on every backend."""

import importlib

import pytest

EXAMPLES = [
    "argmax",
    "calls",
    "dropout",
    "flash_attention",
    "histogram",
    "layer_norm",
    "matmul",
    "softmax",
    "vector_add",
]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, device):
    importlib.import_module(name).example(device)
