"""Which of many conditions a second meets, by a compiled loop: those that ``gate.met`` finds."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices
from reveal_analyzer.kernels.conditions import Entries
from reveal_analyzer.numba_jit import kernel


def met(entries: Entries, values: Floats, highest: Floats, cpus: float) -> Indices:
    """As ``gate.met``."""
    return _met(*entries, values, highest, cpus)


@kernel
def _met(
    columns: Indices,
    divisors: Indices,
    limits: Floats,
    per_cpu: Bools,
    values: Floats,
    highest: Floats,
    cpus: float,
) -> Indices:
    found, count = np.empty(columns.size, np.intp), 0
    for entry in range(columns.size):
        own = values[columns[entry]]
        asked = own if divisors[entry] < 0 else own / values[divisors[entry]]
        asked = asked / cpus if per_cpu[entry] else asked
        if asked >= limits[entry, 0] and asked <= limits[entry, 1]:
            times = limits[entry, 2]
            if times == 0 or own >= times * highest[columns[entry]]:
                found[count] = entry
                count += 1
    return found[:count]
