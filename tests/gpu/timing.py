"""Times that can be compared: each competitor keeps its best configuration, then all take turns, and medians count.

The clock of a card follows its power limit and drifts by more than the differences of interest, so that times taken one after
another say little.
"""

import contextvars
import functools
import statistics
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

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
    """The configuration with the smallest time; the fastest three take turns, since a clock that drifts decides between them."""
    first = sorted((time(lambda: run(**config), rep), i) for i, config in enumerate(configs))
    if len(first) == 1:
        return configs[0]
    laps = race({i: functools.partial(run, **configs[i]) for _, i in first[:3]}, rounds=3, rep=rep)
    return configs[min(laps, key=laps.get)]


def race(competitors: dict[Hashable, Callable], rounds: int = 5, rep: int = 20) -> dict:
    """Median times in ms of competitors that take turns."""
    laps = [{name: time(run, rep) for name, run in competitors.items()} for _ in range(rounds)]
    return {name: statistics.median(lap[name] for lap in laps) for name in competitors}


@dataclass
class Contest:
    """How competitors did: median times in ms, each compiler's configuration, and why it could not use the others."""

    times: dict[str, float]
    configs: dict[str, dict]
    refused: dict[str, dict[str, str]]

    def ratios(self) -> dict[str, float]:
        """How many times longer than ours each competitor took."""
        ours = self.times["ours"]
        return {who: t / ours for who, t in self.times.items() if who != "ours"}

    def kept(self) -> str:
        """The values of each compiler's configuration."""
        return " | ".join(
            "/".join(str(v).replace(" ", "") for v in c.values()) for c in self.configs.values()
        )


def contest(
    runs: dict[str, Callable],
    configs: list[dict],
    check: Callable[[], None],
    outs: Iterable[torch.Tensor] = (),
    library: dict[str, Callable] | None = None,
    rounds: int = 5,
    rep: int = 20,
) -> Contest:
    """Each of ``runs``, called as ``run(**config)``, keeps its best configuration; then they and ``library`` take turns.

    ``check()`` asserts the results of each configuration of "ours" and of one of the others; ``outs`` are the tensors of floats
    that a launch writes. Raises what ``check`` raises, and RuntimeError where a compiler has no configuration that works.
    """
    chosen, refused = {}, {}
    for who, run in runs.items():
        usable, refused[who] = compiled(run, configs)
        if not usable:
            raise RuntimeError(f"no configuration of {who} works: {refused[who]}")
        for config in usable if who == "ours" else usable[:1]:
            for out in outs:
                out.fill_(float("nan"))
            run(**config)
            torch.cuda.synchronize()
            try:
                check()
            except AssertionError as error:
                raise AssertionError(f"{who} {config}: {error}") from error
        chosen[who] = best(run, usable, rep)
    competitors = {who: functools.partial(run, **chosen[who]) for who, run in runs.items()}
    return Contest(race(competitors | (library or {}), rounds, rep), chosen, refused)
