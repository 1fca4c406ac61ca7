"""Random kernels: every backend against the CPU executor."""

import importlib.util
import os
import random

import numpy as np
import pytest
from random_kernels import DTYPES, Kernel

SEEDS = int(os.environ.get("TILEWRIGHT_RANDOM_KERNELS", "100"))


def arrays(seed, kernel):
    rng = np.random.default_rng(seed)
    ins = [rng.integers(-8, 9, n).astype(DTYPES[kind]) for _, n, kind in kernel.inputs]
    return ins, [np.full(n, 77, DTYPES[kind]) for _, n, kind in kernel.outputs]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_kernel(device, seed, tmp_path, monkeypatch):
    rng = random.Random(seed)
    kernel = Kernel(rng)
    warps = rng.choice([1, 2, 4, 8])
    ctas = rng.choice([1, 1, 2, 4])
    path = tmp_path / f"random_{seed}.py"
    path.write_text(kernel.source())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    ins, outs = arrays(seed, kernel)
    there = [device.array(a) for a in ins + outs]
    module.kernel[(1,)](*there, num_warps=warps, num_ctas=ctas)
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    module.kernel[(1,)](*ins, *outs, num_warps=warps)
    for (name, _, _), got, want in zip(kernel.outputs, there[len(ins) :], outs, strict=True):
        np.testing.assert_array_equal(
            device.numpy(got),
            want,
            err_msg=f"{name}, {warps} warps, {ctas} CTAs:\n{kernel.source()}",
        )
