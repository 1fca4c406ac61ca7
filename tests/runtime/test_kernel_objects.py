"""Kernels as Python objects: hooks around their launches, copies, pickles."""

import copy
import gc
import linecache
import pickle

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")


@triton.jit(do_not_specialize=["n"])
def fill(x, n, BLOCK: tl.constexpr = 4):
    """Fills."""
    tl.store(x + tl.arange(0, BLOCK), n)


@triton.autotune([triton.Config({"BLOCK": 2}), triton.Config({"BLOCK": 4})], key=[])
@triton.heuristics({"n": lambda args: 5})
@triton.jit
def tuned(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), n)


@triton.jit
def out_of_bounds(x):
    tl.store(x + 100, 1)


@pytest.mark.parametrize("call", ["launch", "run"])
def test_pre_run_hooks(call):
    kernel, seen = copy.copy(fill), []
    kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append((len(args), kwargs)))
    kernel.add_pre_run_hook(lambda x, *_, **__: seen.append(x[0]))
    x = np.zeros(4, np.int32)
    if call == "launch":
        kernel[(1,)](x, 3, BLOCK=2, num_warps=2)
    else:
        kernel.run(x, 3, BLOCK=2, num_warps=2, grid=(1,))
    # The hooks came first, and got the launch's options, too.
    assert seen == [(2, {"BLOCK": 2, "num_warps": 2}), 0] and x.tolist() == [3, 3, 0, 0]
    kernel.warmup(x, 3, grid=(1,))
    assert len(seen) == 2


def test_a_hook_that_fails_stops_the_launch():
    kernel, x = copy.copy(fill), np.zeros(4, np.int32)
    kernel.add_pre_run_hook(lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        kernel[(1,)](x, 3)
    assert not x.any()


def test_the_exit_hook_runs_when_a_launch_fails():
    runtime, seen = triton.knobs.runtime, []
    runtime.launch_enter_hook.add(lambda metadata: seen.append("enter"))
    runtime.launch_exit_hook.add(lambda metadata: seen.append("exit"))
    try:
        with pytest.raises(triton.KernelError, match="bounds"):
            out_of_bounds[(1,)](np.zeros(4, np.int32))
    finally:
        runtime.launch_enter_hook = runtime.launch_exit_hook = None
    assert seen == ["enter", "exit"]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies(copied):
    other, x = copied(fill), np.zeros(4, np.int32)
    assert other is not fill and other.fn is fill.fn
    assert (other.__name__, other.__doc__, other.do_not_specialize) == ("fill", "Fills.", ["n"])
    other.add_pre_run_hook(lambda *_, **__: 1 // 0)
    fill[(1,)](x, 7)
    assert x.tolist() == [7] * 4
    with pytest.raises(ZeroDivisionError):
        other[(1,)](x, 7)


def test_a_copy_has_replaced_source_and_its_own_from_then_on():
    one, x = copy.copy(fill), np.zeros(4, np.int32)
    one._unsafe_update_src(fill.src.replace(", n)", ", n + 1)"))
    two = copy.copy(one)
    two._unsafe_update_src(fill.src.replace(", n)", ", n + 2)"))
    got = []
    for kernel in (fill, one, two, copy.copy(one)):
        kernel[(1,)](x, 0)
        got.append(int(x[0]))
    assert got == [0, 1, 2, 1]


def test_pickles():
    assert pickle.loads(pickle.dumps(fill)) is fill
    assert pickle.loads(pickle.dumps({"kernel": tuned.fn.fn}))["kernel"] is tuned.fn.fn
    other, x = copy.deepcopy(tuned), np.zeros(4, np.int32)
    other[(1,)](x)
    assert x[0] == 5

    @triton.jit
    def local(x):
        pass

    with pytest.raises(pickle.PicklingError, match="top of a module"):
        pickle.dumps(local)
    with pytest.raises(pickle.PicklingError, match="is not it"):
        pickle.dumps(copy.copy(fill))


@triton.jit(
    repr=lambda of: (
        f"fill_{of.signature['x'].strip('*')}_{of.constants['BLOCK']}.{'one' if 'n' in of.constants else 'n'}"
    )
)
def fill_named(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), n)


@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
def test_a_specialization_is_called_what_repr_gives(monkeypatch, backend):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    x = np.zeros(16, np.float32)
    kernel = fill_named[(1,)](x, 1, BLOCK=16)
    assert kernel.name == kernel.metadata.name == "fill_fp32_16_one" and (x == 1).all()
    assert "@fill_fp32_16_one(" in kernel.asm["ttir"]
    assert fill_named[(1,)](x, 5, BLOCK=16).name == "fill_fp32_16_n" and (x == 5).all()


def test_what_exec_runs_has_its_source_in_linecache(monkeypatch):
    text = "@triton.jit\ndef given(x, n):\n    tl.store(x, n)\n"
    names = {"triton": triton, "tl": tl}
    x = np.zeros(4, np.int32)
    exec(compile(text, "<given>", "exec"), names)
    for ask in (
        lambda: names["given"][(1,)](x, 3),
        lambda: names["given"].src,
        lambda: names["given"].cache_key,
    ):
        with pytest.raises(OSError, match=r"source of kernel given cannot be read.*linecache\.cache"):
            ask()
    monkeypatch.setitem(linecache.cache, "<given>", (len(text), None, text.splitlines(True), "<given>"))
    names["given"][(1,)](x, 3)
    assert x[0] == 3 and names["given"].src.startswith("def given")


@triton.jit
def number(out, N: tl.constexpr):
    tl.store(out, N)


def test_kernels_are_made_while_python_collects():
    """A collection begins while a kernel is made of which there is nothing yet (it ended the process)."""
    out, others = np.zeros(1, np.int32), []
    before = gc.get_threshold()
    try:
        for n in range(40):
            others += [{} for _ in range(100)]  # none of the dictionaries that Python has in store is left
            gc.set_threshold(1 + n % 9)  # one of these collects where the kernel's own is made
            number[(1,)](out, N=n)
            assert out[0] == n
    finally:
        gc.set_threshold(*before)
