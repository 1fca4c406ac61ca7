"""Ctrl-C at any moment of a compilation or a run: it ends, no tool is left behind, and the next one is right."""

from __future__ import annotations

import random as randomness
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

from .frame import Outcome, check

WORKER = Path(__file__).with_name("interrupted.py")
# Far more than anything takes on a machine that does other things, too. What is not interrupted runs for ever.
PATIENCE = 120.0
KINDS = ["compile", "execute", "simulate"]


def children(process: int) -> list[str]:
    """The programs that a process has started and that still run."""
    listed = subprocess.run(
        ["ps", "--ppid", str(process), "-o", "stat=,comm="], capture_output=True, text=True, check=False
    )
    lines = [line.split(None, 1) for line in listed.stdout.splitlines()]
    return [command for state, command in lines if not state.startswith("Z")]


def answer(worker: subprocess.Popen, interrupt: bool = False) -> list[str]:
    """What it says, after Ctrl-C if asked for: again where the first one came before the work."""
    with selectors.DefaultSelector() as selector:
        selector.register(worker.stdout, selectors.EVENT_READ)
        for _ in range(int(PATIENCE)):
            if interrupt:
                worker.send_signal(signal.SIGINT)
            if selector.select(1.0):
                return worker.stdout.readline().split(None, 1) or ["death", f"status {worker.wait(PATIENCE)}"]
    return ["nothing", f"within {PATIENCE:.0f} s"]


@check("Ctrl-C at any moment of compiling (`ptxas` too), executing and simulating", rounds=300, few=15)
def interrupts(rounds: int, random: randomness.Random) -> Outcome:
    outcome = Outcome()
    worker = None
    try:
        for n in range(rounds):
            if worker is None:
                worker = subprocess.Popen(
                    [sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
                answer(worker)
            kind = KINDS[n % len(KINDS)]
            worker.stdin.write(f"{kind}\n")
            worker.stdin.flush()
            time.sleep(random.random() * (0.3 if kind == "compile" else 0.1))
            what, after = answer(worker, interrupt=True)
            outcome.tried[f"{what} while it was to {kind}"] += 1
            left = children(worker.pid)
            if what not in ("interrupted", "ended") or after.strip() != "right" or left:
                outcome.lost.append(f"{kind}: {what}, then {after.strip()}, left running: {left}")
                worker.kill()
                worker.wait()
                worker = None
    finally:
        if worker is not None:
            worker.kill()
            worker.wait()
    return outcome
