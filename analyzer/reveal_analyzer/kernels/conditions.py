"""Which of many conditions a second meets, all of them at once: the reference, in numpy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices


class Entries(NamedTuple):
    """One condition each: a column, what it is divided by (a column, -1: nothing; the CPUs).

    ``limits`` (entries, 3): at least, at most, and so many times the highest of the past.
    """

    columns: Indices
    divisors: Indices
    limits: Floats
    per_cpu: Bools


def met(entries: Entries, values: Floats, highest: Floats, cpus: float) -> Indices:
    """The entries that these values meet."""
    own = values[entries.columns]
    above, below, times = entries.limits.T
    with np.errstate(all="ignore"):
        asked = np.where(entries.divisors < 0, own, own / values[entries.divisors])
        asked = np.where(entries.per_cpu, asked / cpus, asked)
        novel = (times == 0) | (own >= times * highest[entries.columns])
    return np.flatnonzero((asked >= above) & (asked <= below) & novel)
