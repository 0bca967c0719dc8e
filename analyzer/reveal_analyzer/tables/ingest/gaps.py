"""What a table does not hold: times without a row, and metrics without a value for a while.

A metric that stops may be a device that was lost, and nothing that happens in a gap can be found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from reveal_analyzer.arrays import Bools, Floats
from reveal_analyzer.formatting import list_some
from reveal_analyzer.tables.scoring.spans import Span, runs_of
from reveal_analyzer.tables.scoring.table import Table

_LEAST_ROWS = 10  # a shorter gap hides little
_MOSTLY = 0.9  # share of the rows outside its gap in which a metric has a value
_DESCRIBED = 3  # gaps of a node
_CELLS = 1 << 25  # values looked at together

ShowTime = Callable[[int], str]


def gap_notes(tables: Mapping[str, Table], show: ShowTime) -> list[str]:
    """Return sentences on the gaps in tables of the same times, by node.

    ``show`` formats a time.
    """
    notes = list(_rows_missing(next(iter(tables.values())), show))
    for node, table in tables.items():
        of_node = f" of {node}" if len(tables) > 1 else ""
        notes += _values_missing(table, of_node, show)
    return notes


def _rows_missing(table: Table, show: ShowTime) -> Iterator[str]:
    """Yield a sentence on the longest stretch without a row."""
    steps = np.diff(table.times_ns)
    long = np.flatnonzero(steps > _LEAST_ROWS * table.period_ns)
    if not len(long):
        return
    before = int(long[steps[long].argmax()])
    first, last = (show(int(table.times_ns[row])) for row in (before, before + 1))
    others = f", the longest of {len(long)} gaps" if len(long) > 1 else ""
    yield f"no rows between {first} and {last}{others}"


def _values_missing(table: Table, of_node: str, show: ShowTime) -> Iterator[str]:
    """Yield sentences on the longest gaps of metrics, those of the same rows together."""
    gaps = sorted(_metric_gaps(table).items(), key=lambda gap: gap[0][0] - gap[0][1])
    for (first, end), names in gaps[:_DESCRIBED]:
        listed = list_some(names, "columns")
        yield f"no value{of_node} in {listed} {_when(table, first, end, show)}"
    rest = sum(len(names) for _, names in gaps[_DESCRIBED:])
    if rest:
        yield f"shorter gaps{of_node} in {rest} more column{'s' if rest > 1 else ''}"


def _when(table: Table, first: int, end: int, show: ShowTime) -> str:
    begin, last = (show(int(table.times_ns[row])) for row in (first, end - 1))
    if end == len(table):
        return f"from {begin} on"
    return f"until {last}" if first == 0 else f"from {begin} to {last}"


def _metric_gaps(table: Table) -> dict[Span, list[str]]:
    """Return the metrics whose longest gap is the same, by its first row and its end."""
    found: dict[Span, list[str]] = {}
    width = max(1, _CELLS // max(1, len(table)))
    for begin in range(0, len(table.names), width):
        for index, gap in _gaps_of(table.values[:, begin : begin + width]):
            found.setdefault(gap, []).append(table.names[begin + index])
    return found


def _gaps_of(values: Floats) -> Iterator[tuple[int, Span]]:
    """Yield the column and the longest gap of each metric (n, m) that has one."""
    missing = np.isnan(values)
    counts = missing.sum(0)
    for index in np.flatnonzero((counts >= _LEAST_ROWS) & (counts < len(values))).tolist():
        gap = _longest(missing[:, index])
        length = gap[1] - gap[0]
        sparse = counts[index] - length > (1.0 - _MOSTLY) * (len(values) - length)
        if length >= _LEAST_ROWS and not sparse:
            yield index, gap


def _longest(missing: Bools) -> Span:
    firsts, ends = runs_of(missing)
    longest = int((ends - firsts).argmax())
    return int(firsts[longest]), int(ends[longest])
