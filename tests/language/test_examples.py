"""Every example passes its own check on every backend."""

import importlib

import pytest

EXAMPLES = [
    "argmax",
    "calls",
    "cross_entropy",
    "cumsum",
    "dropout",
    "flash_attention",
    "flash_attention_backward",
    "flash_attention_descriptors",
    "flash_attention_varlen",
    "grouped_matmul",
    "histogram",
    "layer_norm",
    "layer_norm_backward",
    "matmul",
    "paged_attention_warp",
    "paged_decode",
    "persistent_matmul",
    "rms_norm",
    "rope",
    "softmax",
    "sort",
    "sparse_attention",
    "swiglu",
    "transpose",
    "vector_add",
]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, device):
    importlib.import_module(name).example(device)
