"""What merely changed, and how loaded the node was while it was learned: context, no findings."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.episodes.trace import Observed
from reveal_analyzer.formatting import human
from reveal_contract.metric import Harm

_CHANGED = 8.0  # spreads outside the past from which a change is worth a line
_LINES = 3
_LOAD = ("cpu.pressure.some", "memory.pressure.some", "storage.pressure.some")


def changed_lines(seen: Observed) -> tuple[str, ...]:
    """The activity that left its past most this second, most first, one line a family."""
    if not seen.excess.shape[1]:
        return ()
    excess = seen.excess.max(axis=0)
    lines: dict[str, str] = {}
    for at in np.argsort(-excess, kind="stable")[:40]:
        column = seen.plan.columns[at]
        if excess[at] < _CHANGED or len(lines) == _LINES:
            break
        if column.harm is not Harm.NEITHER or column.feature == "mean_change":
            continue
        row = column.metric
        value = human(float(seen.values[at]), row.unit, row.kind)
        usual = human(float(seen.baseline[at]), row.unit, row.kind)
        where = f"{{{column.instance}}}" if column.instance else ""
        lines.setdefault(row.vote, f"{row.name}{where} {value}, usually {usual}")
    return tuple(lines.values())


def warmup_load(before: dict[str, float], age: int, second: Second) -> dict[str, float]:
    """Mean load of the warm-up so far: busy CPUs and pressure shares, 0 to 1 (CPUs: cores).

    A host learned while saturated hides contention, so the load it was learned under is said.
    """
    now: dict[str, float] = {}
    for at, column in enumerate(second.plan.columns):
        name = column.metric.name
        if (name == "cpu.busy" or name in _LOAD) and column.feature != "mean_change":
            now[name] = float(np.nan_to_num(second.values[at])) / 1e9
    return {
        name: before.get(name, 0.0) + (value - before.get(name, 0.0)) / age
        for name, value in now.items()
    }
