"""The CPU executor as a backend that programs find by name: what TorchInductor asks of it to run its kernels on the CPU."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.backends import backends
from tilewright.backends.compiler import GPUTarget
from tilewright.compiler import ASTSource, make_backend

CPU = GPUTarget("cpu", "", 32)


@triton.jit
def halve(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) / 2, mask=i < n)


SOURCE = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}


@pytest.mark.parametrize("place", [None, "interp", "ptxsim"])
def test_a_kernel_is_compiled_and_run_on_a_grid(monkeypatch, place):
    if place is not None:
        monkeypatch.setenv("TILEWRIGHT_BACKEND", place)
    kernel = triton.compile(ASTSource(halve, SOURCE, {"BLOCK": 32}), target=CPU, options={"num_warps": 2})
    assert ("ptx" in kernel.asm) == (place == "ptxsim") and kernel.metadata.num_warps == 2
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    kernel.run(4, 1, 1, 0, kernel.function, kernel.packed_metadata, None, None, None, x, y, 100)
    np.testing.assert_array_equal(y, x / 2)


def test_what_is_asked_of_it():
    backend = make_backend(CPU)
    assert isinstance(backend, backends["cpu"].compiler) and "cpu" in backend.hash()
    assert vars(backend.parse_options({"num_warps": 8, "other": 1}))["num_warps"] == 8
    with pytest.warns(UserWarning, match="nothing reads the option waves_per_cpu"):
        triton.compile(ASTSource(halve, SOURCE, {"BLOCK": 32}), target=CPU, options={"waves_per_cpu": 2})


def test_a_program_can_choose_its_driver():
    driver = backends["cpu"].driver
    assert not driver.is_active()
    triton.runtime.driver.set_active(driver())
    try:
        active = triton.runtime.driver.active
        assert active.get_current_target().backend == "cpu" and active.get_current_device() == 0
        assert active.utils.get_device_properties(0)["multiprocessor_count"] >= 1
        assert active.map_python_to_cpp_type("*fp32") == "void*"
        kernel = triton.compile(ASTSource(halve, SOURCE, {"BLOCK": 32}))
        assert kernel.metadata.target.backend == "interp" and list(kernel.asm) == ["ttir"]
        with pytest.raises(ValueError, match="no CPU 3"):
            active.set_current_device(3)
    finally:
        triton.runtime.driver.reset_active()


@triton.jit
def part(x, i, out, n, N: tl.constexpr, MASKED: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + tl.load(i + at), mask=at < n)
    if x.dtype.element_ty == tl.float32:
        value = tl.where(at < n, value, tl.atomic_add(x + at, 0.0, mask=at < n))
    tl.store(out + at, value, mask=(at < n) | (not MASKED))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.int64])
@pytest.mark.parametrize("indices", [np.arange(8), np.arange(8)[::-1] * 3 % 8])
@pytest.mark.parametrize("n", [0, 5, 8])
def test_what_a_load_leaves_out_may_be_seen(monkeypatch, dtype, indices, n):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    x, i = np.arange(8).astype(dtype), indices.astype(np.int32)
    results = {}
    for poison in ["", "0", "1"]:
        monkeypatch.setenv("TILEWRIGHT_POISON", poison)
        for masked in [False, True]:
            out = np.full(8, 9, dtype)
            part[(1,)](x, i, out, n, 8, masked)
            np.testing.assert_array_equal(out[:n], x[i[:n]])
            results[poison, masked] = out[n:]
        np.testing.assert_array_equal(results[poison, True], 9)
    assert (results["", False] == 0).all() and (results["0", False] == 0).all()
    seen = results["1", False]
    assert np.isnan(seen).all() if np.dtype(dtype).kind == "f" else (seen < -90).all()
