"""One node's last minute: what every metric was, folded to the node.

Seconds are added up to blocks of five as they come, which costs two additions of a vector a
second; everything else waits until somebody wants the summary.
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
from reveal_analyzer.subjects.history import is_subject_level
from reveal_contract import catalogue
from reveal_contract.metric import Role, Scope
from reveal_contract.time_units import NS_PER_SECOND

MINUTE = 60  # seconds
_BLOCK = 5  # seconds: what comes in bursts of one is level, what comes once a minute is none
_QUARTILES = 1.349  # deviations between the quartiles of a normal distribution
_REDUCE = {Fold.TOTAL: np.add, Fold.LARGEST: np.fmax, Fold.LEAST: np.fmin}
_MEMINFO = ("memory.huge_pages_free", "memory.huge_pages_rsvd", "memory.hugepagesize")
_LAYOUTS = 64  # remembered: nodes of one kind have one


@dataclass(frozen=True)
class Levels:
    """What a node was in a minute, metric by metric; NaN where nothing was read.

    ``levels`` are medians of blocks (means, of events), ``spreads`` deviations of the blocks,
    both in base units, counters per second.  ``subjects`` are means over the seconds they were
    there, by (metric, instance).
    """

    minute: int
    seconds: int
    names: tuple[str, ...]
    levels: Floats
    spreads: Floats
    subjects: Mapping[tuple[str, str], float]


class Layout:
    """How the columns of a plan become one number a metric, and which channels are subjects'."""

    def __init__(self, plan: ColumnPlan) -> None:
        self.plan = plan
        places = _places(plan.columns)
        self.names = tuple(sorted(places, key=lambda name: (fold(name).value, name)))
        self._order = np.array([at for name in self.names for at in places[name]], np.intp)
        self._runs = self._find_runs(places)
        told = [
            (at, channel) for at, channel in enumerate(plan.channels) if is_subject_level(channel)
        ]
        self.subjects = tuple((channel.metric, channel.instance) for _, channel in told)
        self.subject_places = np.array([at for at, _ in told], np.intp)

    def fold(self, rows: Floats) -> Floats:
        """A number a metric of rows of one a column; a part that is missing makes a sum so."""
        taken = rows[:, self._order]
        if not self._runs:
            return taken
        return np.hstack([
            reduce.reduceat(taken[:, first:end], starts, axis=1)
            for reduce, first, end, starts in self._runs
        ])  # fmt: skip

    def _find_runs(
        self, places: Mapping[str, list[int]]
    ) -> list[tuple[np.ufunc, int, int, NDArray[np.intp]]]:
        """(reduction, first and end in the order, where each metric starts) of each fold."""
        runs: list[tuple[np.ufunc, int, int, NDArray[np.intp]]] = []
        first = 0
        for how in sorted(Fold, key=lambda one: one.value):
            widths = [len(places[name]) for name in self.names if fold(name) is how]
            if widths:
                starts = np.concatenate([[0], np.cumsum(widths[:-1])]).astype(np.intp)
                runs.append((_REDUCE[how], first, first + sum(widths), starts))
                first += sum(widths)
        return runs


@dataclass
class Part:
    """Some seconds of one layout: of each block the sums of columns and of subjects' channels."""

    layout: Layout
    sums: list[Floats] = field(default_factory=list)
    subjects: list[Floats] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)  # seconds

    @property
    def seconds(self) -> int:
        return sum(self.lengths)

    def blocks(self) -> Floats:
        """(blocks, metrics): means, folded to the node."""
        means: Floats = self.layout.fold(np.array(self.sums)) / np.array(self.lengths)[:, None]
        return means


@dataclass
class Gathered:
    """A minute as it is gathered; ``levels`` is what becomes of it."""

    minute: int
    parts: list[Part] = field(default_factory=list)
    periods: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> int:
        return sum(part.seconds for part in self.parts)

    def levels(self) -> Levels:
        names = max((part.layout.names for part in self.parts), key=len, default=())
        rows = np.array(
            [_aligned(names, part.layout, block) for part in self.parts for block in part.blocks()]
        )
        rows = rows.reshape(-1, len(names))
        levels, spreads = _robust(rows)
        events = _events(names)
        if len(rows):
            levels[events] = rows[:, events].mean(axis=0)
        idle = _idle_pages(names, levels)
        if IDLE_PAGES in names:
            levels[names.index(IDLE_PAGES)] = idle
        else:
            names, levels, spreads = (
                (*names, IDLE_PAGES), np.append(levels, idle), np.append(spreads, 0.0)
            )  # fmt: skip
        return Levels(self.minute, self.seconds, names, levels, spreads, self._subjects())

    def _subjects(self) -> dict[tuple[str, str], float]:
        totals: dict[tuple[str, str], tuple[float, int]] = {}
        for part in self.parts:
            sums = np.nansum(part.subjects, axis=0).tolist() if part.subjects else []
            for key, value in zip(part.layout.subjects, sums, strict=True):
                total, seconds = totals.get(key, (0.0, 0))
                totals[key] = (total + value, seconds + part.seconds)
        means = {key: total / seconds for key, (total, seconds) in totals.items()}
        return means | {(STEP, one): period * NS_PER_SECOND for one, period in self.periods.items()}


