"""Times that can be compared: each competitor keeps its best configuration, then all take turns, and medians count.

The clock of a card follows its power limit and drifts by more than the differences of interest, so that times taken one after
another say little. How the results are kept says ``tests/bench/results.py``.
"""

import contextvars
import functools
import random
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from results import OURS, Record, Result, Run, line, times
from tolerance import poison


@functools.cache
def flush() -> torch.Tensor:
    """What is written over the L2 cache before a launch: one place in memory for all that a process measures. Where it lies moves the times of
    kernels that memory bounds by a hundredth."""
    return torch.empty(1 << 28, dtype=torch.int8, device="cuda")


def time(run: Callable, rep: int, warmup: int = 3) -> float:
    """The time in ms of launches, each with a cold L2 cache: the mean of the middle half of as many as take about ``rep`` ms together with what makes it cold,
    behind ``warmup`` ms. (Times of one kernel lie in two humps about 1 µs apart, between which a median jumps.)"""
    event = functools.partial(torch.cuda.Event, enable_timing=True)

    def launches(count: int) -> list[tuple[torch.cuda.Event, torch.cuda.Event]]:
        pairs = [(event(), event()) for _ in range(count)]
        for begin, end in pairs:
            flush().zero_()
            begin.record()
            run()
            end.record()
        torch.cuda.synchronize()
        return pairs

    run()
    first = launches(5)
    of_one = first[0][0].elapsed_time(first[-1][1]) / len(first)
    for _ in range(max(1, int(warmup / of_one))):
        run()
    pairs = launches(max(1, int(rep / of_one)))
    times = sorted(begin.elapsed_time(end) for begin, end in pairs)
    out = len(times) // 4
    return statistics.fmean(times[out : len(times) - out])


def compiled(
    run: Callable, configs: Iterable[dict], together: bool = True
) -> tuple[list[dict], dict[str, str]]:
    """The configurations with which ``run(**config)`` works, and why the others don't; they compile side by side, unless what several kernels
    hand on through memory would be mixed up."""

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
    with ThreadPoolExecutor(16 if together else 1) as pool:
        reasons = list(pool.map(lambda context, config: context.run(reason, config), contexts, configs))
    torch.cuda.synchronize()
    return (
        [c for c, r in zip(configs, reasons) if r is None],
        {str(c): r for c, r in zip(configs, reasons) if r is not None},
    )


def best(run: Callable | list[Callable], configs: list[dict], rep: int = 20) -> dict:
    """The configuration with the smallest time, of several copies of the code the mean of theirs. All are timed twice, the second time backwards, on a card that has
    worked for a while: a clock that falls under load favours whoever comes first. The smaller of the two counts, since now and then a launch takes several
    times as long. The fastest eight take turns, then four of these, then two: at a card's power limit one round differs from the next by more than they do."""
    if len(configs) == 1:
        return configs[0]
    copies = run if isinstance(run, list) else [run]
    time(lambda: copies[0](**configs[0]), rep, warmup=150)
    there_and_back = [*range(len(configs)), *reversed(range(len(configs)))]
    least = dict.fromkeys(range(len(configs)), float("inf"))
    for i in there_and_back:
        least[i] = min(least[i], sum(time(lambda: copy(**configs[i]), min(rep, 8)) for copy in copies))
    left = sorted(least, key=least.get)[:8]
    for kept, rounds in ((4, 4), (2, 6), (1, 10)):
        if len(left) <= kept:
            continue
        times = over_copies(laps(of_copies({i: (copies, configs[i]) for i in left}), rounds, rep if kept < 4 else min(rep, 12)))  # fmt: skip
        # As ratios are: of what is measured in the same round.
        of_all = [sum(round) for round in zip(*times.values())]
        share = {i: statistics.median(t / all for t, all in zip(mine, of_all)) for i, mine in times.items()}
        left = sorted(left, key=share.get)[:kept]
    return configs[left[0]]


def of_copies(competitors: dict[Hashable, tuple[list[Callable], dict]]) -> dict[tuple, Callable]:
    """Each copy of each competitor's code, with its configuration, as one that takes turns."""
    return {(name, k): functools.partial(run, **config)
            for name, (copies, config) in competitors.items() for k, run in enumerate(copies)}  # fmt: skip


