"""Timing kernels, comparing results, and running PTX in the simulator."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

_QUANTILE_MODES = {"min": min, "max": max, "all": list}


def _torch_cuda():
    """torch, if the program uses it on a GPU."""
    torch = sys.modules.get("torch")
    if (
        torch is None
        or not torch.cuda.is_available()
        or os.environ.get("TILEWRIGHT_BACKEND") in ("interp", "ptxsim", "npusim", "xesim")
    ):
        return None
    return torch


def _on_gpu(arguments) -> bool:
    """Whether kernels with these arguments run on a GPU through torch."""
    return _torch_cuda() is not None and any(getattr(a, "is_cuda", False) for a in arguments)


def _median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _quantile(values, q):
    """The q-quantile with linear interpolation between neighbours."""
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def _summarize_statistics(times, quantiles, return_mode):
    if quantiles is not None:
        found = [_quantile(times, q) for q in quantiles]
        return found[0] if len(found) == 1 else found
    if return_mode == "mean":
        return sum(times) / len(times)
    if return_mode == "median":
        return _median(times)
    return _QUANTILE_MODES[return_mode](times)


def do_bench(
    fn: Callable[[], Any],
    warmup: int = 25,
    rep: int = 100,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Milliseconds that ``fn()`` takes: on the GPU by events, with the L2 cache cleared before each run, where torch has
    one; on the CPU by the clock.

    :param warmup: milliseconds to warm up.
    :param rep: milliseconds to measure.
    :param grad_to_none: tensors whose ``grad`` is cleared before each run.
    :param quantiles: gives these quantiles of the runs instead of their ``return_mode``.
    :param return_mode: ``min``, ``max``, ``mean``, ``median`` or ``all``.
    """
    if return_mode not in ("min", "max", "mean", "median", "all"):
        raise ValueError(f"return_mode must be min, max, mean, median or all, not {return_mode!r}")
    torch = _torch_cuda()
    fn()
    if torch is None:
        return _summarize_statistics(_time_on_cpu(fn, warmup, rep), quantiles, return_mode)

    def event():
        return torch.cuda.Event(enable_timing=True)

    torch.cuda.synchronize()
    # 256 MB is more than any L2.
    flush = torch.empty(256 * 1024 * 1024, dtype=torch.int8, device="cuda")
    start, end = event(), event()
    start.record()
    for _ in range(5):
        flush.zero_()
        fn()
    end.record()
    torch.cuda.synchronize()
    estimate = max(start.elapsed_time(end) / 5, 1e-6)
    for _ in range(max(1, int(warmup / estimate))):
        fn()
    pairs = [(event(), event()) for _ in range(max(1, int(rep / estimate)))]
    for start, end in pairs:
        for tensor in grad_to_none or ():
            tensor.grad = None
        flush.zero_()
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return _summarize_statistics([start.elapsed_time(end) for start, end in pairs], quantiles, return_mode)


def _time_on_cpu(fn, warmup, rep):
    def once():
        start = time.perf_counter()
        fn()
        return (time.perf_counter() - start) * 1e3

    estimate = max(once(), 1e-6)
    for _ in range(int(warmup / estimate)):
        fn()
    return [once() for _ in range(max(1, int(rep / estimate)))]


