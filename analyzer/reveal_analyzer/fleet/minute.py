"""The last minute of one node: the level of each metric, combined over its instances.

Each second is added to a block of five, which costs two vector additions.  Everything else is
computed only when a summary is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.columns import CHANGE, LEVEL, Column, ColumnPlan
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.fleet.measures import IDLE_PAGES, PROMISED_PAGES, STEP, Fold, fold
from reveal_analyzer.subjects.means import is_subject_level
from reveal_contract import catalogue
from reveal_contract.metric import Role, Scope
from reveal_contract.time_units import NS_PER_SECOND

MINUTE = 60  # seconds
_BLOCK = 5  # seconds: averages short bursts; an event once a minute does not move the median
_LEAST_READ = 0.5  # of the seconds in which a subject existed
_QUARTILES = 1.349  # standard deviations between the quartiles of a normal distribution
_REDUCE = {Fold.TOTAL: np.add, Fold.LARGEST: np.fmax, Fold.LEAST: np.fmin}
_MEMINFO = ("memory.huge_pages_free", "memory.huge_pages_rsvd", "memory.hugepagesize")
_LAYOUTS = 64  # cached: nodes of one kind share a layout


@dataclass(frozen=True)
class MinuteLevels:
    """Levels of a node in a minute, by metric; NaN if nothing was read.

    ``levels`` are medians of the blocks (means for events), ``spreads`` are deviations of the
    blocks, both in base units, counters per second.  ``subjects`` are means over the seconds in
    which a value was read, by (metric, instance); a subject of which less than half was read while
    it existed is not among them.
    """

    minute: int
    seconds: int
    names: tuple[str, ...]
    levels: Floats
    spreads: Floats
    subjects: Mapping[tuple[str, str], float]


class MinuteLayout:
    """How the columns of a plan are combined to one number per metric, and subjects' channels."""

    def __init__(self, plan: ColumnPlan) -> None:
        self.plan = plan
        columns = _columns_by_metric(plan.columns)
        self.names = tuple(sorted(columns, key=lambda name: (fold(name).value, name)))
        self._order = np.array([index for name in self.names for index in columns[name]], np.intp)
        self._runs = self._find_runs(columns)
        subjects = [
            (index, channel)
            for index, channel in enumerate(plan.channels)
            if is_subject_level(channel)
        ]
        self.subjects = tuple((channel.metric, channel.instance) for _, channel in subjects)
        self.subject_indices = np.array([index for index, _ in subjects], np.intp)

    def fold(self, rows: Floats) -> Floats:
        """Combine rows of columns to rows of metrics; a missing instance makes a sum missing."""
        ordered = rows[:, self._order]
        if not self._runs:
            return ordered
        return np.hstack([
            reduce.reduceat(ordered[:, first:end], starts, axis=1)
            for reduce, first, end, starts in self._runs
        ])  # fmt: skip

    def _find_runs(
        self, columns: Mapping[str, list[int]]
    ) -> list[tuple[np.ufunc, int, int, NDArray[np.intp]]]:
        """Return (reduction, first, end, start of each metric) of each fold, in column order."""
        runs: list[tuple[np.ufunc, int, int, NDArray[np.intp]]] = []
        first = 0
        for how in sorted(Fold, key=lambda each: each.value):
            widths = [len(columns[name]) for name in self.names if fold(name) is how]
            if widths:
                starts = np.concatenate([[0], np.cumsum(widths[:-1])]).astype(np.intp)
                runs.append((_REDUCE[how], first, first + sum(widths), starts))
                first += sum(widths)
        return runs


class SubjectSums:
    """Sums of subjects' channels over some seconds, and how many seconds of each were not read."""

    def __init__(self, width: int) -> None:
        self.seconds = 0
        self.sums: Floats = np.zeros(width)
        self.missing = np.zeros(width, np.intp)

    def add(self, values: Floats) -> None:
        """Add a second; NaN where nothing was read."""
        self.seconds += 1
        missing = np.isnan(values)
        if missing.any():
            self.missing += missing
            values = np.where(missing, 0.0, values)
        self.sums += values