def over_copies(laps: dict[tuple, list[float]]) -> dict[Hashable, list[float]]:
    """The mean of each round's times of a competitor's copies."""
    by_name: dict[Hashable, list[list[float]]] = {}
    for (name, _), mine in laps.items():
        by_name.setdefault(name, []).append(mine)
    return {name: [statistics.fmean(round_) for round_ in zip(*copies)] for name, copies in by_name.items()}


def in_turns(
    competitors: dict[Hashable, Any], rounds: int, lap: Callable[[Any], float]
) -> dict[Hashable, list[float]]:
    """What ``lap`` gives for each competitor in every round. Each round has an order of its own, the same in every run: at a card's power limit who comes behind one
    that takes less power finds a higher clock, by up to 7 hundredths."""
    times = {name: [] for name in competitors}
    names = list(competitors)
    order = random.Random(0)
    for _ in range(rounds):
        order.shuffle(names)
        for name in names:
            times[name].append(lap(competitors[name]))
    return times


def laps(
    competitors: dict[Hashable, Callable], rounds: int = 5, rep: int = 20
) -> dict[Hashable, list[float]]:
    """The times in ms of every round of competitors that take turns."""
    return in_turns(competitors, rounds, lambda run: time(run, rep))


def race(competitors: dict[Hashable, Callable], rounds: int = 5, rep: int = 20) -> dict[Hashable, float]:
    """Their medians."""
    return {name: statistics.median(t) for name, t in laps(competitors, rounds, rep).items()}


class Clock:
    """What ``nvidia-smi`` says of the card meanwhile: medians of the clock in MHz and of the power in watts."""

    def __enter__(self):
        self.samples: list[list[float]] = []
        command = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits"]
        try:
            self.process = subprocess.Popen([*command, "--loop-ms=100"], stdout=subprocess.PIPE, text=True)
        except OSError:
            self.process = None
            return self
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        return self

    def _read(self):
        for text in self.process.stdout:
            try:
                self.samples.append([float(x) for x in text.split(",")])
            except ValueError:
                continue

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.thread.join(2)
            self.process.wait()

    def medians(self) -> tuple[float | None, float | None]:
        if not self.samples:
            return None, None
        return tuple(statistics.median(column) for column in zip(*self.samples))


def checked(run: Callable, configs: list[dict], check: Callable[[], float], outs: Iterable[torch.Tensor]):
    """The configurations whose results are right, why the others aren't, and the largest error of the right ones."""
    right, wrong, largest = [], {}, 0.0
    for config in configs:
        for out in outs:
            poison(out)
        run(**config)
        torch.cuda.synchronize()
        try:
            largest = max(largest, check())
            right.append(config)
        except AssertionError as error:
            wrong[str(config)] = f"wrong: {error}"
    return right, wrong, largest


def choose(
    result: Result,
    runs: dict[str, Callable | list[Callable]],
    configs: list[dict] | dict[str, list[dict]],
    check: Callable[[], float],
    outs: Iterable[torch.Tensor],
    library: dict[str, Callable] | None = None,
    rep: int = 20,
) -> dict[tuple, Callable]:
    """Who takes turns: each of ``runs``, called as ``run(**config)``, with its best of ``configs`` (of its own list, where each has one), and ``library``. One of
    ``runs`` may be several copies of the same code at places of their own in memory, on which times of a few µs depend: then the mean of the copies' times counts.

    ``check()`` asserts the results of a launch and says how far off they are; every configuration that is timed passed it, with
    ``outs``, which a launch writes, poisoned before. A compiler that has none drops out, and the result says why; ours may not be wrong.
    """
    copies = {who: run if isinstance(run, list) else [run] for who, run in runs.items()}
    for who, (run, *others) in copies.items():
        usable, refused = compiled(run, configs[who] if isinstance(configs, dict) else configs)
        right, wrong, result.errors[who] = checked(run, usable, check, outs)
        for other in others:
            right, more, _ = checked(other, right, check, outs)
            wrong |= more
        if wrong and who == OURS:
            raise AssertionError(str(wrong))
        result.refused[who] = refused | wrong
        result.tried[who] = len(right)
        if right:
            result.configs[who] = best(copies[who], right, rep)
        elif who == OURS:
            raise RuntimeError(f"no configuration works: {refused}")
    everyone = of_copies({who: (copies[who], config) for who, config in result.configs.items()})
    return everyone | {(who, 0): run for who, run in (library or {}).items()}