def do_bench_cudagraph(
    fn: Callable[[], Any],
    rep: int = 20,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Milliseconds that ``fn()`` takes on the GPU inside a CUDA graph, so that launching costs nothing."""
    torch = _torch_cuda()
    if torch is None:
        raise RuntimeError("do_bench_cudagraph needs torch and a GPU")
    with torch.cuda.stream(torch.cuda.Stream()):
        fn()
        torch.cuda.synchronize()
        estimate = max(do_bench(fn, warmup=1, rep=5, return_mode="median"), 1e-6)
        repeats = max(1, int(rep / estimate))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(repeats):
                for tensor in grad_to_none or ():
                    tensor.grad = None
                fn()
        torch.cuda.synchronize()
        times = []
        for _ in range(10):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) / repeats)
    return _summarize_statistics(times, quantiles, return_mode)


def simulate_ptx(
    ptx: str,
    entry: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    arguments: Sequence[Any],
    *,
    cluster: int | Sequence[int] | None = None,
    shared: int = 0,
    checks: bool = True,
    seed: int = 0,
    threads: int = 0,
) -> dict[str, Any]:
    """Runs PTX text of any origin in the simulator, on NumPy arrays in place, and returns its report.

    :param entry: the name of the ``.entry``.
    :param grid: CTAs: an int, or up to three of them.
    :param block: threads of a CTA, likewise.
    :param cluster: CTAs of a cluster, likewise.
    :param arguments: for each parameter a NumPy array (passed as its address), an int (as many of its low bits as the
        parameter has), a float (a parameter of 4 or 8 bytes) or bytes (a structure; see :func:`tensor_map`).
    :param shared: bytes of dynamic shared memory.
    :param checks: whether races, uninitialized reads and asynchrony are checked.
    :param seed: zero runs warps in order; another number shuffles them, the same way each time.
    :param threads: how many cores run CTAs; zero for all.
    :return: a dict with ``findings`` (broken rules), ``counters`` and ``output`` (what the kernel printed).
    :raises KernelError: the text is no PTX that the simulator runs, or the launch is impossible.
    """
    import json

    from . import _tilewright

    def three(size):
        sizes = [size] if isinstance(size, int) else list(size)
        if not 1 <= len(sizes) <= 3:
            raise ValueError(f"{size!r} does not have one to three dimensions")
        return [*sizes, 1, 1][:3]

    report = _tilewright.simulate_ptx(
        ptx,
        entry,
        three(grid),
        three(block),
        list(arguments),
        cluster and three(cluster),
        shared,
        checks,
        seed,
        threads,
    )
    return json.loads(report)


def tensor_map(
    array: Any,
    dims: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    *,
    element: str | None = None,
    element_strides: Sequence[int] | None = None,
    swizzle: int = 0,
    nan_fill: bool = False,
) -> bytes:
    """The 128 bytes of a tensor map as the simulator reads them, for :func:`simulate_ptx`.

    Dimension 0 is the innermost, as for ``cuTensorMapEncodeTiled``, whose rules hold.

    :param array: a NumPy array, which must be another argument of the launch and begin at a multiple of 16 bytes.
    :param dims: elements by dimension.
    :param strides: bytes between neighbours, for each dimension but the innermost.
    :param box: extent of what one copy moves, by dimension.
    :param element: ``u8``, ``u16``, ``u32``, ``s32``, ``u64``, ``s64``, ``f16``, ``bf16``, ``f32`` or ``f64``; the array's
        own type when left out.
    :param element_strides: every how many-th element of the box is copied, by dimension.
    :param swizzle: 0, 32, 64 or 128 bytes.
    :param nan_fill: whether elements outside the tensor read as NaN instead of zero.
    :raises ValueError: a rule is broken.
    """
    from . import _tilewright

    kind = {"i": "s", "u": "u", "f": "f"}.get(array.dtype.kind, array.dtype.kind)
    return _tilewright.tensor_map(
        array.ctypes.data,
        element or f"{kind}{8 * array.dtype.itemsize}",
        list(dims),
        list(strides),
        list(box),
        list(element_strides or [1] * len(dims)),
        swizzle,
        nan_fill,
    )


@contextmanager
def simulated_mesh(
    n_nodes: int = 1, n_devices: int = 1, memory: int = 1 << 20, programs: int = 64, scratch: int = 1 << 15
):
    """A mesh of devices in this process: each launch inside runs on all ranks at the same time, in the CPU executor or the PTX simulator.

    :param n_nodes: nodes, and ``n_devices`` of each: rank ``node * n_devices + device``.
    :param memory: bytes of symmetric memory of each rank, for what :mod:`tilewright.distributed` allocates.
    :param programs: how many programs of a grid may wait for those of other ranks.
    :param scratch: bytes of symmetric memory of each of these for values that a kernel reshards.

    Arrays that are not symmetric are those of all ranks in common. Ranks that wait for each other forever are an error that says for each where it
    waits; in the simulator, accesses of two ranks to one place with no order between are, too.
    """
    from .distributed import SimulatedRanks
    from .runtime.ranks import _simulated

    for name, count in (("n_nodes", n_nodes), ("n_devices", n_devices)):
        if not isinstance(count, int):
            raise TypeError(f"{name} of a simulated mesh is an integer, not {count!r}")
        if count < 1:
            raise ValueError(f"{name} of a simulated mesh must be positive, not {count}")
    ranks = SimulatedRanks(n_nodes * n_devices, memory, programs, scratch)
    token = _simulated.set(ranks)
    try:
        yield ranks
    finally:
        _simulated.reset(token)


def assert_close(x: Any, y: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Raises ``AssertionError`` unless two arrays (NumPy, torch, numbers) agree within the tolerances.

    Tolerances are numbers (0.01 each by default), or functions from a dtype's name to a number.
    """
    import numpy as np

    x, y = _as_numpy(x), _as_numpy(y)

    def tolerance(value):
        value = 1e-2 if value is None else value
        return value(x.dtype) if callable(value) else value

    np.testing.assert_allclose(x, y, tolerance(rtol), tolerance(atol), equal_nan=True, err_msg=err_msg)


def _as_numpy(array):
    import numpy as np

    if hasattr(array, "detach"):
        array = array.detach().cpu()
        if str(array.dtype) in ("torch.bfloat16",) or "float8" in str(array.dtype):
            array = array.float()
        array = array.numpy()
    array = np.asarray(array)
    # bf16 and fp8 have no tolerance arithmetic of their own.
    return (
        array.astype(np.float32)
        if array.dtype.kind == "V" or (array.dtype.itemsize < 4 and array.dtype.kind not in "iub")
        else array
    )


class Benchmark:
    """What :func:`perf_report` runs and draws: lines over an x axis.

    :param x_names: the function's parameters along x. ``x_vals`` holds a value for all of them, or one tuple of values, per point.
    :param line_arg: the parameter that has one of ``line_vals`` on each line; ``line_names`` are the lines' labels.
    :param plot_name: the name of the table and of the files.
    :param args: the function's other arguments.
    :param styles: a colour and a line style for each line, as matplotlib spells them.
    """

    def __init__(
        self,
        x_names: list[str],
        x_vals: list[Any],
        line_arg: str,
        line_vals: list[Any],
        line_names: list[str],
        plot_name: str,
        args: dict[str, Any],
        xlabel: str = "",
        ylabel: str = "",
        x_log: bool = False,
        y_log: bool = False,
        styles: list[tuple[str, str]] | None = None,
    ):
        self.x_names = x_names
        self.x_vals = x_vals
        self.line_arg = line_arg
        self.line_vals = line_vals
        self.line_names = line_names
        self.plot_name = plot_name
        self.args = args
        self.xlabel = xlabel
        self.ylabel = ylabel
        self.x_log = x_log
        self.y_log = y_log
        self.styles = styles


class _Table:
    """Rows under names, where there is no pandas."""

    def __init__(self, columns: list[str], rows: list[list]):
        self.columns, self.rows = columns, rows

    def to_string(self) -> str:
        """The table as text."""
        cells = [["", *self.columns], *([at, *row] for at, row in enumerate(self.rows))]
        shown = [[f"{cell:.6f}" if isinstance(cell, float) else str(cell) for cell in row] for row in cells]
        widths = [max(map(len, column)) for column in zip(*shown)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in shown)

    def to_csv(self, path: str, float_format: str, index: bool = False) -> None:
        """Writes the table."""
        import csv

        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            for row in self.rows:
                writer.writerow([float_format % cell if isinstance(cell, float) else cell for cell in row])


class Mark:
    """A function with its benchmarks; :meth:`run` runs them."""

    def __init__(self, fn, benchmarks: Benchmark | list[Benchmark]):
        self.fn = fn
        self.benchmarks = benchmarks

    def _measure(self, bench: Benchmark, kwargs: dict) -> list[list]:
        """For each point its x values, and what the function gave for each line: a value, or the value, the least and the largest."""
        rows = []
        for x in bench.x_vals:
            x = list(x) if isinstance(x, (list, tuple)) else [x] * len(bench.x_names)
            if len(x) != len(bench.x_names):
                raise ValueError(f"{bench.plot_name}: {x} is not a value for each of {bench.x_names}")
            given = dict(zip(bench.x_names, x))
            results = [
                self.fn(**given, **{bench.line_arg: line}, **bench.args, **kwargs) for line in bench.line_vals
            ]
            rows.append([x, [r if isinstance(r, (list, tuple)) else (r, None, None) for r in results]])
        return rows

    @staticmethod
    def _draw(bench: Benchmark, rows: list[list], show_plots: bool, save_path: str) -> None:
        import matplotlib.pyplot as plt

        plt.figure()
        axes = plt.subplot()
        first = [x[0] for x, _ in rows]
        for at, name in enumerate(bench.line_names):
            colour, style = bench.styles[at] if bench.styles else (None, None)
            values, least, largest = zip(*(results[at] for _, results in rows))
            axes.plot(first, values, label=f"{name} ({bench.ylabel})", color=colour, ls=style)
            if None not in least and None not in largest:
                axes.fill_between(first, least, largest, alpha=0.15, color=colour)
        axes.legend()
        axes.set_xlabel(bench.xlabel or bench.x_names[0])
        axes.set_ylabel(bench.ylabel)
        axes.set_xscale("log" if bench.x_log else "linear")
        axes.set_yscale("log" if bench.y_log else "linear")
        if show_plots:
            plt.show()
        if save_path:
            plt.savefig(os.path.join(save_path, f"{bench.plot_name}.png"))

    def _run(self, bench, save_path, show_plots, print_data, diff_col=False, save_precision=6, **kwargs):
        rows = self._measure(bench, kwargs)
        columns = [*bench.x_names, *(f"{name} ({bench.ylabel})" for name in bench.line_names)]
        cells = [[*x, *(result[0] for result in results)] for x, results in rows]
        if diff_col and len(bench.line_names) == 2:
            columns.append("Diff")
            cells = [[*row, row[-1] - row[-2]] for row in cells]
        if save_path:
            os.makedirs(save_path, exist_ok=True)
        if bench.plot_name and (show_plots or save_path):
            self._draw(bench, rows, show_plots, save_path)
        try:
            import pandas

            table = pandas.DataFrame(cells, columns=columns)
        except ImportError:
            table = _Table(columns, cells)
        if print_data:
            print(f"{bench.plot_name}:")
            print(table.to_string())
        if save_path:
            path = os.path.join(save_path, f"{bench.plot_name}.csv")
            table.to_csv(path, float_format=f"%.{save_precision}f", index=False)
        return table

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str = "",
        return_df: bool = False,
        **kwargs,
    ):
        """Runs the benchmarks.

        :param show_plots: shows each as a plot (with matplotlib).
        :param print_data: prints each as a table.
        :param save_path: the folder for tables (``.csv``), plots (``.png``) and a page with all of these.
        :param return_df: gives the tables: ``pandas.DataFrame`` where there is pandas. One by itself, several in a list.
        :param kwargs: further arguments of the function; ``diff_col`` adds the difference of two lines, ``save_precision`` is the
            count of decimals in files.
        """
        single = isinstance(self.benchmarks, Benchmark)
        benchmarks = [self.benchmarks] if single else self.benchmarks
        tables = []
        try:
            for bench in benchmarks:
                tables.append(self._run(bench, save_path, show_plots, print_data, **kwargs))
        finally:
            # What was measured before an error is not lost.
            if save_path:
                os.makedirs(save_path, exist_ok=True)
                images = [f'<img src="{bench.plot_name}.png"/>\n' for bench in benchmarks[: len(tables)]]
                with open(os.path.join(save_path, "results.html"), "w") as file:
                    file.write(f"<html><body>\n{''.join(images)}</body></html>\n")
        if not return_df:
            return None
        return tables[0] if single else tables


