"""Context beside findings: activity that changed, and the load during the warm-up."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.episodes.trace import ObservedSecond
from reveal_analyzer.formatting import amount
from reveal_contract.metric import Harm

_LEAST_EXCESS = 8.0  # spreads outside the baseline from which a change is worth a line
_MOST_LINES = 3
_MOST_COLUMNS = 40  # columns looked at, largest excess first
_LOAD = ("cpu.pressure.some", "memory.pressure.some", "storage.pressure.some")


def changed_lines(second: ObservedSecond) -> tuple[str, ...]:
    """Return a line for each metric group whose activity left its baseline most, largest first."""
    if not second.excess.shape[1]:
        return ()
    excess = second.excess.max(axis=0)
    lines: dict[str, str] = {}
    for index in np.argsort(-excess, kind="stable")[:_MOST_COLUMNS]:
        column = second.plan.columns[index]
        if excess[index] < _LEAST_EXCESS or len(lines) == _MOST_LINES:
            break
        # harm becomes a finding; a rate of change repeats what the level shows
        if column.harm is not Harm.NEITHER or column.feature == "mean_change":
            continue
        row = column.metric
        value, baseline = (
            amount(row, column.feature, column.instance, float(values[index]))
            for values in (second.values, second.baseline)
        )
        instance = f"{{{column.instance}}}" if column.instance else ""
        lines.setdefault(row.metric_group, f"{row.name}{instance} {value}, baseline {baseline}")
    return tuple(lines.values())


def warmup_load(before: dict[str, float], age: int, second: Second) -> dict[str, float]:
    """Return the mean load of the warm-up, updated by one second.

    The values are busy CPUs in cores and pressures from 0 to 1.  They are reported, because a
    baseline that was learned on a saturated host hides contention.  A second without a value
    leaves the mean as it was.
    """
    now = dict(before)
    for index, column in enumerate(second.plan.columns):
        name = column.metric.name
        if (name == "cpu.busy" or name in _LOAD) and column.feature != "mean_change":
            value = float(second.values[index]) / 1e9
            mean = before.get(name, value)
            if not np.isnan(value):
                now[name] = mean + (value - mean) / age
    return now
