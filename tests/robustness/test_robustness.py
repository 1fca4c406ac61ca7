"""A little of each check of ``python tests/robustness``."""

import random

import pytest

from .frame import checks


@pytest.mark.parametrize("row", [row for row in checks() if row.few], ids=lambda row: row.run.__name__)
def test_nothing_is_lost(row):
    outcome = row.run(row.few, random.Random(1))
    assert outcome.tried
    assert not outcome.lost, "\n".join(outcome.lost)