def take_turns(
    run: Run, chosen: list[tuple[Result, dict[tuple, Callable]]], rounds: int = 9, rep: int = 20
) -> None:
    """Gives each result the times of those that were chosen for it, all of them in the same rounds: three times as many where it is open whether we are as fast as
    Triton at its best. ``run`` has results with which ratios are told, these among them."""
    everyone = {(i, *name): call for i, (_, of) in enumerate(chosen) for name, call in of.items()}
    laps(everyone, 1, rep)  # a card's clock falls most in the first round
    found: dict[tuple, list[float]] = {name: [] for name in everyone}
    with Clock() as clock:
        for count in (rounds, 2 * rounds):
            for name, times in laps(everyone, count, rep).items():
                found[name] += times
            for i, (result, of) in enumerate(chosen):
                result.laps = over_copies({name: found[i, *name] for name in of})
                result.together = len(chosen) > 1
            if not any(run.is_open(result) for result, _ in chosen):
                break
    for result, _ in chosen:
        result.clock_mhz, result.watts = clock.medians()


def measure(record: Record, result: Result, *args, rounds: int = 9, rep: int = 20, **options) -> Result:
    """One case: its competitors, chosen as ``choose`` does, take turns; what came of it, or why nothing did, is recorded and printed."""
    return measure_together(
        record, [(result, lambda: choose(result, *args, rep=rep, **options))], rounds, rep
    )[0]


def measure_together(
    record: Record, cases: list[tuple[Result, Callable[[], dict]]], rounds: int = 9, rep: int = 20
) -> list[Result]:
    """Several sources of one problem, in the same rounds, so that each can be held against Triton's best of them; with each a function that chooses its competitors."""
    run = Run(record.run.about, record.run.results + [result for result, _ in cases])
    chosen = []
    for result, choice in cases:
        try:
            chosen.append((result, choice()))
        except Exception as error:
            result.failed = f"{type(error).__name__} {str(error)[:1200]}"
    try:
        take_turns(run, chosen, rounds, rep)
    except Exception as error:
        for result, _ in chosen:
            result.failed = f"{type(error).__name__} {str(error)[:1200]}"
    for result, _ in cases:
        record.add(result)
        print(line(record.run, result), flush=True)
        for who, reasons in result.refused.items():
            if reasons and not result.tried[who]:
                print(f"    {who} has none: {next(iter(reasons.values()))[:150]}", flush=True)
    return [result for result, _ in cases]


def captured(run: Callable, rep: int) -> tuple[torch.cuda.CUDAGraph, int]:
    """A CUDA graph of launches that take about ``rep`` ms together, and how many."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        run()
        begin.record()
        for _ in range(5):
            run()
        end.record()
        torch.cuda.synchronize()
        count = max(1, int(5 * rep / begin.elapsed_time(end)))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(count):
                run()
    torch.cuda.synchronize()
    return graph, count


def graph_laps(
    competitors: dict[Hashable, Callable], rep: int = 20, rounds: int = 10
) -> dict[Hashable, list[float]]:
    """The times in ms of launches in a CUDA graph, many a replay; the competitors take turns, since long work brings a card to its power limit."""
    graphs = {who: captured(run, rep) for who, run in competitors.items()}

    def lap(graph_of_many):
        graph, count = graph_of_many
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / count

    return in_turns(graphs, rounds, lap)


def compare(
    record: Record,
    result: Result,
    competitors: dict[str, Callable],
    rounds: int = 5,
    rep: int = 15,
    graph: bool = True,
) -> Result:
    """Times of competitors that were checked and have their configurations, launched with a cold L2 cache and, with ``graph``, in a
    CUDA graph; recorded and printed."""
    with Clock() as clock:
        result.laps = laps(competitors, rounds, rep)
        result.graph = graph_laps(competitors, rep) if graph else {}
    result.clock_mhz, result.watts = clock.medians()
    record.add(result)
    print(times(result), flush=True)
    return result
