"""autotune and heuristics."""

import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.compiler.errors import CompileTimeAssertionFailure


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")


def configs(*blocks, **options):
    return [triton.Config({"BLOCK": block}, **options) for block in blocks]


def times(table):
    """A `do_bench` that runs the kernel once and reports the time that `table` has for its block size, which the kernel
    leaves in the array `SEEN`."""

    def bench(run, quantiles):
        run()
        return [table[int(SEEN[0])]] * len(quantiles)

    return bench


SEEN = np.zeros(1, np.int32)


def body(seen, x, n, BLOCK: tl.constexpr):
    tl.store(seen, BLOCK)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(x + i, 1, mask=i < n)


def launch(kernel, x, **options):
    kernel[lambda meta: (triton.cdiv(x.size, meta["BLOCK"]),)](SEEN, x, x.size, **options)


def test_the_fastest_wins_and_is_remembered():
    table = {16: 3.0, 32: 1.0, 64: 2.0}
    kernel = triton.autotune(configs(*table), key=["n"], do_bench=times(table), reset_to_zero=["x"])(
        triton.jit(body)
    )
    x = np.zeros(100, np.int32)
    launch(kernel, x)
    assert kernel.best_config.kwargs == {"BLOCK": 32}
    assert x.tolist() == [1] * 100, "what measuring added must be gone"
    assert SEEN[0] == 32
    table[16] = 0.5
    launch(kernel, x)
    assert kernel.best_config.kwargs == {"BLOCK": 32}, "measured again for the same key"
    launch(kernel, np.zeros(50, np.int32))
    assert kernel.best_config.kwargs == {"BLOCK": 16}, "not measured for a new key"
    launch(kernel, np.zeros(50, np.int64))
    assert len(kernel.cache) == 3, "the dtype is part of the key"


def test_restore_value():
    table = {16: 1.0, 32: 2.0}
    kernel = triton.autotune(configs(*table), key=[], do_bench=times(table), restore_value=["x"])(
        triton.jit(body)
    )
    x = np.full(20, 7, np.int32)
    launch(kernel, x)
    assert x.tolist() == [8] * 20


def test_pruning():
    asked = []

    def early(candidates, named, **kwargs):
        asked.append((len(candidates), named["n"]))
        return candidates[1:]

    table = {16: 1.0, 32: 3.0, 64: 2.0, 128: 1.5}
    kernel = triton.autotune(
        configs(*table),
        key=["n"],
        do_bench=times(table),
        prune_configs_by={
            "early_config_prune": early,
            "perf_model": lambda BLOCK, **_: -BLOCK,
            "top_k": 2,
        },
    )(triton.jit(body))
    launch(kernel, np.zeros(10, np.int32))
    assert asked == [(4, 10)]
    assert kernel.best_config.kwargs == {"BLOCK": 128}
    assert {c.kwargs["BLOCK"] for c in kernel.configs_timings} == {64, 128}


def test_a_configuration_that_does_not_compile_loses():
    @triton.jit
    def picky(seen, x, n, BLOCK: tl.constexpr):
        tl.static_assert(BLOCK < 64, "too large")
        tl.store(seen, BLOCK)

    table = {16: 2.0, 64: 0.0}
    kernel = triton.autotune(configs(*table), key=[], do_bench=times(table))(picky)
    launch(kernel, np.zeros(1, np.int32))
    assert kernel.best_config.kwargs == {"BLOCK": 16}
    kernel = triton.autotune(configs(64, 128), key=[], do_bench=times(table))(picky)
    with pytest.raises(triton.CompilationError, match="none of 2 configurations works"):
        launch(kernel, np.zeros(1, np.int32))


def test_without_a_benchmark_function_it_works_too():
    kernel = triton.autotune(configs(16, 32), key=["n"], reset_to_zero=["x"])(triton.jit(body))
    x = np.zeros(40, np.int32)
    launch(kernel, x)
    assert x.tolist() == [1] * 40


