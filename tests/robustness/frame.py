"""The frame: a check is a function that tries something a number of times and says what it lost.

To add a row, write a function in a module of this package, mark it with :func:`check`, and name the module in ``MODULES``.
"""

from __future__ import annotations

import argparse
import importlib
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

MODULES = ["cache", "interrupts", "mutations"]


@dataclass
class Outcome:
    """What came of a check."""

    tried: Counter[str] = field(default_factory=Counter)
    """How often what was tried."""
    lost: list[str] = field(default_factory=list)
    """What went wrong, one text each: a wrong result, a hang, a death, something that was not repaired."""

    @property
    def counts(self) -> str:
        return ", ".join(f"{n:,} {what}" for what, n in self.tried.items())


@dataclass
class Check:
    """A row of the table."""

    what: str
    rounds: int
    few: int
    run: Callable[[int, random.Random], Outcome]


CHECKS: list[Check] = []


def check(what: str, *, rounds: int, few: int):
    """Marks a function ``(rounds, random) -> Outcome``; ``few`` rounds take a few seconds, for every test run: none where
    that has tests of its own."""

    def mark(run):
        CHECKS.append(Check(what, rounds, few, run))
        return run

    return mark


def checks() -> list[Check]:
    """All of them."""
    for module in MODULES:
        importlib.import_module(f".{module}", __package__)
    return CHECKS


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="robustness", description="Tries to break Tilewright, and prints a table."
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="how many rounds, as a multiple of the usual ones"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random choices")
    parser.add_argument("--only", default="", help="run the rows whose name contains this")
    options = parser.parse_args()
    lost = 0
    print("| what | how often | lost | seconds |\n| --- | --- | --- | --- |", flush=True)
    for row in checks():
        if options.only not in row.what:
            continue
        start = time.monotonic()
        outcome = row.run(max(1, round(row.rounds * options.scale)), random.Random(options.seed))
        seconds = round(time.monotonic() - start)
        print(f"| {row.what} | {outcome.counts} | {len(outcome.lost)} | {seconds} |", flush=True)
        for text in outcome.lost[:20]:
            print(f"  lost: {text}", flush=True)
        lost += len(outcome.lost)
    return 1 if lost else 0
