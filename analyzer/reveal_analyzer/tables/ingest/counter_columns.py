"""Counters among a table's metrics: values that only rise, whose rate is the information."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.tables.scoring.table import Table
from reveal_contract import catalogue
from reveal_contract.metric import Kind
from reveal_contract.time_units import NS_PER_SECOND

# suffixes of counters in Prometheus' "Metric and label naming", and similar ones
_NAMED = re.compile(r"(_total|_count|_cnt|\.count)(\{.*\})?\Z", re.IGNORECASE)
# words of levels: a leak or a disk that fills rises all the time, too, and its level says so
_LEVEL = re.compile(
    r"(?<![a-z])(used|free|avail(able)?|pct|percent|ratio|util(ization|isation)?|temp(erature)?"
    r"|celsius|rss|resident|in_?use|heap|capacity|occupancy|depth|anon|cached|buffers|committed"
    r"|size)(?![a-z])|%|(usage|active)(?=_(in_)?bytes)",
    re.IGNORECASE,
)
_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")
_FEWEST = 20  # rows; in fewer a level may rise all the time
_MOSTLY = 0.5  # share of rising steps that makes a counter without such a name
_ROWS_A_RESET = 500  # a counter is reset no more often
_ROWS_FOR_A_RESET = 200  # in which a single one is no sign of a level
_NAMED_RESETS, _NAMED_FALLS = 3, 2
_BLOCK_BYTES = 64 << 20


def find(table: Table) -> set[str]:
    """Return the names of the metrics that are counters.

    A counter never falls except to less than half, and rarely (a restart).  It rises most of the
    time.  What is named as one may rise seldom, restart more often, and dip.  A name of a level is
    that of none.
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
    levels = np.array([_is_level(name) for name in table.names], bool)
    rising = np.where(named, rises > 0, rises > _MOSTLY * np.maximum(known, _FEWEST))
    few = rows // _ROWS_A_RESET
    # a name of a counter is believed through some resets, and dips of a host that corrects itself
    most_resets = np.where(named, max(few, _NAMED_RESETS), max(few, rows >= _ROWS_FOR_A_RESET))
    most_falls = np.where(named, max(few, _NAMED_FALLS), 0)
    counters = rising & ~levels & (falls <= most_falls) & (resets <= most_resets)
    return {table.names[first] for first in np.flatnonzero(counters)}


def _is_level(name: str) -> bool:
    """Return whether the name of a metric says that it is a level."""
    try:
        return catalogue.find(name.partition("{")[0]).kind is Kind.GAUGE
    except catalogue.UnknownMetricError:
        words = _CASE.sub("_", name.partition("{")[0])
        return bool(_LEVEL.search(words)) and not _NAMED.search(name)


def make_rates(table: Table, counters: Collection[str]) -> None:
    """Replace these counters by their rate per second, missing where one was reset.

    The values are changed in place, as a second copy might not fit into memory.
    """
    values = table.values
    indices = np.flatnonzero([name in counters for name in table.names])
    if not len(indices) or not len(table):
        return
    seconds = np.diff(table.times_ns) / NS_PER_SECOND
    last = values[0, indices]
    for first in range(1, len(values), _rows(values)):
        block = values[first : first + _rows(values), indices]
        steps = np.diff(block, axis=0, prepend=last[None])
        last = block[-1]
        steps[steps < 0] = np.nan
        values[first : first + len(block), indices] = (
            steps / seconds[first - 1 : first - 1 + len(block), None]
        )
    values[0, indices] = np.nan


def _steps(values: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield blocks of rows with the rows that follow them."""
    for first in range(0, len(values) - 1, _rows(values)):
        end = min(first + _rows(values), len(values) - 1)
        yield values[first:end], values[first + 1 : end + 1]


def _rows(values: Floats) -> int:
    return max(1, _BLOCK_BYTES // max(1, 8 * int(values.shape[1])))