@dataclass
class MinutePart:
    """Some seconds of one layout: by block, the sums of columns; over all, those of subjects."""

    layout: MinuteLayout
    sums: list[Floats] = field(default_factory=list)
    subjects: SubjectSums = field(init=False)
    lengths: list[int] = field(default_factory=list)  # seconds

    def __post_init__(self) -> None:
        self.subjects = SubjectSums(len(self.layout.subjects))

    @property
    def seconds(self) -> int:
        return sum(self.lengths)

    def blocks(self) -> Floats:
        """Return (blocks, metrics): means, combined over instances."""
        means: Floats = self.layout.fold(np.array(self.sums)) / np.array(self.lengths)[:, None]
        return means


@dataclass
class MinuteData:
    """The blocks of one minute."""

    minute: int
    parts: list[MinutePart] = field(default_factory=list)
    periods: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> int:
        return sum(part.seconds for part in self.parts)

    def levels(self) -> MinuteLevels:
        """Return the levels of the minute."""
        names = max((part.layout.names for part in self.parts), key=len, default=())
        rows = np.array(
            [_aligned(names, part.layout, block) for part in self.parts for block in part.blocks()]
        )
        rows = rows.reshape(-1, len(names))
        levels, spreads = _robust(rows)
        events = _events(names)
        if len(rows):
            levels[events] = _means(rows[:, events])
        idle = _idle_pages(names, levels)
        if IDLE_PAGES in names:
            levels[names.index(IDLE_PAGES)] = idle
        else:
            names, levels, spreads = (
                (*names, IDLE_PAGES), np.append(levels, idle), np.append(spreads, 0.0)
            )  # fmt: skip
        return MinuteLevels(self.minute, self.seconds, names, levels, spreads, self._subjects())

    def _subjects(self) -> dict[tuple[str, str], float]:
        totals: dict[tuple[str, str], tuple[float, int, int]] = {}  # sum, seconds read, seconds
        for part in self.parts:
            sums = part.subjects
            read = (sums.seconds - sums.missing).tolist()
            for key, value, count in zip(
                part.layout.subjects, sums.sums.tolist(), read, strict=True
            ):
                total, seconds, existed = totals.get(key, (0.0, 0, 0))
                totals[key] = total + value, seconds + count, existed + sums.seconds
        means = {
            key: total / seconds
            for key, (total, seconds, existed) in totals.items()
            if seconds and seconds >= _LEAST_READ * existed
        }
        return means | {
            (STEP, subject): period * NS_PER_SECOND for subject, period in self.periods.items()
        }


def no_step_times() -> Mapping[str, float]:
    """Return no step times: the source where jobs are not tracked."""
    return {}


class MinuteRecorder:
    """Records the minutes of one node, by its own clock.

    ``periods`` returns the current step times of subjects, in seconds.
    """

    def __init__(self, periods: Callable[[], Mapping[str, float]] = no_step_times) -> None:
        self._periods = periods
        self._now: MinuteData | None = None
        self._ended: MinuteData | None = None
        self._values: Floats = np.zeros(0)
        self._block_seconds = 0
        self._layout: MinuteLayout | None = None

    def push(self, second: Second) -> None:
        """Add a second; a new minute ends the previous one."""
        minute = second.start_ns // (MINUTE * NS_PER_SECOND)
        if self._now is None or minute != self._now.minute:
            self._flush()
            self._end(minute)
        if self._layout is None or self._layout.plan is not second.plan:
            self._flush()
            self._layout = MinuteLayout(second.plan)
        self._part().subjects.add(second.channels[self._layout.subject_indices])
        if self._block_seconds:
            self._values += second.values
        else:
            self._values = second.values.copy()
        self._block_seconds += 1
        if self._block_seconds == _BLOCK:
            self._flush()

    def pop_ended(self) -> MinuteData | None:
        """Return the last minute that ended, once."""
        ended, self._ended = self._ended, None
        return ended

    def _end(self, minute: int) -> None:
        if self._now is not None:
            self._now.periods = self._periods()
        self._ended, self._now = self._now, MinuteData(minute)

    def _flush(self) -> None:
        """Add the current block to the minute."""
        if not self._block_seconds or self._now is None or self._layout is None:
            return
        part = self._part()
        part.sums.append(self._values)
        part.lengths.append(self._block_seconds)
        self._block_seconds = 0

    def _part(self) -> MinutePart:
        """Return the part of this minute with the current layout; create it if there is none."""
        assert self._now is not None
        assert self._layout is not None
        parts = self._now.parts
        if not parts or parts[-1].layout is not self._layout:
            parts.append(MinutePart(self._layout))
        return parts[-1]


