"""Conditions of signatures in compiled loops; same result as ``conditions.matching``."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices
from reveal_analyzer.kernels.conditions import Conditions
from reveal_analyzer.numba_jit import kernel


def matching(conditions: Conditions, values: Floats, highest: Floats, cpus: float) -> Indices:
    """Return the indices of the conditions that these values meet; see ``conditions.matching``."""
    return _matching(*conditions, values, highest, cpus)


@kernel
def _matching(
    columns: Indices,
    divisors: Indices,
    limits: Floats,
    per_cpu: Bools,
    values: Floats,
    highest: Floats,
    cpus: float,
) -> Indices:
    found, count = np.empty(columns.size, np.intp), 0
    for index in range(columns.size):
        own = values[columns[index]]
        ratio = own if divisors[index] < 0 else own / values[divisors[index]]
        ratio = ratio / cpus if per_cpu[index] else ratio
        if ratio >= limits[index, 0] and ratio <= limits[index, 1]:
            times = limits[index, 2]
            if times == 0 or own >= times * highest[columns[index]]:
                found[count] = index
                count += 1
    return found[:count]
