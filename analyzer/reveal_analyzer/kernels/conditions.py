"""Conditions of signatures, evaluated for one second all at once: the numpy reference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices


class Conditions(NamedTuple):
    """One entry per condition: its column and what the column is divided by.

    ``divisors`` are columns, -1 for none.  Where ``per_cpu`` is set the value is also divided by
    the number of CPUs.  ``limits`` (conditions, 3) are the least value, the largest value, and the
    factor of the highest value of the history that the column must reach (0: no such requirement).
    """

    columns: Indices
    divisors: Indices
    limits: Floats
    per_cpu: Bools


def matching(conditions: Conditions, values: Floats, highest: Floats, cpus: float) -> Indices:
    """Return the indices of the conditions that these values meet."""
    own = values[conditions.columns]
    above, below, times = conditions.limits.T
    with np.errstate(all="ignore"):
        ratio = np.where(conditions.divisors < 0, own, own / values[conditions.divisors])
        ratio = np.where(conditions.per_cpu, ratio / cpus, ratio)
        novel = (times == 0) | (own >= times * highest[conditions.columns])
    return np.flatnonzero((ratio >= above) & (ratio <= below) & novel)
