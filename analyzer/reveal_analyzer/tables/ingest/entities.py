"""Finds the column that distinguishes several hosts, devices or series in rows of the same time.

Such a table has a row for each of them in each sample.  Read as the rows of one node it would
alternate between them, or all but the last row of a time would be lost.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reveal_analyzer.arrays import Indices, Ints

_MOST = 512  # entities
_SAMPLE = 4096  # rows whose labels are counted
_FEWEST = 10  # rows with the time of another may be chance
_SAME_TIME = 0.05  # of the rows have the time of another: several entities, or a clock too coarse
_UNIQUE = 0.95  # of the rows are the only one of their entity at their time
_FILLED = 0.6  # of all pairs of time and entity have a row
_PERFECT = 0.95  # the same where neither times nor the name of the column suggest entities
_HOST = re.compile(
    r"[\W_]*(host|host[_ ]?name|node|node[_ ]?name|producer[_ ]?name|machine|server)\Z",
    re.IGNORECASE,
)
_DEVICE = re.compile(
    r"[\W_]*((gpu|cpu|core|socket|disk|device|dev|interface|iface|nic|port|component)?[_. ]?"
    r"(index|id|name|no|number|idx)|gpu|cpu|core|device|dev|disk|iface|interface|instance|series"
    r"|metric|entity)\Z",
    re.IGNORECASE,
)


Labels = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Entities:
    """Which column distinguishes entities, their names, and the entity and sample of each row."""

    column: int
    names: tuple[str, ...]
    of_row: Indices
    sample: Indices
    are_hosts: bool


class RowLabels:
    """The values of the columns that may distinguish entities: text, or numbers so named."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._values: dict[int, list[Labels]] = {}
        self._dropped: set[int] = set()

    def add(self, block: pd.DataFrame, times: Collection[int | None]) -> None:
        """Add rows; ``times`` are the columns of times, which distinguish no entities."""
        for index in range(len(self._names)):
            if index in self._dropped or index in times:
                continue
            labels = _labels(block[index], self._names[index])
            if labels is None or len(set(labels[:_SAMPLE].tolist())) > _MOST:
                self._dropped.add(index)
                self._values.pop(index, None)
            else:
                self._values.setdefault(index, []).append(labels)

    def labels(self) -> dict[int, Labels]:
        """Return the labels of all rows by column."""
        return {index: np.concatenate(parts) for index, parts in self._values.items()}


def _labels(values: pd.Series, name: str) -> Labels | None:
    """Return a column as labels; None if it cannot distinguish entities."""
    kinds = pd.api.types
    if not kinds.is_numeric_dtype(values.dtype):
        is_text = kinds.is_object_dtype(values.dtype) or kinds.is_string_dtype(values.dtype)
        return (
            np.asarray(values.astype(str).str.strip().to_numpy(), np.object_) if is_text else None
        )
    if not suggests_entities(name) or kinds.is_bool_dtype(values.dtype):
        return None
    numbers = values.to_numpy(np.float64, na_value=np.nan)
    if (numbers[np.isfinite(numbers)] % 1).any():
        return None
    texts = ["-" if np.isnan(number) else f"{number:.0f}" for number in numbers.tolist()]
    return np.array(texts, np.object_)


def suggests_entities(name: str) -> bool:
    """Return whether a column of numbers may distinguish entities by its name."""
    return bool(_DEVICE.match(name) or _HOST.match(name))


def find_entities(
    names: Sequence[str], labels: Mapping[int, Labels], times: Ints, *, numbered: bool
) -> Entities | None:
    """Return the entities of a table; None if each row is a sample of its own.

    ``labels`` are the values of columns that may distinguish them, as text.  Of several such
    columns the one with a telling name counts, a host before a device.  ``numbered``: the times
    are only the numbers of rows.
    """
    order = sorted(
        labels,
        key=lambda i: (not _HOST.match(names[i]), not _DEVICE.match(names[i]), i),
    )
    shared = repeats_times(times)
    for index in order:
        suggested = shared or suggests_entities(names[index])
        if not suggested and not numbered:
            continue
        found, of_row = np.unique(labels[index].astype(str), return_inverse=True)
        if not 2 <= len(found) <= min(_MOST, len(times) // 2):
            continue
        sample = _samples(times, of_row, len(found), _FILLED if suggested else _PERFECT)
        if sample is not None:
            hosts = bool(_HOST.match(names[index]))
            return Entities(index, tuple(found.tolist()), of_row.astype(np.intp), sample, hosts)
    return None


def repeats_times(times: Ints) -> bool:
    """Return whether more rows than by chance have the time of another."""
    repeats = len(times) - len(np.unique(times))
    return repeats >= max(_FEWEST, _SAME_TIME * len(times))


def _samples(times: Ints, of_row: Indices, count: int, filled: float) -> Indices | None:
    """Return the sample of each row; None if the rows of a time are not of different entities.

    The rows of a sample have one time, or are a moment apart, or come at any time in the period of
    their entity.
    """
    period = _period(times, of_row)
    if period <= 0:
        return None
    order = np.argsort(times, kind="stable")
    clustered = np.empty(len(times), np.intp)
    clustered[order] = np.cumsum(np.diff(times[order], prepend=times[order[0]]) > period / 4)
    for sample in (clustered, ((times - times.min()) // period).astype(np.intp)):
        distinct, dense = np.unique(sample, return_inverse=True)
        pairs = np.unique(dense.astype(np.int64) * count + of_row)
        if len(pairs) >= _UNIQUE * len(times) and len(pairs) >= filled * len(distinct) * count:
            return dense.astype(np.intp)
    return None


def _period(times: Ints, of_row: Indices) -> int:
    """Return the median step between two rows of one entity."""
    order = np.lexsort((times, of_row))
    steps, same = np.diff(times[order]), np.diff(of_row[order]) == 0
    return int(np.median(steps[same])) if same.any() else 0