def test_hooks_and_options():
    called = []
    config = triton.Config(
        {"BLOCK": 16}, num_warps=2, num_stages=5, pre_hook=lambda named: called.append(named["BLOCK"])
    )
    kernel = triton.autotune([config], key=[])(triton.jit(body))
    x = np.zeros(4, np.int32)
    compiled = kernel[(1,)](SEEN, x, 4)
    assert called == [16]
    assert (compiled.metadata.num_warps, compiled.metadata.num_stages) == (2, 5)


def test_a_tuned_parameter_may_not_be_given():
    kernel = triton.autotune(configs(16, 32), key=[])(triton.jit(body))
    with pytest.raises(ValueError, match="BLOCK"):
        kernel[(1,)](SEEN, np.zeros(4, np.int32), 4, BLOCK=16)


def test_an_unknown_key_is_left_out_with_a_warning():
    with pytest.warns(RuntimeWarning, match="no parameter is named 'nn'.*did you mean 'n'"):
        kernel = triton.autotune(configs(16, 32), key=["nn"])(triton.jit(body))
    x = np.zeros(4, np.int32)
    kernel[(1,)](SEEN, x, 4)
    assert list(kernel.cache) == [("int32", "int32")]


class TunerOfALibrary(triton.runtime.Autotuner):
    """As libraries write it: Triton's order of parameters, another choice of the configuration, and its own measurements."""

    def __init__(self, fn, arg_names, configs, key, reset_to_zero, restore_value, pre_hook=None, post_hook=None,
                 prune_configs_by=None, warmup=None, rep=None, use_cuda_graph=False):  # fmt: skip
        super().__init__(fn, arg_names, configs, key, reset_to_zero, restore_value, pre_hook, post_hook,
                         prune_configs_by, warmup, rep, use_cuda_graph)  # fmt: skip
        self.__name__ = self.base_fn.__name__

    def run(self, *args, **kwargs):
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        timings = {c: self._bench(*args, config=c, **kwargs) for c in self.prune_configs(kwargs)}
        self.chosen = min(timings, key=timings.get)
        self.pre_hook(self.nargs | kwargs | self.chosen.all_kwargs(), reset_only=True)
        return self.fn.run(*args, **kwargs, **self.chosen.all_kwargs())


def test_subclasses_of_libraries():
    kernel = triton.jit(body)
    tuner = TunerOfALibrary(kernel, kernel.arg_names, configs(16, 32), ["n"], ["x"], None, None, None,
                            {"early_config_prune": lambda found, nargs, **_: found[nargs["n"] > 20 :]})  # fmt: skip
    x = np.zeros(40, np.int32)
    tuner[lambda meta: (triton.cdiv(40, meta["BLOCK"]),)](SEEN, x, 40)
    assert tuner.chosen.kwargs == {"BLOCK": 32} and x.tolist() == [1] * 40
    assert tuner.__name__ == "body" and not tuner.user_defined_pre_hook


@pytest.fixture
def cached(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR", raising=False)
    return tmp_path


def measured(calls, **options):
    """A kernel to tune; ``calls`` counts measurements, of which the second is the best."""

    def do_bench(run, quantiles):
        run()
        calls.append(1)
        return [1.0 / len(calls)] * 3

    return triton.autotune(configs(16, 32), key=["n"], do_bench=do_bench, **options)(triton.jit(body))


def test_results_on_disk(cached):
    calls, x = [], np.zeros(4, np.int32)
    for n, expected, compiled in ((4, 2, 2), (4, 2, 1), (3, 4, 2)):
        kernel = measured(calls, cache_results=True)
        kernel[(1,)](SEEN, x, n)
        assert len(calls) == expected and kernel.best_config.kwargs == {"BLOCK": 32}
        assert set(kernel.configs_timings) == set(kernel.configs)
        # What is known needs no more than the winner.
        assert len(kernel.fn.compiled_kernels) == compiled
    measured(calls)[(1,)](SEEN, x, 4)
    assert len(calls) == 6


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"times": {}}', '{"times": {"BLOCK: 16": "x"}}', "\0" * 99]
)
def test_damaged_results_are_measured_anew(cached, damage):
    calls, x = [], np.zeros(4, np.int32)
    measured(calls, cache_results=True)[(1,)](SEEN, x, 4)
    (path,) = cached.rglob("*.autotune.json")
    path.write_text(damage)
    measured(calls, cache_results=True)[(1,)](SEEN, x, 4)
    assert len(calls) == 4
    measured(calls, cache_results=True)[(1,)](SEEN, x, 4)
    assert len(calls) == 4


