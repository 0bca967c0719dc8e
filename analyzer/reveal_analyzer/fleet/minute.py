"""One node's last minute: what every metric was, folded to the node.

Seconds are added up to blocks of five as they come, which costs two additions of a vector a
second; everything else waits until somebody wants the summary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.columns import CHANGE, LEVEL, Column, Plan
from reveal_analyzer.fleet.measures import IDLE_PAGES, PROMISED_PAGES, Fold, fold
from reveal_analyzer.seconds import SECOND_NS, Second
from reveal_analyzer.subjects import of_subject
from reveal_contract import catalogue
from reveal_contract.metric import Role, Scope

Floats = NDArray[np.float64]
MINUTE = 60  # seconds
_BLOCK = 5  # seconds: what comes in bursts of one is level, what comes once a minute is none
_QUARTILES = 1.349  # deviations between the quartiles of a normal distribution
_REDUCE = {Fold.TOTAL: np.add, Fold.LARGEST: np.fmax, Fold.LEAST: np.fmin}


@dataclass(frozen=True)
class Levels:
    """What a node was in a minute, metric by metric; NaN where nothing was read.

    ``levels`` are medians of blocks (means, of events), ``spreads`` deviations of the blocks,
    both in base units, counters per second.  ``subjects`` are means over the minute by
    (metric, instance).
    """

    minute: int
    seconds: int
    names: tuple[str, ...]
    levels: Floats
    spreads: Floats
    subjects: Mapping[tuple[str, str], float]


class Layout:
    """How the columns of a plan become one number a metric, and which channels are subjects'."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        places = _places(plan.columns)
        self.names = tuple(sorted(places, key=lambda name: (fold(name).value, name)))
        self._order = np.array([at for name in self.names for at in places[name]], np.intp)
        self._runs = self._find_runs(places)
        told = [(at, channel) for at, channel in enumerate(plan.channels) if of_subject(channel)]
        self.subjects = tuple((channel.metric, channel.instance) for _, channel in told)
        self.subject_places = np.array([at for at, _ in told], np.intp)

    def fold(self, values: Floats) -> Floats:
        """One number a metric of one number a column; a part that is missing makes a sum so."""
        taken = values[self._order]
        if not self._runs:
            return taken
        return np.concatenate(
            [reduce.reduceat(taken[first:end], starts) for reduce, first, end, starts in self._runs]
        )

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
class Gathered:
    """A minute as it is gathered; ``levels`` is what becomes of it."""

    minute: int
    seconds: int = 0
    blocks: list[tuple[tuple[str, ...], Floats]] = field(default_factory=list)
    subjects: dict[tuple[str, str], tuple[float, int]] = field(default_factory=dict)

    def levels(self) -> Levels:
        names = max((names for names, _ in self.blocks), key=len, default=())
        rows = np.array([_aligned(names, *block) for block in self.blocks])
        rows = rows.reshape(len(self.blocks), len(names))
        levels, spreads = _robust(rows)
        events = np.array([catalogue.find(name).role is Role.EVENT for name in names], bool)
        if events.any() and len(rows):
            levels[events] = rows[:, events].mean(axis=0)
        _leave_promised_pages_out(names, levels)
        means = {key: total / count for key, (total, count) in self.subjects.items()}
        return Levels(self.minute, self.seconds, names, levels, spreads, means)


class Minutes:
    """The minutes of one node, by its own clock; ``take`` gives the last that ended, once."""

    def __init__(self, seconds: int = MINUTE) -> None:
        self._length = seconds * SECOND_NS
        self._layout: Layout | None = None
        self._now: Gathered | None = None
        self._ended: Gathered | None = None
        self._block: Floats = np.zeros(0)
        self._subjects: Floats = np.zeros(0)
        self._held = self._told = 0

    def push(self, second: Second) -> None:
        """Add a second; a new minute ends the one before."""
        minute = second.start_ns // self._length
        if self._now is None or minute != self._now.minute:
            self._flush_subjects()
            self._ended, self._now = self._end(), Gathered(minute)
        if self._layout is None or self._layout.plan is not second.plan:
            self._flush_block()
            self._flush_subjects()
            self._layout = Layout(second.plan)
        if not self._held:
            self._block = np.zeros(len(second.plan.columns))
        if not self._told:
            self._subjects = np.zeros(self._layout.subject_places.size)
        self._block += second.values
        self._subjects += np.nan_to_num(second.channels[self._layout.subject_places])
        self._held += 1
        self._told += 1
        self._now.seconds += 1
        if self._held == _BLOCK:
            self._flush_block()

    def take(self) -> Gathered | None:
        """The last minute that ended, if nobody took it yet."""
        ended, self._ended = self._ended, None
        return ended

    def _end(self) -> Gathered | None:
        self._flush_block()
        return self._now or self._ended

    def _flush_block(self) -> None:
        if self._held and self._layout is not None and self._now is not None:
            folded = self._layout.fold(self._block / self._held)
            self._now.blocks.append((self._layout.names, folded))
        self._held = 0

    def _flush_subjects(self) -> None:
        if self._told and self._layout is not None and self._now is not None:
            so_far = self._now.subjects
            for key, total in zip(self._layout.subjects, self._subjects.tolist(), strict=True):
                before = so_far.get(key, (0.0, 0))
                so_far[key] = (before[0] + total, before[1] + self._told)
        self._told = 0


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


def _aligned(names: tuple[str, ...], had: tuple[str, ...], values: Floats) -> Floats:
    if had == names:
        return values
    given = dict(zip(had, values.tolist(), strict=True))
    return np.array([given.get(name, np.nan) for name in names])


def _robust(rows: Floats) -> tuple[Floats, Floats]:
    """Median and deviation (by the quartiles) of each column, of what is not missing."""
    rows = np.sort(rows, axis=0)  # missing ones last
    count = np.isfinite(rows).sum(axis=0)

    def at(share: float) -> Floats:
        place = np.maximum(count - 1, 0) * share
        low = np.floor(place).astype(np.intp)
        high = np.minimum(low + 1, np.maximum(count - 1, 0))
        lower = np.take_along_axis(rows, low[None], 0)[0]
        upper = np.take_along_axis(rows, high[None], 0)[0]
        found: Floats = lower + (place - low) * (upper - lower)
        return found

    if not len(rows):
        return np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    return at(0.5), (at(0.75) - at(0.25)) / _QUARTILES


def _leave_promised_pages_out(names: tuple[str, ...], levels: Floats) -> None:
    """Of idle huge pages those that a program was promised are in use."""
    if IDLE_PAGES in names and PROMISED_PAGES in names:
        promised = np.nan_to_num(levels[names.index(PROMISED_PAGES)])
        levels[names.index(IDLE_PAGES)] -= promised
