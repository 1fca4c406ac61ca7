"""Makes random kernels of what :mod:`generator` leaves out: the ends of formats, calls, rarer products, atomics, loops with advice."""

from __future__ import annotations

from .control import Control
from .edges import Edges
from .functions import Functions
from .generator import Generator
from .scaled import Scaled
from .scatter import Scatter

TARGETS = (80, 86, 89, 90, 90, 90, 90, 100, 120)
# What gives a value, and how often.
OPERATIONS = {
    Edges: {"ends": 4, "divided": 8, "mixed": 4, "special": 14},
    Functions: {"mapped": 4, "called": 6, "assembly": 3, "bytes": 3, "numbers": 2, "library": 8},
    Scaled: {"scaled": 12, "rarer": 12},
    Scatter: {"old": 3, "gathered": 4},
    Control: {"walk": 5, "until": 3, "nest": 4},
}


class Wide(Edges, Functions, Scaled, Scatter, Control, Generator):
    """Makes one kernel; :meth:`program` is it."""

    NAMES = (*Generator.NAMES, *(name for names in OPERATIONS.values() for name in names))
    WEIGHTS = (*Generator.WEIGHTS, *(weight for names in OPERATIONS.values() for weight in names.values()))

    def __init__(self, seed: int, target: int | None = None):
        super().__init__(seed, target)
        self.target = target or self.rng.choice(TARGETS)
        if self.target != 90:
            self.options["num_ctas"] = 1

    def store(self, value) -> None:
        """Beside what is stored stand statements of other kinds."""
        if self.chance(0.25):
            self.budget = 10
            getattr(self, self.rng.choice(["crowded", "crowded", "alone", "added", "scattered", "leave"]))()
        super().store(value)