def perf_report(benchmarks: Benchmark | list[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """Decorates a function that gives a measure, so that ``function.run(…)`` runs benchmarks with it. See :class:`Mark`."""
    return lambda fn: Mark(fn, benchmarks)


def _properties(device: int | None) -> dict[str, Any]:
    from . import _tilewright

    found = _tilewright.device_properties(_tilewright.current_device() if device is None else device)
    if "mem_clock_rate" not in found:
        raise RuntimeError(
            f"there are no rates of {found['name']}: TILEWRIGHT_BACKEND says that kernels run without a GPU"
        )
    return found


def get_dram_gbps(device: int | None = None) -> float:
    """Bandwidth of a GPU's memory in GB/s, from its clock (two transfers each) and the width of its bus."""
    found = _properties(device)
    return found["mem_clock_rate"] * found["mem_bus_width"] * 2 / 1e6 / 8


def _capability(device: int | None) -> int:
    return int(_properties(device)["target"].removeprefix("cuda:"))


def _tflops(operations: int, clock_rate: float, device: int | None) -> float:
    # A multiprocessor has four parts with a tensor core and ALUs each.
    return 4 * _properties(device)["multiprocessor_count"] * clock_rate * operations * 1e-9


def _operations(of_size: dict[int, int], dtype) -> int:
    from .language import core

    name = str(dtype).removeprefix("torch.")
    bits = (
        dtype.primitive_bitwidth
        if isinstance(dtype, core.dtype)
        else int("".join(filter(str.isdigit, name.partition("_")[0]))[:2] or 0)
    )
    bits = 8 if "float8" in name else bits
    if bits not in of_size:
        raise RuntimeError(f"there is no rate for {dtype}")
    return of_size[bits]


def get_max_tensorcore_tflops(dtype, clock_rate: float, device: int | None = None) -> float:
    """TFLOP/s of a GPU's tensor cores at a clock in kHz, by the rate of Ampere's."""
    return _tflops(_operations({32: 256, 16: 512, 8: 1024}, dtype), clock_rate, device)


def get_max_simd_tflops(dtype, clock_rate: float, device: int | None = None) -> float:
    """TFLOP/s of a GPU's ALUs at a clock in kHz."""
    return _tflops(_operations({32: 32, 16: 64}, dtype), clock_rate, device)


def nvsmi(attrs: list[str]) -> list[int]:
    """Numbers that ``nvidia-smi`` says of GPU 0, such as ``clocks.current.sm``."""
    import subprocess

    command = ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(attrs)}", "--format=csv,noheader,nounits"]
    return [int(number) for number in subprocess.check_output(command, text=True).split(",")]


@contextmanager
def set_gpu_clock(ref_sm_clock: int = 1350, ref_mem_clock: int = 1215):
    """While the ``with`` block runs, GPU 0 keeps these clocks in MHz. Needs the rights to do that.

    Gives the TFLOP/s and GB/s that an A100 has at these clocks.
    """
    import subprocess

    def smi(*arguments):
        subprocess.check_output(["nvidia-smi", "-i", "0", *arguments])

    try:
        smi("-pm", "1")
        smi(f"--lock-gpu-clocks={ref_sm_clock},{ref_sm_clock}")
        smi(f"--lock-memory-clocks={ref_mem_clock},{ref_mem_clock}")
        sm_clock, mem_clock = nvsmi(["clocks.current.sm", "clocks.current.memory"])
        for clock, wanted in ((sm_clock, ref_sm_clock), (mem_clock, ref_mem_clock)):
            if abs(clock - wanted) >= 10:
                raise RuntimeError(f"the GPU runs at {clock} MHz, not at {wanted}")
        yield 1e-6 * 2 * 108 * 4 * 256 * ref_sm_clock, 640 * 2 * ref_mem_clock * 1e-3
    finally:
        smi("-pm", "0")
        smi("-rgc")
        smi("-rmc")


def cuda_memcheck(**when):
    """Decorates a test of pytest: with these arguments it runs under ``compute-sanitizer``, in a process of its own."""
    import functools
    import subprocess

    def decorate(test):
        @functools.wraps(test)
        def wrapper(*args, **kwargs):
            if not when.items() <= kwargs.items() or "TILEWRIGHT_IN_SANITIZER" in os.environ:
                return test(*args, **kwargs)
            if "request" not in kwargs:
                raise TypeError(f"{test.__name__} needs pytest's fixture `request`")
            path = os.path.realpath(test.__globals__["__file__"])
            case = f"{path}::{test.__name__}[{kwargs['request'].node.callspec.id}]"
            environment = {
                **os.environ,
                "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
                "TILEWRIGHT_IN_SANITIZER": "1",
            }
            done = subprocess.run(
                ["compute-sanitizer", sys.executable, "-m", "pytest", "-vs", case],
                capture_output=True,
                text=True,
                env=environment,
            )
            if done.returncode or "ERROR SUMMARY: 0 errors" not in done.stdout:
                raise AssertionError(f"compute-sanitizer found errors:\n{done.stdout}")
            return None

        return wrapper

    return decorate


__all__ = [
    "Benchmark",
    "Mark",
    "assert_close",
    "cuda_memcheck",
    "do_bench",
    "do_bench_cudagraph",
    "get_dram_gbps",
    "get_max_simd_tflops",
    "get_max_tensorcore_tflops",
    "nvsmi",
    "perf_report",
    "set_gpu_clock",
    "simulate_ptx",
    "tensor_map",
]
