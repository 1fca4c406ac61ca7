"""Functions of a program in the place of `JITFunction.run` and `JITFunction._do_compile`: on the class, on a kernel, in a class of its own."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.jit import JITFunction


def scale(x_ptr, out_ptr, by, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * by)


def ran(kernel, by=3.0, n=32, **options):
    x, out = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    compiled = kernel[(1,)](x, out, by, n, **options)
    np.testing.assert_array_equal(out, x * by)
    return compiled


@pytest.mark.parametrize("where", ["object", "class", "copy", "subclass"])
def test_run(where, monkeypatch):
    """`kernel[grid]`, `warmup` and wrappers of kernels call it."""
    kernel, seen = triton.jit(scale), []

    def run(self, *args, grid, warmup=False, **kwargs):
        seen.append((grid, warmup))
        return original(self, *args, grid=grid, warmup=warmup, **kwargs)

    original = JITFunction.run
    ran(kernel)
    if where == "class":
        monkeypatch.setattr(JITFunction, "run", run)
    elif where == "subclass":
        kernel = type("Traced", (JITFunction,), {"run": run})(scale)
    else:
        kernel.run = run.__get__(kernel)
        kernel = copy.copy(kernel) if where == "copy" else kernel
    ran(kernel)
    kernel.warmup(np.float32, np.float32, 1.0, 64, grid=(2,))
    tuned = triton.autotune([triton.Config({}, num_warps=2)], key=[])(kernel)
    ran(tuned)
    assert seen == [((1,), False), ((2,), True), ((1,), False)]
    if where == "class":
        monkeypatch.undo()
        ran(kernel)
        assert len(seen) == 3


@pytest.fixture
def compiles(monkeypatch):
    """What a function in the place of `_do_compile` is called with, for each compilation."""
    original, seen = JITFunction._do_compile, []

    def compiled(self, key, signature, device, constexprs, options, attrs, warmup):
        seen.append((key, signature, constexprs, options, attrs, warmup))
        return original(self, key, signature, device, constexprs, options, attrs, warmup)

    monkeypatch.setattr(JITFunction, "_do_compile", compiled)
    return seen


@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
def test_do_compile(compiles, monkeypatch, backend):
    """It is called for each specialization that is not there, and what it gives is launched."""
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    kernel = triton.jit(scale)
    first = ran(kernel, num_warps=2)
    assert ran(kernel, num_warps=2) is first and len(compiles) == 1
    key, signature, constexprs, options, attrs, warmup = compiles[0]
    assert signature == {"x_ptr": "*fp32", "out_ptr": "*fp32", "by": "fp32", "N": "constexpr"}
    assert constexprs == {(3,): 32} and options.num_warps == 2 and not warmup and isinstance(key, str)
    assert attrs[0,] == [["tt.divisibility", 16]]
    ran(kernel, n=64)
    kernel.warmup(np.float32, np.float32, 1.0, 128, grid=(1,))
    assert len(compiles) == 3 and compiles[2][-1]
    kernel.warmup(np.float32, np.float32, 1.0, 128, grid=(1,), target="cuda:80")
    assert len(compiles) == 4


def test_what_hooks_see_of_a_replaced_compilation(compiles, monkeypatch):
    """Hooks see what the call was for, and it compiles for where the call runs, whatever is compiled for without a launch."""
    seen = []
    monkeypatch.setattr(
        triton.knobs.runtime, "jit_cache_hook", lambda **told: seen.append(told["is_manual_warmup"])
    )
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    kernel = triton.jit(scale)
    ran(kernel)
    assert seen == [False]
    kernel.warmup(np.float32, np.float32, 1.0, 64, grid=(1,))
    assert seen == [False, True] and [args[-1] for args in compiles] == seen
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "")
    monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:80")
    assert "ptx" not in ran(triton.jit(scale)).asm
    assert triton.jit(scale).warmup(np.float32, np.float32, 1.0, 64, grid=(1,)).asm["ptx"]


def test_do_compile_of_another_kernel(monkeypatch):
    """A function in its place may launch kernels, for which it is called, too."""
    original, other, seen = JITFunction._do_compile, triton.jit(scale), []

    def compiled(self, *args):
        seen.append(self)
        if self is not other:
            ran(other)
        return original(self, *args)

    monkeypatch.setattr(JITFunction, "_do_compile", compiled)
    kernel = triton.jit(scale)
    ran(kernel)
    assert seen == [kernel, other]


def test_do_compile_while_tuning(compiles):
    tuned = triton.autotune([triton.Config({}, num_warps=n) for n in (1, 2)], key=[])(triton.jit(scale))
    ran(tuned)
    assert sorted(options.num_warps for _, _, _, options, _, _ in compiles) == [1, 2]


def test_do_compile_changes_options(monkeypatch):
    """What it hands on is what is compiled."""
    original = JITFunction._do_compile

    def with_eight_warps(self, key, signature, device, constexprs, options, attrs, warmup):
        options.num_warps = 8
        return original(self, key, signature, device, constexprs, options, attrs, warmup)

    monkeypatch.setattr(JITFunction, "_do_compile", with_eight_warps)
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    kernel = triton.jit(scale)
    assert ran(kernel).metadata.num_warps == 8


@pytest.mark.parametrize("target", [None, "cuda:80"])
def test_do_compile_in_another_thread(monkeypatch, target):
    """What it calls compiles for where the call was, in whichever thread."""
    original, seen = JITFunction._do_compile, []

    def compiled(self, *args):
        seen.append(self)
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(original, self, *args).result()

    monkeypatch.setattr(JITFunction, "_do_compile", compiled)
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    kernel = triton.jit(scale)
    if target is None:
        ran(kernel)
    else:
        assert "sm_80" in kernel.warmup(np.float32, np.float32, 1.0, 64, grid=(1,), target=target).asm["ptx"]
    assert seen == [kernel]


def test_do_compile_gives_nothing_to_launch(monkeypatch):
    kernel = triton.jit(scale)
    kernel._do_compile = lambda *args: None
    x = np.zeros(32, np.float32)
    assert kernel[(1,)](x, x, 1.0, 32) is None
    kernel._do_compile = lambda *args: "a kernel"
    with pytest.raises(TypeError, match="`_do_compile` gave str, which is no compiled kernel"):
        kernel[(1,)](x, x, 1.0, 32)
    del kernel._do_compile
    ran(kernel)
