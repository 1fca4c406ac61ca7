"""Broken inputs of each kind: the Rust tests that every ``make test`` runs, with more of them."""

from __future__ import annotations

import os
import random as randomness
import re
import subprocess
from pathlib import Path

from .frame import Outcome, check

ROOT = Path(__file__).parents[2]
KINDS = {"py": "kernels in Python", "mlir": "modules of IR", "ptx": "PTX"}


@check("words exchanged, dropped and doubled in real kernels, IR and PTX", rounds=2000, few=0)
def mutations(rounds: int, random: randomness.Random) -> Outcome:
    command = ["cargo", "test", "--quiet", "-p", "tilewright-cli", "--test", "mutations", "--", "--nocapture"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"TILEWRIGHT_MUTATIONS": str(rounds)},
        capture_output=True,
        text=True,
        check=False,
    )
    outcome = Outcome()
    for kind, count, valid in re.findall(r"(\w+): (\d+) mutants, (\d+) of them valid", done.stdout):
        outcome.tried[f"{KINDS[kind]} ({int(valid):,} still valid)"] += int(count)
    if done.returncode != 0:
        outcome.lost.append((done.stdout + done.stderr)[-3000:])
    return outcome
