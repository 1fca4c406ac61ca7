"""Times that can be compared: each competitor keeps its best configuration, then all take turns, and medians count.

The clock of a card follows its power limit and drifts by more than the differences of interest, so that times taken one after
another say little.
"""

import contextvars
import statistics
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import torch
import triton.testing


def time(run: Callable, rep: int) -> float:
    """The median time in ms of about ``rep`` ms of launches, each with a cold L2 cache."""
    return triton.testing.do_bench(run, warmup=3, rep=rep, return_mode="median")


def compiled(run: Callable, configs: Iterable[dict]) -> tuple[list[dict], dict[str, str]]:
    """The configurations with which ``run(**config)`` works, and why the others don't; they compile side by side."""

    def reason(config):
        torch.cuda.synchronize()  # makes the context current on this thread, which Triton's tensor maps want
        try:
            run(**config)
        except Exception as error:
            lines = str(error).splitlines() or [""]
            return f"{type(error).__name__}: {lines[0]}"

    configs = list(configs)
    # Triton keeps its allocator of descriptors in a context variable, which threads do not inherit.
    contexts = [contextvars.copy_context() for _ in configs]
    with ThreadPoolExecutor(16) as pool:
        reasons = list(pool.map(lambda context, config: context.run(reason, config), contexts, configs))
    torch.cuda.synchronize()
    return (
        [c for c, r in zip(configs, reasons) if r is None],
        {str(c): r for c, r in zip(configs, reasons) if r is not None},
    )


def best(run: Callable, configs: list[dict], rep: int = 20) -> dict:
    """The configuration with the smallest time."""
    return min(configs, key=lambda config: time(lambda: run(**config), rep))


def race(competitors: dict[str, Callable], rounds: int = 5, rep: int = 20) -> dict[str, float]:
    """Median times in ms of competitors that take turns."""
    laps = [{name: time(run, rep) for name, run in competitors.items()} for _ in range(rounds)]
    return {name: statistics.median(lap[name] for lap in laps) for name in competitors}
