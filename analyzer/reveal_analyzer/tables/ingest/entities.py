"""Finds the column that distinguishes several hosts, devices or series in rows of the same time.

Such a table has a row for each of them in each sample.  Read as the rows of one node it would
alternate between them, or all but the last row of a time would be lost.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Indices, Ints

_MOST = 512  # entities
_MOST_PAIRED = 6  # columns of which two together may distinguish entities
_SAMPLE = 4096  # rows whose labels are counted
_FEWEST = 10  # rows with the time of another may be chance
_FEWEST_ALIKE = 2  # rows of a moment
_SAME_TIME = 0.05  # of the rows have the time of another: several entities, or a clock too coarse
_UNIQUE = 0.95  # of the rows are the only one of their entity at their time
_FILLED = 0.6  # of all pairs of time and entity have a row
_PERFECT = 0.95  # the same where neither times nor the name of the column suggest entities
_SEVERAL = 1.5  # entities of a sample, mean, where they come and go
_FEWEST_ROWS = 10  # of an entity, mean: so many show when it came and went
_HOST = re.compile(
    r"[\W_]*(host|host[_ ]?name|node|node[_ ]?name|producer[_ ]?name|machine|server)\Z",
    re.IGNORECASE,
)
_DEVICE = re.compile(
    r"[\W_]*((gpu|cpu|core|socket|disk|device|dev|interface|iface|nic|port|component)?[-_. ]?"
    r"(index|id|name|no|number|idx)|(item|metric|series|sensor|tag)[_ ]?id"
    r"|gpu|cpu|core|device|dev|disk|iface|interface|instance|series"
    r"|metric|entity|key|(local|global)?[_ ]?rank|worker|pid|pod|container|shard|replica"
    r"|socket|package|die|numa|sensor|probe|channel|target|service)\Z",
    re.IGNORECASE,
)


Labels = NDArray[np.object_]
Dtype = np.dtype[Any] | pd.api.extensions.ExtensionDtype


class Entity(NamedTuple):
    """What a row is about: a host ("": that of the file), and what of it ("": the host itself)."""

    host: str
    label: str


@dataclass(frozen=True, eq=False)
class Entities:
    """Which columns distinguish entities, what they are, and the entity and sample of each row."""

    columns: tuple[int, ...]
    members: tuple[Entity, ...]
    of_row: Indices
    sample: Indices


class RowLabels:
    """The values of the columns that may distinguish entities: text, or numbers so named."""

    def __init__(self, names: Sequence[str], requested: Collection[int] = ()) -> None:
        self._names, self._requested = names, requested
        self._values: dict[int, list[Labels]] = {}
        self._dropped: set[int] = set()
        self.crowded: set[int] = set()  # columns of more texts than entities are expected

    def add(self, block: pd.DataFrame, times: Collection[int | None]) -> None:
        """Add rows; ``times`` are the columns of times, which distinguish no entities."""
        for index, kind in enumerate(block.dtypes):
            if index in self._dropped or index in times:
                continue
            if index in self._requested:
                self._values.setdefault(index, []).append(_as_texts(block[index]))
                continue
            # of a wide table nearly all columns are ruled out without their values
            may_label = _may_label(kind, self._names[index])
            labels = _labels(block[index]) if may_label else None
            if labels is None or len(set(labels[:_SAMPLE].tolist())) > _MOST:
                self._dropped.add(index)
                self.crowded |= set() if labels is None else {index}
                self._values.pop(index, None)
            else:
                self._values.setdefault(index, []).append(labels)

    def labels(self) -> dict[int, Labels]:
        """Return the labels of all rows by column."""
        return {index: np.concatenate(parts) for index, parts in self._values.items()}


def _may_label(kind: Dtype, name: str) -> bool:
    """Return whether a column of this type and name may distinguish entities."""
    kinds = pd.api.types
    if kinds.is_numeric_dtype(kind):
        return suggests_entities(name) and not kinds.is_bool_dtype(kind)
    return kinds.is_object_dtype(kind) or kinds.is_string_dtype(kind)


def _labels(values: pd.Series) -> Labels | None:
    """Return a column as labels; None for numbers that are not whole."""
    if not pd.api.types.is_numeric_dtype(values.dtype):
        return _as_texts(values)
    numbers = values.to_numpy(np.float64, na_value=np.nan)
    return None if (numbers[np.isfinite(numbers)] % 1).any() else _as_texts(values)


def _as_texts(values: pd.Series) -> Labels:
    """Return values as texts, whole numbers without a point, missing ones as ``-``."""
    if not pd.api.types.is_numeric_dtype(values.dtype):
        return np.asarray(values.fillna("-").astype(str).str.strip().to_numpy(), np.object_)
    numbers = values.to_numpy(np.float64, na_value=np.nan)
    texts = ["-" if np.isnan(number) else f"{number:.15g}" for number in numbers.tolist()]
    return np.array(texts, np.object_)


def is_host(name: str) -> bool:
    """Return whether a column is that of a host by its name."""
    return bool(_HOST.match(name))


def suggests_entities(name: str) -> bool:
    """Return whether a column of numbers may distinguish entities by its name."""
    return bool(_DEVICE.match(name) or _HOST.match(name))


def find_entities(
    names: Sequence[str], labels: Mapping[int, Labels], times: Ints, *, numbered: bool
) -> Entities | None:
    """Return the entities of a table; None if each row is a sample of its own.

    ``labels`` are the values of columns that may distinguish them, as text.  Of several such
    columns the one with a telling name counts, a host before a device; if none is enough, two of
    them.  ``numbered``: the times are only the numbers of rows.
    """
    order = sorted(
        labels,
        key=lambda i: (not _HOST.match(names[i]), not _DEVICE.match(names[i]), i),
    )
    shared = repeats_times(times)
    pairs = combinations(order[:_MOST_PAIRED], 2) if shared else ()
    for columns in (*((index,) for index in order), *pairs):
        suggested = shared or suggests_entities(names[columns[0]])
        members, of_row = _members(names, labels, columns)
        if not 2 <= len(members) <= min(_MOST, len(times) // 2):
            continue
        filled = _FILLED if suggested else _PERFECT
        only_bursts = not suggested and not numbered
        sample = _samples(times, of_row, len(members), filled, only_bursts=only_bursts)
        if sample is not None:
            return Entities(columns, members, of_row, sample)
    return None


def entities_by(
    names: Sequence[str],
    labels: Mapping[int, Labels],
    columns: Sequence[int],
    times: Ints,
    *,
    numbered: bool,
) -> Entities | None:
    """Return the entities that these columns distinguish; None if there is only one, or none."""
    chosen: tuple[int, ...] = ()
    count = 1
    for index in columns:  # a second name of the same device distinguishes nothing
        more = len(_members(names, labels, (*chosen, index))[0])
        chosen, count = ((*chosen, index), more) if more > count else (chosen, count)
    if not chosen:
        return None
    members, of_row = _members(names, labels, chosen)
    if numbered:
        sample: Indices | None = _by_repetition(of_row)
    else:
        sample = _samples(times, of_row, len(members), 0.0)
    if sample is None:
        sample = np.unique(times, return_inverse=True)[1].astype(np.intp)
    return Entities(chosen, members, of_row, sample)


def _members(
    names: Sequence[str], labels: Mapping[int, Labels], columns: Sequence[int]
) -> tuple[tuple[Entity, ...], Indices]:
    """Return the entities in the order of their names, and the number of that of each row."""
    hosts = [index for index in columns if _HOST.match(names[index])][:1]
    codes = np.zeros(len(labels[columns[0]]), np.int64)
    for index in columns:
        _, part = np.unique(labels[index].astype(str), return_inverse=True)
        codes = np.unique(codes * (int(part.max(initial=0)) + 1) + part, return_inverse=True)[1]
    _, first = np.unique(codes, return_index=True)
    members = tuple(
        Entity(
            "".join(str(labels[index][row]) for index in hosts),
            "/".join(str(labels[index][row]) for index in columns if index not in hosts),
        )
        for row in first.tolist()
    )
    return members, codes.astype(np.intp)


def _by_repetition(of_row: Indices) -> Indices:
    """Return the sample of each row, where one begins with an entity that it has already."""
    sample, present = 0, set[int]()
    result = np.empty(len(of_row), np.intp)
    for row, entity in enumerate(of_row.tolist()):
        if entity in present:
            sample, present = sample + 1, set()
        present.add(entity)
        result[row] = sample
    return result


def repeats_times(times: Ints) -> bool:
    """Return whether more rows than by chance have the time of another."""
    repeats = int((np.diff(np.sort(times)) == 0).sum())
    return repeats >= max(_FEWEST, _SAME_TIME * len(times))


def differing_column(
    names: Sequence[str], labels: Mapping[int, Labels], times: Ints, crowded: Collection[int]
) -> str:
    """Return a column of texts that differs between the rows of each time; "" if there is none."""
    moments = np.unique(times, return_inverse=True)[1].astype(np.int64)
    for index, each in labels.items():
        part = np.unique(each.astype(str), return_inverse=True)[1].astype(np.int64)
        count = int(part.max(initial=0)) + 1
        unique = len(np.unique(moments * count + part)) >= _UNIQUE * len(times)
        if count > 1 and (unique or repeats_values(part.astype(np.float64), moments)):
            return names[index] or f"#{index + 1}"
    return next((names[index] or f"#{index + 1}" for index in crowded), "")


def repeating_column(names: Sequence[str], values: Floats, moments: Ints) -> str:
    """Return a column of the same whole numbers at each moment; "" if there is none."""
    for name, column in zip(names, values.T, strict=True):
        whole = not np.isnan(column).any() and not (column % 1).any()
        if whole and repeats_values(column, moments):
            return name
    return ""


def repeats_values(column: Floats, moments: Ints) -> bool:
    """Return whether a column has the same values, and several, at nearly each moment."""
    distinct, which, counts = np.unique(moments, return_inverse=True, return_counts=True)
    size = int(np.median(counts)) if len(counts) else 0
    full = counts == size
    if size < _FEWEST_ALIKE or full.mean() < _UNIQUE or len(distinct) < _FEWEST:
        return False
    ordered = column[np.lexsort((column, which))]
    rows = ordered[full[np.sort(which)]].reshape(-1, size)
    alike = (rows == rows[len(rows) // 2]).all(axis=1)
    return bool(alike.mean() >= _UNIQUE and len(np.unique(rows[len(rows) // 2])) > 1)


def _samples(
    times: Ints, of_row: Indices, count: int, filled: float, *, only_bursts: bool = False
) -> Indices | None:
    """Return the sample of each row; None if the rows of a time are not of different entities.

    The rows of a sample have one time, or are a moment apart (``only_bursts``: in no other case),
    or come at any time in the period of their entity, or before any of them comes again.
    """
    period = _period(times, of_row)
    if period <= 0:
        return None
    order = np.argsort(times, kind="stable")
    clustered = np.empty(len(times), np.intp)
    clustered[order] = np.cumsum(np.diff(times[order], prepend=times[order[0]]) > period / 4)
    ways = (
        (clustered, filled),
        (((times - times.min()) // period).astype(np.intp), filled),
        (_rounds(times, of_row, period), _PERFECT),
    )
    found = [
        (share, dense)
        for sample, least in (ways[:1] if only_bursts else ways)
        if sample is not None
        for share, dense in _filled(sample, of_row, count, len(times))
        if share >= least
    ]
    return max(found, key=lambda each: each[0])[1] if found else None


def _filled(
    sample: Indices, of_row: Indices, count: int, rows: int
) -> Iterator[tuple[float, Indices]]:
    """Yield the share of samples and entities with a row, if nearly all rows are the only ones.

    Entities such as processes and pods come and go: then each counts from its first to its last.
    """
    distinct, dense = np.unique(sample, return_inverse=True)
    pairs = np.unique(dense.astype(np.int64) * count + of_row)
    if len(pairs) < _UNIQUE * rows:
        return
    share = len(pairs) / (len(distinct) * count)
    are_several = len(pairs) >= _SEVERAL * len(distinct)
    if share < _FILLED and are_several and rows >= _FEWEST_ROWS * count:
        share = len(pairs) / _samples_of_lives(dense, of_row, count)
    yield share, dense.astype(np.intp)


def _samples_of_lives(sample: Indices, of_row: Indices, count: int) -> int:
    """Return the number of samples from the first to the last of each entity, all together."""
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.full(count, -1)
    np.minimum.at(first, of_row, sample)
    np.maximum.at(last, of_row, sample)
    return int((last - first + 1).sum())


def _rounds(times: Ints, of_row: Indices, period: int) -> Indices | None:
    """Return the sample of each row, where the next begins with an entity that it has already.

    None if samples begin at the same time.
    """
    order = np.argsort(times, kind="stable")
    numbers = _by_repetition(of_row[order])
    begins = times[order][np.flatnonzero(np.diff(numbers, prepend=-1))]
    if len(begins) > 1 and np.diff(begins).min() <= period / 4:
        return None
    sample = np.empty(len(times), np.intp)
    sample[order] = numbers
    return sample


def _period(times: Ints, of_row: Indices) -> int:
    """Return the median step between two rows of one entity."""
    order = np.lexsort((times, of_row))
    steps, same = np.diff(times[order]), np.diff(of_row[order]) == 0
    return int(np.median(steps[same])) if same.any() else 0
