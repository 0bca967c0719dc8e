"""Counters among a table's metrics: numbers that only rise, of which only steps say anything."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.tables.scoring.table import Table
from reveal_contract.time_units import NS_PER_SECOND

# the suffixes that Prometheus' "Metric and label naming" asks of counters, and their like
_NAMED = re.compile(r"(_total|_count|_cnt|\.count)(\{.*\})?\Z", re.IGNORECASE)
_FEWEST = 20  # rows; in fewer a level can rise all the time
_MOSTLY = 0.5  # of the steps, that rise in a counter whose name does not say so
_ROWS_A_RESET = 500  # a counter starts anew no more often
_BLOCK_BYTES = 64 << 20


def find(table: Table) -> set[str]:
    """Names of the metrics that are counters.

    They never fall, but to less than half, and seldom (a restart); and rise most of the time,
    unless their name tells what they are.
    """
    rows, width = table.values.shape
    if rows < _FEWEST:
        return set()
    rises, falls, resets, known = (np.zeros(width, np.int64) for _ in range(4))
    for before, after in _steps(table.values):
        fell = after < before
        reset = fell & (after >= 0) & (after < 0.5 * before)
        rises += (after > before).sum(axis=0)
        falls += (fell & ~reset).sum(axis=0)
        resets += reset.sum(axis=0)
        known += (~np.isnan(before) & ~np.isnan(after)).sum(axis=0)
    named = np.array([bool(_NAMED.search(name)) for name in table.names], bool)
    rising = np.where(named, rises > 0, rises > _MOSTLY * np.maximum(known, _FEWEST))
    counters = rising & (falls == 0) & (resets <= rows // _ROWS_A_RESET)
    return {table.names[at] for at in np.flatnonzero(counters)}


def make_rates(table: Table, counters: Collection[str]) -> None:
    """Put the rate per second in the place of these counters, missing where one began anew.

    The values are changed where they are: a second copy might not fit into memory.
    """
    values = table.values
    places = np.flatnonzero([name in counters for name in table.names])
    if not len(places) or not len(table):
        return
    seconds = np.diff(table.times_ns) / NS_PER_SECOND
    last = values[0, places]
    for at in range(1, len(values), _rows(values)):
        block = values[at : at + _rows(values), places]
        steps = np.diff(block, axis=0, prepend=last[None])
        last = block[-1]
        steps[steps < 0] = np.nan
        values[at : at + len(block), places] = steps / seconds[at - 1 : at - 1 + len(block), None]
    values[0, places] = np.nan


def _steps(values: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Blocks of rows beside the rows that follow them."""
    for at in range(0, len(values) - 1, _rows(values)):
        end = min(at + _rows(values), len(values) - 1)
        yield values[at:end], values[at + 1 : end + 1]


def _rows(values: Floats) -> int:
    return max(1, _BLOCK_BYTES // max(1, 8 * int(values.shape[1])))
