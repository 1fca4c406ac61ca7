"""Timing kernels, comparing results, and running PTX in the simulator."""

from __future__ import annotations

import math
import os
import sys
import time

_QUANTILE_MODES = {"min": min, "max": max, "all": list}


def _torch_cuda():
    """torch, if the program uses it on a GPU."""
    torch = sys.modules.get("torch")
    if (
        torch is None
        or not torch.cuda.is_available()
        or os.environ.get("TILEWRIGHT_BACKEND") in ("interp", "ptxsim")
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


def _summarize(times, quantiles, return_mode):
    if quantiles is not None:
        found = [_quantile(times, q) for q in quantiles]
        return found[0] if len(found) == 1 else found
    if return_mode == "mean":
        return sum(times) / len(times)
    if return_mode == "median":
        return _median(times)
    return _QUANTILE_MODES[return_mode](times)


def do_bench(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean"):
    """Milliseconds that ``fn()`` takes: on the GPU by events, with the L2 cache cleared before each run, where torch has
    one; on the CPU by the clock.

    :param warmup, rep: milliseconds to warm up and to measure.
    :param grad_to_none: tensors whose ``grad`` is cleared before each run.
    :param quantiles: gives these quantiles of the runs instead of their ``return_mode``.
    :param return_mode: ``min``, ``max``, ``mean``, ``median`` or ``all``.
    """
    if return_mode not in ("min", "max", "mean", "median", "all"):
        raise ValueError(f"return_mode must be min, max, mean, median or all, not {return_mode!r}")
    torch = _torch_cuda()
    fn()
    if torch is None:
        return _summarize(_time_on_cpu(fn, warmup, rep), quantiles, return_mode)

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
    return _summarize([start.elapsed_time(end) for start, end in pairs], quantiles, return_mode)


def _time_on_cpu(fn, warmup, rep):
    def once():
        start = time.perf_counter()
        fn()
        return (time.perf_counter() - start) * 1e3

    estimate = max(once(), 1e-6)
    for _ in range(int(warmup / estimate)):
        fn()
    return [once() for _ in range(max(1, int(rep / estimate)))]


def do_bench_cudagraph(fn, rep=20, grad_to_none=None, quantiles=None, return_mode="mean"):
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
    return _summarize(times, quantiles, return_mode)


def simulate_ptx(
    ptx, entry, grid, block, arguments, *, cluster=None, shared=0, checks=True, seed=0, threads=0
):
    """Runs PTX text of any origin in the simulator, on NumPy arrays in place, and returns its report.

    :param entry: the name of the ``.entry``.
    :param grid, block, cluster: CTAs, threads of a CTA and CTAs of a cluster: an int or up to three of them.
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


def tensor_map(array, dims, strides, box, *, element=None, element_strides=None, swizzle=0, nan_fill=False):
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


def assert_close(x, y, atol=None, rtol=None, err_msg=""):
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


__all__ = ["assert_close", "do_bench", "do_bench_cudagraph", "simulate_ptx", "tensor_map"]
