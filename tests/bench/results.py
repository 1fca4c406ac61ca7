"""Raw results of measurements, kept in ``bench/results/<date>-<gpu>.json``, from which ``scripts/performance.py`` makes the tables.

A file is a list of runs. A run is one script in one process on one machine: ``about`` says with what (versions, GPU, its power limit,
``ptxas``), ``results`` has an entry a case: the times in ms of every round of every competitor, in turns (``laps``), and ``amount``,
the operations or bytes of one launch. A case that could not be measured has ``failed``, which says why.
"""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "bench" / "results"
OURS, TRITON, SIMULATOR = "ours", "Triton", "simulator"
# As a share of whose speed ours may not be less.
FLOORS = {TRITON: 1.0, "cuBLAS": 0.98, "SDPA": 1.0}


@dataclass
class Result:
    """One case of a table."""

    table: str
    case: str
    problem: str
    """What is computed: cases of one problem are different sources of it."""
    unit: str = ""
    """What ``amount`` is, a second: TFLOP/s or TB/s."""
    amount: float = 0.0
    laps: dict[str, list[float]] = field(default_factory=dict)
    graph: dict[str, list[float]] = field(default_factory=dict)
    """The same of launches in a CUDA graph, where what a launch costs the CPU does not count."""
    configs: dict[str, dict] = field(default_factory=dict)
    tried: dict[str, int] = field(default_factory=dict)
    """How many configurations of each compiler worked, were checked and timed."""
    refused: dict[str, dict[str, str]] = field(default_factory=dict)
    """Why the others did not: refused by the compiler, or wrong."""
    errors: dict[str, float] = field(default_factory=dict)
    """The largest error of a row among each compiler's configurations, as a share of the row's root mean square."""
    clock_mhz: float | None = None
    watts: float | None = None
    stages: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """Of compilations, the times in ms of each stage of each compiler, every round; ``laps`` then has all stages but ``ptxas``."""
    counts: dict[str, int] = field(default_factory=dict)
    failed: str = ""
    together: bool = False
    """Whether the other sources of its problem were measured in the same rounds."""

    def ms(self, who: str, graph: bool = False) -> float:
        """The median of the rounds; NaN for one that did not take part."""
        laps = self.graph if graph else self.laps
        return statistics.median(laps[who]) if who in laps else math.nan

    def rate(self, who: str) -> float:
        """In ``unit``."""
        return self.amount / self.ms(who) * 1e-9

    def ratio(self, who: str, graph: bool = False) -> float:
        """How many times as fast as the competitor ours is: the median of the ratios of each round, since a card's clock moves less within a round than from
        one to the next. NaN for one that did not take part."""
        laps = self.graph if graph else self.laps
        if who not in laps or OURS not in laps:
            return math.nan
        if len(laps[who]) != len(laps[OURS]):
            return self.ms(who, graph) / self.ms(OURS, graph)
        return statistics.median(by_round(laps[who], laps[OURS]))


def by_round(theirs: list[float], ours: list[float]) -> list[float]:
    """How many times as fast ours is in each round."""
    return [a / b for a, b in zip(theirs, ours)]


def interval(ratios: list[float], confidence: float = 0.95) -> tuple[float, float]:
    """Between which of the rounds' ratios the median of all rounds that there could be lies, with this confidence whatever their distribution: as many are left out
    on either side as so many throws of a coin come out one way in less than half of the rest (David and Nagaraja, Order Statistics, 7.1). NaN with too few
    rounds, fewer than six at 0.95."""
    n, tail, out = len(ratios), 0.0, -1
    while (tail := tail + math.comb(n, out + 1) / 2**n) <= (1 - confidence) / 2:
        out += 1
    ordered = sorted(ratios)
    return (ordered[out], ordered[n - 1 - out]) if out >= 0 else (math.nan, math.nan)