def no_rhythm() -> Mapping[str, float]:
    """Nobody follows the steps of jobs."""
    return {}


class Minutes:
    """The minutes of one node, by its own clock; ``take`` gives the last that ended, once.

    ``periods`` tells the step times of subjects as they are now, in seconds.
    """

    def __init__(self, periods: Callable[[], Mapping[str, float]] = no_rhythm) -> None:
        self._periods = periods
        self._now: Gathered | None = None
        self._ended: Gathered | None = None
        self._values: Floats = np.zeros(0)
        self._subjects: Floats = np.zeros(0)
        self._held = 0
        self._layout: Layout | None = None

    def push(self, second: Second) -> None:
        """Add a second; a new minute ends the one before."""
        minute = second.start_ns // (MINUTE * NS_PER_SECOND)
        if self._now is None or minute != self._now.minute:
            self._flush()
            self._end(minute)
        if self._layout is None or self._layout.plan is not second.plan:
            self._flush()
            self._layout = Layout(second.plan)
        subjects = second.channels[self._layout.subject_places]
        if self._held:
            self._values += second.values
            self._subjects += subjects
        else:
            self._values, self._subjects = second.values.copy(), subjects
        self._held += 1
        if self._held == _BLOCK:
            self._flush()

    def take(self) -> Gathered | None:
        """The last minute that ended, if nobody took it yet."""
        ended, self._ended = self._ended, None
        return ended

    def _end(self, minute: int) -> None:
        if self._now is not None:
            self._now.periods = self._periods()
        self._ended, self._now = self._now, Gathered(minute)

    def _flush(self) -> None:
        """The block so far becomes part of the minute."""
        if not self._held or self._now is None or self._layout is None:
            return
        parts = self._now.parts
        if not parts or parts[-1].layout is not self._layout:
            parts.append(Part(self._layout))
        parts[-1].sums.append(self._values)
        parts[-1].subjects.append(self._subjects)
        parts[-1].lengths.append(self._held)
        self._held = 0


def _places(columns: tuple[Column, ...]) -> dict[str, list[int]]:
    """Columns by metric: levels only, and the host's own where it is told beside its parts."""
    places: dict[str, list[int]] = {}
    whole: dict[str, int] = {}
    for at, column in enumerate(columns):
        if column.feature == CHANGE or column.metric.scope is Scope.SUBJECT:
            continue
        places.setdefault(column.metric.name, []).append(at)
        if column.feature == LEVEL and not column.instance:
            whole[column.metric.name] = at
    return places | {name: [at] for name, at in whole.items()}


def _aligned(names: tuple[str, ...], layout: Layout, values: Floats) -> Floats:
    if layout.names == names:
        return values
    given = dict(zip(layout.names, values.tolist(), strict=True))
    return np.array([given.get(name, np.nan) for name in names])


@lru_cache(maxsize=_LAYOUTS)
def _events(names: tuple[str, ...]) -> NDArray[np.intp]:
    return np.array(
        [at for at, name in enumerate(names) if catalogue.find(name).role is Role.EVENT], np.intp
    )


def _robust(rows: Floats) -> tuple[Floats, Floats]:
    """Median and deviation (by the quartiles) of each column, of what is not missing."""
    if not len(rows):
        return np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    rows = np.sort(rows, axis=0)  # missing ones last
    last = np.maximum(np.isfinite(rows).sum(axis=0) - 1, 0)
    low, middle, high = (_at(share, rows, last) for share in (0.25, 0.5, 0.75))
    return middle, (high - low) / _QUARTILES


def _at(share: float, rows: Floats, last: NDArray[np.intp]) -> Floats:
    """Of each sorted column the value at this share of what is there, up to place ``last``."""
    place = last * share
    below = place.astype(np.intp)
    columns = np.arange(len(last))
    lower, upper = rows[below, columns], rows[np.minimum(below + 1, last), columns]
    found: Floats = lower + (place - below) * (upper - lower)
    return found


def _idle_pages(names: tuple[str, ...], levels: Floats) -> float:
    """Bytes of huge pages that no program has or was promised, NaN where that is not known.

    Of all sizes; by meminfo, which knows the default size only, where sysfs is not read.
    """

    def level(name: str, otherwise: float = np.nan) -> float:
        return float(levels[names.index(name)]) if name in names else otherwise

    if IDLE_PAGES in names:
        promised = level(PROMISED_PAGES, 0.0)
        return level(IDLE_PAGES) - (promised if promised > 0 else 0.0)
    free, promised, size = (level(name) for name in _MEMINFO)
    return (free - promised) * size