def test_a_folder_that_cannot_be_written_only_costs_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "file" / "folder"))
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR", raising=False)
    calls, x = [], np.zeros(4, np.int32)
    measured(calls, cache_results=True)[(1,)](SEEN, x, 4)
    assert len(calls) == 2


def test_heuristics():
    @triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
    @triton.jit
    def kernel(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
        if EVEN:
            tl.store(x, 1)
        else:
            tl.store(x, 2)

    x = np.zeros(1, np.int32)
    kernel[(1,)](x, 32, BLOCK=16)
    assert x[0] == 1
    kernel[(1,)](x, 33, BLOCK=16)
    assert x[0] == 2


def test_heuristics_under_autotune():
    table = {16: 1.0, 32: 2.0}

    @triton.autotune(configs(*table), key=["n"], do_bench=times(table))
    @triton.heuristics({"TWICE": lambda args: 2 * args["BLOCK"]})
    @triton.jit
    def kernel(seen, x, n, BLOCK: tl.constexpr, TWICE: tl.constexpr):
        tl.store(seen, BLOCK)
        tl.store(x, TWICE)

    x = np.zeros(1, np.int32)
    kernel[(1,)](SEEN, x, 3)
    assert x[0] == 32


def test_a_tuner_is_given_another_do_bench():
    table = {16: 1.0, 32: 2.0}
    kernel = triton.autotune(configs(*table), key=["n"], do_bench=times(table))(triton.jit(body))
    kernel.do_bench = times({16: 2.0, 32: 1.0})
    launch(kernel, np.zeros(100, np.int32))
    assert kernel.best_config.kwargs == {"BLOCK": 32}


def test_do_bench_on_the_cpu():
    runs = []
    modes = ("min", "max", "mean", "median")
    for mode in modes:
        assert triton.testing.do_bench(lambda: runs.append(1), warmup=0, rep=1, return_mode=mode) >= 0
    assert len(runs) >= 2 * len(modes)
    low, high = triton.testing.do_bench(lambda: None, warmup=0, rep=1, quantiles=[0.1, 0.9])
    assert low <= high
    with pytest.raises(ValueError, match="return_mode"):
        triton.testing.do_bench(lambda: None, return_mode="mode")


def test_assert_close():
    triton.testing.assert_close(np.ones(3), np.ones(3) * 1.001)
    triton.testing.assert_close(np.full(2, np.nan), np.full(2, np.nan))
    with pytest.raises(AssertionError):
        triton.testing.assert_close(np.ones(3), np.ones(3) * 1.1)


def test_hooks_of_the_tuner_see_the_configuration():
    before, after = [], []

    def pre_hook(args, reset_only=False):
        before.append((args["BLOCK"], args["num_warps"], args["n"], reset_only))

    def post_hook(args, exception):
        after.append((args["BLOCK"], exception))

    tuned = [triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((16, 2), (32, 4))]
    kernel = triton.autotune(tuned, key=["n"], pre_hook=pre_hook, post_hook=post_hook)(triton.jit(body))
    kernel[(1,)](np.zeros(1, np.int32), np.zeros(40, np.int32), 4)
    best = kernel.best_config
    assert {b[:3] for b in before[:-1]} == {(16, 2, 4), (32, 4, 4)} and not any(b[3] for b in before[:-1])
    assert before[-1] == (best.kwargs["BLOCK"], best.num_warps, 4, True)
    assert set(after) == {(16, None), (32, None)} and len(after) == len(before) - 1
    kernel[(1,)](np.zeros(1, np.int32), np.zeros(40, np.int32), 4)
    assert len(after) == len(before) - 1


@pytest.mark.parametrize("threads", [1, 3])
def test_configurations_compile_ahead_of_being_measured(threads, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE_THREADS", str(threads))
    jitted, seen = triton.jit(body), []

    def do_bench(run, quantiles):
        seen.append(len(jitted.compiled_kernels))
        run()
        return [1.0] * 3

    triton.autotune(configs(16, 32, 64), key=[], do_bench=do_bench)(jitted)[(1,)](
        SEEN, np.zeros(4, np.int32), 4
    )
    assert seen == ([3, 3, 3] if threads > 1 else [0, 1, 2])
    assert len(jitted.compiled_kernels) == 3


def test_heuristics_and_warmups_compile_ahead(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE_THREADS", "2")
    asked, seen = [], []

    @triton.jit
    def kernel(x, BLOCK: tl.constexpr, TWICE: tl.constexpr):
        tl.store(x, TWICE)

    def twice(args):
        asked.append(args["BLOCK"])
        return 2 * args["BLOCK"]

    def do_bench(run, quantiles):
        seen.append(len(kernel.compiled_kernels))
        run()
        return [1.0] * 3

    tuner = triton.autotune(configs(16, 32), key=[], do_bench=do_bench)(
        triton.heuristics({"TWICE": twice})(kernel)
    )
    tuner[(1,)](np.zeros(1, np.int32))
    assert seen == [2, 2] and asked[:2] == [16, 32]
    kernel.clear_cache()
    assert [k.metadata.num_warps for k in tuner.warmup(np.zeros(1, np.int32), grid=(1,))] == [4, 4]
    assert len(kernel.compiled_kernels) == 2


def test_a_hook_of_a_configuration_has_its_say_before_compiling(monkeypatch):
    from tilewright.tools.tensor_descriptor import TensorDescriptor

    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE_THREADS", "2")
    seen = []

    @triton.jit
    def kernel(d, x, BLOCK: tl.constexpr):
        tl.store(x, tl.sum(d.load([0, 0])))

    def set_block(args):
        args["d"].block_shape = [args["BLOCK"], 16]

    def do_bench(run, quantiles):
        seen.append(len(kernel.compiled_kernels))
        run()
        return [1.0] * 3

    ones = np.ones((64, 16), np.float32)
    tuner = triton.autotune(configs(16, 64, pre_hook=set_block), key=[], do_bench=do_bench)(kernel)
    x = np.zeros(1, np.float32)
    tuner[(1,)](TensorDescriptor.from_tensor(ones, [1, 16]), x)
    assert seen == [2, 2] and len(kernel.compiled_kernels) == 2
    assert x[0] == 16 * tuner.best_config.kwargs["BLOCK"]


def test_what_does_not_compile_is_tried_once(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE_THREADS", "2")
    tried, after = [], []

    @triton.constexpr_function
    def fits(block):
        tried.append(int(block))
        return block < 64

    @triton.jit
    def picky(seen, BLOCK: tl.constexpr):
        tl.static_assert(fits(BLOCK))
        tl.store(seen, BLOCK)

    post_hook = lambda args, exception: after.append((args["BLOCK"], type(exception)))
    kernel = triton.autotune(configs(16, 64), key=[], post_hook=post_hook)(picky)
    kernel[(1,)](SEEN)
    assert tried.count(64) == 1 and kernel.configs_timings[kernel.configs[1]] == [float("inf")] * 3
    assert [a for a in after if a[0] == 64] == [(64, CompileTimeAssertionFailure)]


def test_only_what_is_close_is_measured_for_long(monkeypatch):
    from tilewright import testing

    table, reps = {16: 1.0, 32: 1.2, 64: 2.0, 128: 1.1}, []

    def do_bench(run, warmup, rep, quantiles):
        run()
        block = int(SEEN[0])
        reps.append((block, rep))
        return [table[block] - (0.5 if rep > 50 and block == 32 else 0.0)] * 3

    monkeypatch.setattr(testing, "do_bench", do_bench)
    monkeypatch.setattr(testing, "_on_gpu", lambda arguments: True)
    kernel = triton.autotune(configs(*table), key=[])(triton.jit(body))
    kernel[(1,)](SEEN, np.zeros(4, np.int32), 4)
    assert [b for b, rep in reps[:4] if rep < 50] == list(table)
    assert reps[4:] == [(16, 100), (32, 100), (128, 100)]
    assert kernel.best_config.kwargs == {"BLOCK": 32}
    assert [t[0] for t in kernel.configs_timings.values()] == [1.0, 0.7, 2.0, 1.1]
    # What the program says about measuring holds for all.
    reps.clear()
    kernel = triton.autotune(configs(*table), key=[], rep=30)(triton.jit(body))
    kernel[(1,)](SEEN, np.zeros(4, np.int32), 4)
    assert reps == [(b, 30) for b in table]


def test_an_error_while_measuring_ends_what_compiles(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE_THREADS", "2")

    def do_bench(run, quantiles):
        raise KeyboardInterrupt

    kernel = triton.autotune(configs(16, 32), key=[], do_bench=do_bench)(triton.jit(body))
    with pytest.raises(KeyboardInterrupt):
        kernel[(1,)](SEEN, np.zeros(4, np.int32), 4)
    assert kernel._ahead is None and kernel.nargs is None


TUNED = """
import sys, time
import numpy as np
import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    tl.store(x, BLOCK)


def do_bench(run, quantiles):
    run()
    time.sleep(float(sys.argv[1]))
    return [1.0] * 3


configs = [triton.Config({"BLOCK": b}) for b in (1, 2, 4)]
x = np.zeros(1, np.int32)
triton.autotune(configs, key=[], do_bench=do_bench, cache_results=True)(kernel)[(1,)](x)
print(int(x[0]), len(kernel.compiled_kernels))
"""


def test_many_processes_share_results(cached, tmp_path):
    program = tmp_path / "tuned.py"
    program.write_text(TUNED)

    def start():
        return subprocess.Popen([sys.executable, program, "0.01"], stdout=subprocess.PIPE, text=True)

    for process in [start() for _ in range(4)]:
        assert process.communicate(timeout=60)[0].split()[0] == "1" and process.returncode == 0
    assert start().communicate(timeout=60)[0].split() == ["1", "1"], "measured again"
    assert len(list(cached.rglob("*.autotune.json"))) == 1 and not list(cached.rglob("tmp.*"))


@pytest.mark.parametrize("wanted", [True, False])
def test_a_bar_in_a_terminal(wanted, cached, tmp_path, monkeypatch):
    program = tmp_path / "tuned.py"
    program.write_text(TUNED)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE_PROGRESS", str(int(wanted)))
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, program, "0.7"], stdout=subprocess.PIPE, stderr=theirs, timeout=60
        )
        os.set_blocking(ours, False)
        try:
            shown = os.read(ours, 1 << 16).decode()
        except BlockingIOError:
            shown = ""
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 0 and done.stdout.split() == [b"1", b"3"]
    assert ("autotuning kernel [" in shown) == wanted, shown
    # No terminal, no bar.
    done = subprocess.run([sys.executable, program, "0.7"], capture_output=True, timeout=60)
    assert done.stderr == b""


def test_what_prunes_and_nothing_reads_warns():
    """PyTorch gives `configs_top_k`; Triton looks at neither."""
    with pytest.warns(RuntimeWarning, match="nothing reads 'configs_top_k'"):
        triton.autotune(
            configs=[triton.Config({"BLOCK": 4})], key=[], prune_configs_by={"configs_top_k": 1.0}
        )(triton.jit(body))


def test_how_many_are_best_without_a_model_warns():
    with pytest.warns(RuntimeWarning, match="top_k of prune_configs_by changes nothing without perf_model"):
        triton.autotune(configs=configs(16, 32), key=[], prune_configs_by={"top_k": 1})(triton.jit(body))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"configs": [{"BLOCK": 16}]}, "configs is a list of triton.Config, and {'BLOCK': 16} is none"),
        ({"warmup": "long"}, "warmup is milliseconds, not 'long'"),
        ({"rep": -1}, "rep is milliseconds, not -1"),
        ({"do_bench": 3}, "do_bench is a function, not 3"),
        ({"pre_hook": "x"}, "pre_hook is a function, not 'x'"),
    ],
)
def test_what_cannot_be_is_an_error_where_it_stands(given, words):
    with pytest.raises(TypeError, match=re.escape(words)):
        triton.autotune(**({"configs": configs(16, 32), "key": ["n"]} | given))(triton.jit(body))


