"""The last minute of one node: the level of each metric, combined over its instances.

Each second is added to a block of five, which costs two vector additions.  A block is the mean of
the seconds that were read.  Everything else is computed only when a summary is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Ints
from reveal_analyzer.derive.columns import (
    CHANGE,
    COLUMN_SETS,
    LEVEL,
    Column,
    ColumnPlan,
    PlanColumns,
)
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.fleet.measures import IDLE_PAGES, PROMISED_PAGES, STEP, Fold, fold
from reveal_analyzer.fleet.saved_minute import SavedPart
from reveal_analyzer.fleet.subject_totals import ReadSums, SubjectTotals
from reveal_analyzer.state.tree import StateTree, integer
from reveal_analyzer.subjects.means import subject_indices
from reveal_contract import catalogue
from reveal_contract.metric import Role, Scope
from reveal_contract.time_units import NS_PER_SECOND

MINUTE = 60  # seconds
_BLOCK = 5  # seconds: averages short bursts; an event once a minute does not move the median
_QUARTILES = 1.349  # standard deviations between the quartiles of a normal distribution
_REDUCE = {Fold.TOTAL: np.add, Fold.LARGEST: np.fmax, Fold.LEAST: np.fmin}
_MEMINFO = ("memory.huge_pages_free", "memory.huge_pages_rsvd", "memory.hugepagesize")
_LAYOUTS = 64  # cached: nodes of one kind share a layout


@dataclass(frozen=True)
class MinuteLevels:
    """Levels of a node in a minute, by metric; NaN if nothing was read.

    ``levels`` are medians of the blocks (means for events), ``spreads`` are deviations of the
    blocks, both in base units, counters per second.  Blocks and ``subjects``, by (metric,
    instance), are means over the seconds in which a value was read.  A block of which less than
    half was read counts as missing; a subject of which less than half was read while it existed is
    not among them.
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
        self._folding = _folding(plan.column_set)
        self.names = self._folding.names
        indices = subject_indices(plan.channels)
        subjects = [plan.channels[index] for index in indices]
        self.subjects = tuple((channel.metric, channel.instance) for channel in subjects)
        self.subject_indices = np.array(indices, np.intp)

    def fold(self, rows: Floats) -> Floats:
        """Combine rows of columns to rows of metrics; a missing instance makes a sum missing."""
        ordered = rows[:, self._folding.order]
        if not self._folding.runs:
            return ordered
        return np.hstack([
            reduce.reduceat(ordered[:, first:end], starts, axis=1)
            for reduce, first, end, starts in self._folding.runs
        ])  # fmt: skip


@dataclass
class MinutePart:
    """Some seconds of one layout: by block, the means of columns; over all, sums of subjects."""

    layout: MinuteLayout
    rows: list[Floats] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)  # seconds
    subjects: ReadSums = field(init=False)

    def __post_init__(self) -> None:
        self.subjects = ReadSums(len(self.layout.subjects))

    @property
    def names(self) -> tuple[str, ...]:
        return self.layout.names

    @property
    def seconds(self) -> int:
        return sum(self.lengths)

    @property
    def totals(self) -> SubjectTotals:
        return SubjectTotals.of(self.layout.subjects, self.subjects)

    def blocks(self) -> Floats:
        """Return (blocks, metrics): means, combined over instances."""
        rows = np.array(self.rows).reshape(-1, len(self.layout.plan.columns))
        return self.layout.fold(rows)

    def with_block(self, block: ReadSums) -> MinutePart:
        """Return this part with another block, whose subjects are counted already."""
        rows, lengths = [*self.rows, block.means()], [*self.lengths, block.seconds]
        part = replace(self, rows=rows, lengths=lengths)
        part.subjects = self.subjects
        return part


