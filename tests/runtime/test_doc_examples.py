"""The examples of the documentation (``docs/examples``): each runs, and everything public has one."""

import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright import testing
from tilewright.language import target_info
from tilewright.language.extra import cuda, libdevice

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "extensions"))

import examples

CELLS = examples.cells()


def public() -> list[str]:
    """What must have an example, as examples spell it: functions and classes, and what descriptors can do."""
    names = []
    spaces = [
        (tl, tl.__all__),
        (target_info, target_info.__all__),
        (cuda, cuda.__all__),
        (libdevice, libdevice.__all__),
        (tilewright, tilewright.__all__),
    ]
    for space, exported in [*spaces, (testing, testing.__all__)]:
        for name in exported:
            value = getattr(space, name)
            if callable(value) and not isinstance(value, tl.dtype) and not inspect.ismodule(value):
                names.append(examples.spelling(f"{space.__name__}.{name}"))
    return names + [
        f"tl.tensor_descriptor.{name}" for name in vars(tl.tensor_descriptor) if not name.startswith("_")
    ]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.names[0])
def test_the_example_runs(cell, monkeypatch, capfd):
    """On the CPU executor, with nothing but the head of its file."""
    monkeypatch.delenv("TILEWRIGHT_BACKEND", raising=False)
    np.random.seed(0)
    cell.run()


def test_everything_public_has_an_example():
    """One each, which says its name."""
    shown = [name for cell in CELLS for name in cell.names]
    assert sorted(shown) == sorted(set(shown))
    assert not set(public()) - set(shown)
    assert not [name for cell in CELLS for name in cell.names if not cell.uses(name)]


def test_examples_are_short():
    """What is read at a glance."""
    assert not [cell.names for cell in CELLS if len([line for line in cell.text.splitlines() if line]) > 25]
    assert not [line for cell in CELLS for line in cell.text.splitlines() if len(line) > 84]
