"""The running minute of a node as a state tree, so that another analyzer continues it.

Instances are combined already, so no channel table is needed to read it.  The current block is
saved as it is: it is shorter than the others.  Metrics are saved as marks of the catalogue's rows;
an analyzer with other rows does not continue the minute.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from reveal_analyzer.arrays import Bytes, Floats, Floats32, Indices
from reveal_analyzer.derive.columns import COLUMN_SETS
from reveal_analyzer.fleet.measures import fold
from reveal_analyzer.fleet.subject_totals import SubjectTotals
from reveal_analyzer.state.labels import pack_labels, unpack_labels
from reveal_analyzer.state.tree import StateError, StateTree, array, integer, section, texts
from reveal_contract import catalogue

_KEPT_BITS = np.uint32(0xFFFF_FF00)  # of a single: 16 significant bits, 0.001 % of the value
_HALF_STEP = np.uint32(0x80)


@dataclass(frozen=True)
class SavedPart:
    """Some seconds of a minute by metric, which need no layout any more.

    ``rows`` (blocks, metrics) are the means of the blocks, NaN where nothing was read, ``lengths``
    their seconds.
    """

    names: tuple[str, ...]
    rows: Floats
    lengths: tuple[int, ...]
    totals: SubjectTotals

    @property
    def seconds(self) -> int:
        return sum(self.lengths)

    def blocks(self) -> Floats:
        """Return (blocks, metrics): means, combined over instances."""
        return self.rows

    def save(self) -> StateTree:
        """Return the part as a state tree."""
        metrics = _marked(self.names)
        return {
            "catalogue": _catalogue().checksum,
            "metrics": metrics.marks,
            "others": list(metrics.others),
            "lengths": np.array(self.lengths, np.uint8),
            "blocks": _rounded(self.rows.T[metrics.order]),
            "subjects": _save_totals(self.totals),
        }

    @classmethod
    def restored(cls, tree: StateTree) -> SavedPart | None:
        """Return the part of a state tree; ``None`` if it is of another catalogue.

        Raises ``StateError``.
        """
        if integer(tree, "catalogue") != _catalogue().checksum:
            return None
        marks = array(tree, "metrics", np.uint8, (-(-len(_catalogue().names) // 8),))
        names, order = _names(marks.tobytes(), texts(tree, "others"))
        lengths = array(tree, "lengths", np.int64, (None,))
        if lengths.size and lengths.min() < 1:
            raise StateError("a block of the minute has no seconds")
        rows = array(tree, "blocks", np.float64, (len(names), lengths.size))[order].T
        rows[np.isinf(rows)] = np.nan
        totals = _restore_totals(section(tree, "subjects"))
        return cls(names, rows, tuple(lengths.tolist()), totals)


@dataclass(frozen=True)
class _Catalogue:
    """The metrics of the catalogue's rows, sorted."""

    names: tuple[str, ...]
    checksum: int


@dataclass(frozen=True)
class _Marked:
    """Metrics as marks of the catalogue's rows, and those that a pattern has.

    ``order`` has the index of each, in the order of the rows and of ``others``.
    """

    marks: Bytes
    others: tuple[str, ...]
    order: Indices


@cache
def _catalogue() -> _Catalogue:
    names = tuple(sorted(row.name for row in catalogue.rows()))
    return _Catalogue(names, zlib.crc32("\0".join(names).encode()))


@lru_cache(maxsize=COLUMN_SETS)
def _marked(names: tuple[str, ...]) -> _Marked:
    numbers = {name: number for number, name in enumerate(names)}
    known = [name in numbers for name in _catalogue().names]
    of_rows = [numbers.pop(name) for name in _catalogue().names if name in numbers]
    order = np.array([*of_rows, *numbers.values()], np.intp)
    return _Marked(np.packbits(np.array(known, np.bool_)), tuple(numbers), order)


@lru_cache(maxsize=COLUMN_SETS)
def _names(marks: bytes, others: tuple[str, ...]) -> tuple[tuple[str, ...], Indices]:
    """Return the marked metrics in the order of a layout, and the saved position of each."""
    rows = _catalogue().names
    known = np.unpackbits(np.frombuffer(marks, np.uint8), count=len(rows))
    saved = [*(rows[index] for index in np.flatnonzero(known).tolist()), *others]
    try:
        ordered = sorted((fold(name).value, name, position) for position, name in enumerate(saved))
    except catalogue.UnknownMetricError as error:
        raise StateError(f"the minute has an unknown metric: {error}") from None
    positions = np.array([position for _, _, position in ordered], np.intp)
    return tuple(name for _, name, _ in ordered), positions


def _save_totals(totals: SubjectTotals) -> StateTree:
    """Return totals as tables (metrics, instances), in which nothing existed where there is none.

    So each name is saved once, and most of the numbers are equal.
    """
    metrics, rows = _numbered([metric for metric, _ in totals.keys])
    instances, columns = _numbered([instance for _, instance in totals.keys])
    shape = len(metrics), len(instances)
    sums = np.zeros(shape, np.float32)
    read, existed = np.zeros((2, *shape), np.uint16)
    sums[rows, columns] = totals.sums
    read[rows, columns] = totals.read
    existed[rows, columns] = totals.existed
    return {
        "metrics": list(metrics),
        "instances": pack_labels(instances),
        "sums": sums,
        "read": read,
        "existed": existed,
    }


def _restore_totals(tree: StateTree) -> SubjectTotals:
    metrics, instances = texts(tree, "metrics"), unpack_labels(tree, "instances")
    shape = len(metrics), len(instances)
    existed = array(tree, "existed", np.int64, shape)
    sums, read = array(tree, "sums", np.float64, shape), array(tree, "read", np.int64, shape)
    found = (existed > 0) & np.isfinite(sums)
    rows, columns = np.nonzero(found)
    keys = tuple(
        (metrics[row], instances[column])
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
    )
    return SubjectTotals(keys, sums[found], read[found], existed[found])


def _numbered(names: list[str]) -> tuple[tuple[str, ...], Indices]:
    """Return the different names, and the number of each given one among them."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return tuple(numbers), np.array([numbers[name] for name in names], np.intp)


def _rounded(values: Floats) -> Floats32:
    """Return values in 16 significant bits, of which the last byte is 0: they compress better."""
    bits = values.astype(np.float32, order="C").view(np.uint32)
    return ((bits + _HALF_STEP) & _KEPT_BITS).view(np.float32)