@dataclass
class MinuteData:
    """The blocks of one minute; another analyzer recorded the ``earlier`` ones."""

    minute: int
    parts: list[MinutePart] = field(default_factory=list)
    periods: Mapping[str, float] = field(default_factory=dict)
    earlier: SavedPart | None = None

    @property
    def seconds(self) -> int:
        return sum(part.seconds for part in self._all_parts())

    def merged(self) -> SavedPart:
        """Return all parts as one, in the metrics of the one that has most."""
        parts = self._all_parts()
        names = max((part.names for part in parts), key=len, default=())
        rows = [_aligned(names, part.names, part.blocks()) for part in parts]
        return SavedPart(
            names,
            np.vstack([np.zeros((0, len(names))), *rows]),
            tuple(chain.from_iterable(part.lengths for part in parts)),
            SubjectTotals.joined([part.totals for part in parts]),
        )

    def levels(self) -> MinuteLevels:
        """Return the levels of the minute."""
        whole = self.merged()
        names, rows = whole.names, whole.rows
        levels, spreads = _robust(rows)
        events = _events(names)
        if len(rows):
            levels[events] = _means(rows[:, events], np.array(whole.lengths))
        idle = _idle_pages(names, levels)
        if IDLE_PAGES in names:
            levels[names.index(IDLE_PAGES)] = idle
        else:
            names, levels, spreads = (
                (*names, IDLE_PAGES), np.append(levels, idle), np.append(spreads, 0.0)
            )  # fmt: skip
        subjects = whole.totals.means() | {
            (STEP, subject): period * NS_PER_SECOND for subject, period in self.periods.items()
        }
        return MinuteLevels(self.minute, whole.seconds, names, levels, spreads, subjects)

    def _all_parts(self) -> list[MinutePart | SavedPart]:
        return [*self.parts] if self.earlier is None else [self.earlier, *self.parts]


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
        self._block = ReadSums(0)
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
        if not self._block.seconds:
            self._block = ReadSums(len(second.values))
        self._block.add(second.values)
        if self._block.seconds == _BLOCK:
            self._flush()

    def pop_ended(self) -> MinuteData | None:
        """Return the last minute that ended, once."""
        ended, self._ended = self._ended, None
        return ended

    def save(self) -> StateTree:
        """Return the running minute up to now; empty before the first second."""
        if self._now is None:
            return {}
        now = self._now
        if self._block.seconds:
            *others, last = now.parts
            now = replace(now, parts=[*others, last.with_block(self._block)])
        return {"minute": now.minute, **now.merged().save()}

    def restore(self, tree: StateTree) -> None:
        """Continue the minute of another analyzer; raises ``StateError``."""
        if tree:
            minute = integer(tree, "minute", least=-(2**63))
            earlier = SavedPart.restored(tree)
            self._now = MinuteData(minute, earlier=earlier) if earlier is not None else None

    def _end(self, minute: int) -> None:
        if self._now is not None:
            self._now.periods = self._periods()
        self._ended, self._now = self._now, MinuteData(minute)

    def _flush(self) -> None:
        """Add the current block to the minute."""
        if not self._block.seconds or self._now is None or self._layout is None:
            return
        part = self._part()
        part.rows.append(self._block.means())
        part.lengths.append(self._block.seconds)
        self._block = ReadSums(0)

    def _part(self) -> MinutePart:
        """Return the part of this minute with the current layout; create it if there is none."""
        assert self._now is not None
        assert self._layout is not None
        parts = self._now.parts
        if not parts or parts[-1].layout is not self._layout:
            parts.append(MinutePart(self._layout))
        return parts[-1]


@dataclass(frozen=True)
class _Folding:
    """Columns by metric: their order and, by fold, (reduction, first, end, starts of metrics)."""

    names: tuple[str, ...]
    order: NDArray[np.intp]
    runs: list[tuple[np.ufunc, int, int, NDArray[np.intp]]]


@lru_cache(maxsize=COLUMN_SETS)
def _folding(of: PlanColumns) -> _Folding:
    columns = _columns_by_metric(of.columns)
    names = tuple(sorted(columns, key=lambda name: (fold(name).value, name)))
    order = np.array([index for name in names for index in columns[name]], np.intp)
    runs: list[tuple[np.ufunc, int, int, NDArray[np.intp]]] = []
    first = 0
    for how in sorted(Fold, key=lambda each: each.value):
        widths = [len(columns[name]) for name in names if fold(name) is how]
        if widths:
            starts = np.concatenate([[0], np.cumsum(widths[:-1])]).astype(np.intp)
            runs.append((_REDUCE[how], first, first + sum(widths), starts))
            first += sum(widths)
    return _Folding(names, order, runs)


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


def _aligned(names: tuple[str, ...], given: tuple[str, ...], rows: Floats) -> Floats:
    """Return rows of the given metrics as rows of ``names``; a metric that was not given is NaN."""
    if given == names:
        return rows
    numbers = {name: number for number, name in enumerate(given)}
    columns = np.array([numbers.get(name, -1) for name in names], np.intp)
    result = np.full((len(rows), len(names)), np.nan)
    result[:, columns >= 0] = rows[:, columns[columns >= 0]]
    return result


@lru_cache(maxsize=_LAYOUTS)
def _events(names: tuple[str, ...]) -> NDArray[np.intp]:
    return np.array(
        [index for index, name in enumerate(names) if catalogue.find(name).role is Role.EVENT],
        np.intp,
    )


def _means(rows: Floats, lengths: Ints) -> Floats:
    """Return the mean of each column over the seconds of its blocks; NaN if all are missing."""
    missing = np.isnan(rows)
    read = lengths @ ~missing
    sums = lengths @ np.where(missing, 0.0, rows)
    return np.where(read > 0, sums / np.maximum(read, 1), np.nan)


def _robust(rows: Floats) -> tuple[Floats, Floats]:
    """Return median and deviation (from the quartiles) of each column, without missing values."""
    if not len(rows):
        return np.full(rows.shape[1], np.nan), np.zeros(rows.shape[1])
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
        promised = max(level(PROMISED_PAGES, 0.0), 0.0)  # NaN stays NaN
        return level(IDLE_PAGES) - promised
    free, promised, size = (level(name) for name in _MEMINFO)
    return (free - promised) * size