def test_decorators_in_another_order_say_which():
    with pytest.raises(
        TypeError, match=r"@autotune decorates a kernel, and body is none: put it above @triton\.jit"
    ):
        triton.autotune(configs(16, 32), key=["n"])(body)
    with pytest.raises(TypeError, match="@heuristics decorates a kernel, and body is none"):
        triton.heuristics({"BLOCK": lambda args: 16})(body)
    with pytest.raises(TypeError, match="BLOCK is a function of the arguments, not 16"):
        triton.heuristics({"BLOCK": 16})


def test_one_name_is_a_list_of_itself():
    kernel = triton.autotune(configs(16, 32), key="n", reset_to_zero="x", do_bench=times({16: 1.0}))(
        triton.jit(body)
    )
    assert (kernel.keys, kernel.reset_to_zero) == (["n"], ["x"])


def test_numbers_have_no_value_to_restore():
    kernel = triton.autotune(configs(16, 32), key=["n"], restore_value=["n"])(triton.jit(body))
    with pytest.raises(TypeError, match="n is 100; reset_to_zero and restore_value are for arrays"):
        launch(kernel, np.zeros(100, np.int32))


def test_an_option_of_a_configuration_is_not_given_in_the_call():
    for kernel in (
        triton.autotune(configs(16, 32), key=["n"])(triton.jit(body)),
        triton.autotune(configs(16), key=["n"])(triton.jit(body)),
    ):
        with pytest.raises(
            ValueError, match="num_warps of body is chosen by @autotune, and was given in the call"
        ):
            launch(kernel, np.zeros(100, np.int32), num_warps=8)


def test_a_measurement_may_be_one_number():
    table = {16: 3.0, 32: np.float32(1.0), 64: 2}

    def bench(run, quantiles):
        run()
        return table[int(SEEN[0])]

    kernel = triton.autotune(configs(*table), key=["n"], do_bench=bench)(triton.jit(body))
    launch(kernel, np.zeros(100, np.int32))
    assert kernel.best_config.kwargs == {"BLOCK": 32}
    assert kernel.configs_timings[kernel.configs[0]] == [3.0] * 3


def test_what_top_k_may_be():
    by = {"perf_model": lambda BLOCK, **_: BLOCK, "top_k": "one"}
    kernel = triton.autotune(configs(16, 32), key=["n"], do_bench=times({16: 1.0}), prune_configs_by=by)(
        triton.jit(body)
    )
    with pytest.raises(TypeError, match="top_k is a number of configurations, or a fraction"):
        launch(kernel, np.zeros(100, np.int32))


def test_a_configuration_reads_as_triton_s():
    config = triton.Config({"BLOCK": 16}, num_warps=2, num_stages=5, maxnreg=64)
    assert str(config) == "BLOCK: 16, num_warps: 2, num_ctas: 1, num_stages: 5, maxnreg: 64"
