"""Kernels in the PTX simulator: findings are errors, or reports with `sanitize=True`."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.backends.compiler import GPUTarget


@pytest.fixture(autouse=True)
def in_the_simulator(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")


@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def double_unmasked(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * 2)


def test_it_runs_what_the_gpu_would():
    x = np.arange(200, dtype=np.float32)
    compiled = double[(4,)](x, 200, BLOCK=64, num_warps=2)
    np.testing.assert_array_equal(x, np.arange(200) * 2)
    assert "ptx" in compiled.asm and "cuda:90" in repr(compiled)
    report = compiled.sim_report
    assert report["findings"] == []
    assert report["counters"]["global_load_bytes"] == 800


def test_the_target_is_chosen_by_the_environment(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:80")
    compiled = double[(1,)](np.zeros(8, np.float32), 8, BLOCK=8)
    assert compiled.metadata.target == GPUTarget("cuda", 80, 32)


def test_a_broken_rule_is_an_error():
    with pytest.raises(triton.KernelError, match="out of bounds") as caught:
        double_unmasked[(1,)](np.zeros(40, np.float32), BLOCK=64)
    assert "test_simulator.py:" in str(caught.value)


def test_sanitize_reports_and_goes_on(capsys):
    x = np.ones(40, np.float32)
    compiled = double_unmasked[(1,)](x, BLOCK=64, sanitize=True)
    assert x.tolist() == [2] * 40
    assert "out of bounds" in capsys.readouterr().err
    kinds = {finding["kind"] for finding in compiled.sim_report["findings"]}
    assert kinds == {"global-bounds"}


def test_what_the_kernel_prints_reaches_python(capsys):
    @triton.jit
    def printing(n):
        tl.device_print("n", n)

    printing[(1,)](7, num_warps=1)
    assert "n: 7" in capsys.readouterr().out


@triton.jit
def corner_kernel(x_ptr, y_ptr, m, stride):
    x = tl.make_tensor_descriptor(x_ptr, [m, 64], [stride, 1], [16, 16])
    y = tl.make_tensor_descriptor(y_ptr, [16, 16], [16, 1], [16, 16])
    y.store([0, 0], x.load([0, 0]))


def test_what_no_tensor_map_can_have_is_reported_with_the_argument(monkeypatch):
    """Of descriptors that the kernel makes from its arguments the launch makes the maps: as the driver would refuse them."""
    monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:90")
    x, y = np.ones((40, 64), np.float16), np.zeros((16, 16), np.float16)
    corner_kernel[(1,)](x, y, 40, 64)
    assert (y == 1).all()
    for stride in -64, 1 << 39:
        says = r"descriptor of argument 'x_ptr' has a stride of .* below 2\^40"
        with pytest.raises(triton.TilewrightError, match=says):
            corner_kernel[(1,)](x, y, 40, stride)