@dataclass
class Run:
    """What one process measured on one machine."""

    about: dict
    results: list[Result]

    def table(self, name: str) -> list[Result]:
        return [r for r in self.results if r.table == name]

    def best_of_triton(self, result: Result) -> Result | None:
        """The result in which Triton was fastest on the same problem, by whatever source of it."""
        others = [r for r in self.results if r.problem == result.problem and TRITON in r.laps and r.amount]
        return min(others, key=lambda r: r.ms(TRITON) / r.amount, default=None)

    def laps(self, result: Result, who: str) -> list[float]:
        """The times of every round; of a library that took a turn beside each of several sources of the problem, the means of its turns of a round."""
        beside = [result]
        if result.together and who not in (OURS, TRITON):
            beside = [r for r in self.results if r.problem == result.problem and r.together and who in r.laps]
        return [statistics.fmean(turns) for turns in zip(*(r.laps.get(who, []) for r in beside))]

    def rounds(self, result: Result, who: str) -> list[float]:
        """How many times as fast as the competitor we are in each round; as Triton at its best for the problem, whose source may be another. Nothing where
        they did not take turns."""
        best = self.best_of_triton(result) if who == TRITON and result.amount else result
        if best is None or OURS not in result.laps or who not in best.laps:
            return []
        if best is not result and not (best.together and result.together):
            return []
        theirs, ours = self.laps(best, who), result.laps[OURS]
        if len(theirs) != len(ours):
            return []
        share = result.amount / best.amount if best is not result else 1.0
        return [ratio * share for ratio in by_round(theirs, ours)]

    def rate(self, result: Result, who: str) -> float:
        """In the result's ``unit``; NaN for one that did not take part."""
        laps = self.laps(result, who)
        return result.amount / statistics.median(laps) * 1e-9 if laps else math.nan

    def ratio(self, result: Result, who: str) -> float:
        """How many times as fast as the competitor we are; of Triton, as the best that it has for the problem."""
        if rounds := self.rounds(result, who):
            return statistics.median(rounds)
        if who == TRITON and result.amount:
            best = self.best_of_triton(result)
            if best is not result:
                return math.nan if best is None else result.rate(OURS) / best.rate(TRITON)
        return result.ratio(who)

    def interval(self, result: Result, who: str) -> tuple[float, float]:
        """Between which numbers the ratio lies, with a confidence of 0.95; NaN where it cannot be told."""
        return interval(self.rounds(result, who))

    def is_open(self, result: Result) -> bool:
        """Whether the rounds leave open on which side of a floor we are."""
        return any(low < FLOORS[who] < high for who in FLOORS for low, high in [self.interval(result, who)])

    def is_untold(self, result: Result, who: str) -> bool:
        """Whether the ratio is below its floor, and too few rounds say by how much."""
        return math.isnan(self.interval(result, who)[0]) and self.ratio(result, who) < FLOORS[who]

    def is_below(self, result: Result, who: str) -> bool:
        """Whether we are below a floor by more than rounds differ."""
        return self.interval(result, who)[1] < FLOORS[who]


def load(path: Path) -> list[Run]:
    """The runs of a file."""
    runs = json.loads(path.read_text())
    return [Run(run["about"], [Result(**r) for r in run["results"]]) for run in runs]


def dump(path: Path, runs: list[Run]) -> None:
    """Writes the runs, a line a result."""
    blocks = []
    for run in runs:
        lines = ",\n".join(json.dumps({k: v for k, v in asdict(r).items() if v not in (None, "", {}, 0.0)}, ensure_ascii=False)
                           for r in run.results)  # fmt: skip
        blocks.append(
            f'{{"about": {json.dumps(run.about, ensure_ascii=False, indent=1)},\n"results": [\n{lines}\n]}}'
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[" + ",\n".join(blocks) + "]\n")


class Record:
    """Collects the results of this process, and rewrites its file after each: what is stopped halfway loses nothing."""

    def __init__(self, path: str | Path | None, about: dict):
        self.path = Path(path) if path else None
        self.earlier = load(self.path) if self.path and self.path.exists() else []
        self.run = Run(about, [])

    def add(self, result: Result) -> Result:
        self.run.results.append(result)
        if self.path:
            dump(self.path, [*self.earlier, self.run])
        return result


def times(result: Result) -> str:
    """Times in µs as scripts print them, launched and in a graph, and how many times ours the others are."""
    words = [f"{result.case:40}"]
    for graph, laps in ((False, result.laps), (True, result.graph)):
        if laps:
            words.append("in a graph" if graph else "launched")
            words += [
                f"{who} {result.ms(who, graph) * 1e3:.2f}"
                + ("" if who == OURS else f" = {result.ratio(who, graph):.3f}")
                for who in laps
            ]
    kept = [
        f"{who} {'/'.join(map(str, config.values()))}" for who, config in result.configs.items() if config
    ]
    return "  ".join(words + kept + [f"{name} {count}" for name, count in result.counts.items()])


def line(run: Run, result: Result) -> str:
    """A result as scripts print it while they measure."""
    if result.failed:
        return f"{result.case:40} FAILED {result.failed}"
    others = "  ".join(
        f"{who} {result.rate(who):8.3f} ratio {run.ratio(result, who):5.3f}"
        for who in result.laps
        if who != OURS
    )
    kept = " | ".join("/".join(str(v).replace(" ", "") for v in c.values()) for c in result.configs.values())
    return f"{result.case:40} {result.rate(OURS):8.3f} {result.unit}  {others}  {kept}"