def _columns_by_metric(columns: tuple[Column, ...]) -> dict[str, list[int]]:
    """Return the columns of each metric: levels only, and the host's own column if there is one."""
    by_metric: dict[str, list[int]] = {}
    of_host: dict[str, int] = {}
    for index, column in enumerate(columns):
        if column.feature == CHANGE or column.metric.scope is Scope.SUBJECT:
            continue
        by_metric.setdefault(column.metric.name, []).append(index)
        if column.feature == LEVEL and not column.instance:
            of_host[column.metric.name] = index
    return by_metric | {name: [index] for name, index in of_host.items()}


def _aligned(names: tuple[str, ...], layout: MinuteLayout, values: Floats) -> Floats:
    if layout.names == names:
        return values
    given = dict(zip(layout.names, values.tolist(), strict=True))
    return np.array([given.get(name, np.nan) for name in names])


@lru_cache(maxsize=_LAYOUTS)
def _events(names: tuple[str, ...]) -> NDArray[np.intp]:
    return np.array(
        [index for index, name in enumerate(names) if catalogue.find(name).role is Role.EVENT],
        np.intp,
    )


def _means(rows: Floats) -> Floats:
    """Return the mean of each column without missing values; NaN if there are no others."""
    missing = np.isnan(rows)
    read = len(rows) - missing.sum(axis=0)
    sums = np.where(missing, 0.0, rows).sum(axis=0)
    return np.where(read > 0, sums / np.maximum(read, 1), np.nan)


def _robust(rows: Floats) -> tuple[Floats, Floats]:
    """Return median and deviation (from the quartiles) of each column, without missing values."""
    if not len(rows):
        return np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    rows = np.sort(rows, axis=0)  # missing ones last
    last = np.maximum(np.isfinite(rows).sum(axis=0) - 1, 0)
    low, middle, high = (_quantile(share, rows, last) for share in (0.25, 0.5, 0.75))
    return middle, (high - low) / _QUARTILES


def _quantile(share: float, rows: Floats, last: NDArray[np.intp]) -> Floats:
    """Return a quantile of each sorted column, whose values end at index ``last``."""
    position = last * share
    below = position.astype(np.intp)
    columns = np.arange(len(last))
    lower, upper = rows[below, columns], rows[np.minimum(below + 1, last), columns]
    found: Floats = lower + (position - below) * (upper - lower)
    return found


def _idle_pages(names: tuple[str, ...], levels: Floats) -> float:
    """Return the bytes of huge pages that are neither used nor reserved; NaN if unknown.

    They are those of all sizes, or of the default size (from meminfo) if sysfs is not read.
    """

    def level(name: str, default: float = np.nan) -> float:
        return float(levels[names.index(name)]) if name in names else default

    if IDLE_PAGES in names:
        promised = level(PROMISED_PAGES, 0.0)
        return level(IDLE_PAGES) - (promised if promised > 0 else 0.0)
    free, promised, size = (level(name) for name in _MEMINFO)
    return (free - promised) * size
