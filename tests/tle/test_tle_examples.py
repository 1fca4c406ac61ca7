"""The programs of ``examples/tle``: each checks itself."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from common import Device

FOLDER = Path(__file__).parents[2] / "examples" / "tle"


def example(name):
    spec = spec_from_file_location(name, FOLDER / f"{name}.py")
    module = module_from_spec(spec)
    # The source of a kernel is found by the module's name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
def test_program(name, backend, monkeypatch, capsys):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    example(name).main()
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("tokens", "experts", "block", "programs"), [(1, 8, 16, 1), (300, 64, 16, 4), (5000, 60, 8, 8)]
)
def test_moe_align(device, tokens, experts, block, programs):
    module = example("moe_align")
    of_tokens = np.random.default_rng(tokens).integers(0, experts, tokens, dtype=np.int32)
    made = []

    def empty(size):
        made.append(device.array(np.full(size, -1, np.int32)))
        return made[-1]

    module.align(device.array(of_tokens), experts, block, empty, programs)
    # Who comes first to an expert is left to chance: backends need not agree.
    ordered, of_blocks, total = (Device.numpy(device, array).copy() for array in made[:3])
    places = int(total[0])
    assert places == sum(-(-n // block) * block for n in np.bincount(of_tokens, minlength=experts))
    there = ordered[:places] < tokens
    np.testing.assert_array_equal(np.sort(ordered[:places][there]), np.arange(tokens))
    owners = np.repeat(of_blocks[: places // block], block)
    np.testing.assert_array_equal(of_tokens[ordered[:places][there]], owners[there])
    assert (ordered[:places][~there] == tokens).all()
