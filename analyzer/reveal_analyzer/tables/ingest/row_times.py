"""The times of a table's rows: filled, put into order, each only once; and what that costs.

More than 5 % of the rows are never lost: the table is refused, and the error says what to do.
"""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Indices, Ints
from reveal_analyzer.tables.ingest.entities import repeats_times
from reveal_analyzer.tables.ingest.mmap_buffer import RowBuffer
from reveal_analyzer.tables.ingest.open import TableFileError
from reveal_analyzer.tables.ingest.repeated_rows import repeated_rows
from reveal_contract.time_units import NS_PER_SECOND

_HOUR_NS = 3600 * NS_PER_SECOND
_MOST_LOST = 0.05  # of the rows
_FEWEST_BURSTS, _BURSTS = 10, 0.95  # of the groups of rows have the same size
_EXACT = "name the column of exact times (--time), or that of hosts or devices (--entity)"


class RowTimes:
    """Places the rows of a table in time; ``notes`` say what was changed.

    ``are_texts``: its clock is a column of texts.  Raises ``TableFileError``.
    """

    def __init__(self, path: object, *, are_texts: bool) -> None:
        self._path, self._are_texts = path, are_texts
        self.notes: list[str] = []

    def filled(self, times: Ints, good: Bools, valued: Bools) -> Ints:
        """Return times in which a row without a readable time is placed between its neighbors.

        Rows that are not ``valued`` have no value, as below the last one in many files.
        """
        if good.all():
            return times
        if not good.any():
            raise TableFileError(f"{self._path}: no row has a time that can be read")
        self._check_loss(
            int((~good & valued).sum()), len(times), "no readable time",
            "name another column of times (--time)",
        )  # fmt: skip
        known = np.flatnonzero(good)
        lost = np.flatnonzero(~good)
        base = times[known[0]]
        between = np.interp(lost, known, (times[known] - base).astype(np.float64))
        self.notes.append(f"{_rows(len(lost))} no readable time: the rows beside give it")
        filled = times.copy()
        filled[lost] = base + between.astype(np.int64)
        return filled

    def without_set_back(self, times: Ints) -> Ints:
        """Return times that rise through the end of daylight saving time, if it is among them."""
        steps = np.diff(times)
        falls = np.flatnonzero(steps < 0)
        median = int(np.median(steps)) if len(steps) else 0
        if len(falls) != 1 or not self._are_texts or median <= 0:
            return times
        row = int(falls[0]) + 1
        if abs(int(steps[row - 1]) + _HOUR_NS - median) > median:
            return times
        self.notes.append(f"the clock was set back by an hour in row {row + 1}: both hours count")
        return np.concatenate([times[:row] - _HOUR_NS, times[row:]])

    def without_repeated(self, times: Ints, valued: Bools, buffer: RowBuffer) -> Bools:
        """Return which rows count: those that repeat one of before the clock fell do not."""
        if not repeats_times(times) or (np.diff(times) >= 0).all():
            return valued
        repeated = repeated_rows(times, buffer)
        if repeated.any():
            count = int(repeated.sum())
            self.notes.append(
                f"{count} row{' repeats' if count == 1 else 's repeat'} another: each counts once"
            )
        return valued & ~repeated

    def ordered(self, times: Ints, good: Bools, valued: Bools) -> tuple[Ints, Indices, Indices]:
        """Return rising times, the input row of each, and the position of each input row.

        Of several rows with one time the last counts, but none whose own time is not ``good``, nor
        a cut row without a value.
        """
        if repeats_times(times[valued]):
            times = self._spread(times)
        order = np.lexsort((good & valued, times))
        if (np.diff(times) < 0).any():
            self.notes.append("rows are not in the order of time: they are put into it")
        rising = times[order]
        new = np.concatenate([[True], rising[1:] > rising[:-1]])
        last = np.concatenate([new[1:], [True]])
        if not new.all():
            lost = int((~last & valued[order]).sum())
            self._check_loss(
                min(lost, int((~new).sum())), len(times), "the time of another", _EXACT
            )
            if lost:
                what = "the time of another: the last of each time counts"
                self.notes.append(f"{_rows(lost)} {what}")
        positions = np.empty(len(times), np.intp)
        positions[order] = np.cumsum(new) - 1
        return rising[last], order[last], positions

    def check_repeated(self, entity: Indices, sample: Indices) -> None:
        """Note the rows that another row of their entity and time replaces, or refuse them."""
        pairs = sample.astype(np.int64) * (int(entity.max(initial=0)) + 1) + entity
        lost = len(pairs) - len(np.unique(pairs))
        if not lost:
            return
        self._check_loss(
            lost, len(pairs), "the time and entity of another",
            "name all columns that distinguish rows (--entity, several times)",
        )  # fmt: skip
        self.notes.append(f"{_rows(lost)} the time and entity of another: the last counts")

    def _spread(self, times: Ints) -> Ints:
        """Return times in which the rows of a whole second are spread over it.

        Raises ``TableFileError`` where rows share their time for another reason.
        """
        distinct, index, counts = np.unique(times, return_inverse=True, return_counts=True)
        if (distinct % NS_PER_SECOND).any() or np.median(counts) < 2 or not self._are_texts:
            raise TableFileError(
                f"{self._path}: {len(times) - len(distinct)} of {len(times)} rows have the time of"
                f" another, and no column distinguishes them: {_EXACT}, or write each series to a"
                " file of its own"
            )
        order = np.argsort(index, kind="stable")
        first = np.cumsum(counts) - counts
        position = np.empty(len(times), np.int64)
        position[order] = np.arange(len(times)) - first[index[order]]
        self.notes.append("rows of the same second are spread over it")
        return times + position * NS_PER_SECOND // counts[index]

    def _check_loss(self, lost: int, rows: int, what: str, remedy: str) -> None:
        if lost > _MOST_LOST * rows:
            have = "has" if lost == 1 else "have"
            raise TableFileError(f"{self._path}: {lost} of {rows} rows {have} {what}: {remedy}")


def bursts(times: Ints) -> Ints | None:
    """Return the number of each row's group, if rows come in groups of a size, a moment apart.

    They are of several devices, as a tool writes them at a time.
    """
    order = np.argsort(times, kind="stable")
    steps = np.diff(times[order])
    if len(steps) < 2 * _FEWEST_BURSTS or (longest := np.percentile(steps, 95)) <= 0:
        return None
    groups = np.concatenate([[0], np.cumsum(steps > longest / 4)])
    sizes = np.bincount(groups)
    size = int(np.median(sizes))
    if size < 2 or len(sizes) < _FEWEST_BURSTS or (sizes == size).mean() < _BURSTS:
        return None
    result = np.empty(len(times), np.int64)
    result[order] = groups
    return result


def _rows(count: int) -> str:
    return "1 row has" if count == 1 else f"{count} rows have"
