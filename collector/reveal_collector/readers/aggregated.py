"""Many sysfs numbers that make few columns: counters summed up, of gauges the highest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from reveal_collector.kernel.errors import LayoutChanged, Unsupported
from reveal_collector.readers.source import Source
from reveal_collector.readers.sysfs_attributes import AttributeFile, AttributeSource, single_column
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane


def number_attributes(
    name: str,
    lane: Lane,
    find: Callable[[], Mapping[Path, Channel]],
    mark: Callable[[], object],
    absent: Unsupported,
) -> AttributeSource:
    """Files of one number each; looked for anew when ``mark`` says something else."""

    def attributes() -> list[AttributeFile]:
        return [single_column(path, column) for path, column in find().items()]

    return AttributeSource(name, lane, attributes, mark, absent)


class AggregatedSource:
    """A source whose columns of the same channel become one.

    Counters add up by their steps: one that goes away (its CPU went offline) or comes back with
    what it counted meanwhile makes no jump; where all are learned anew one reading is missing.
    Of gauges ``fold`` takes one, the highest unless told.
    """

    def __init__(self, parts: Source, fold: Callable[[Iterable[int]], int] = max) -> None:
        self.name, self.lane = parts.name, parts.lane
        self.channels: tuple[Channel, ...] = ()
        self._source, self._fold = parts, fold
        self._last: list[int | None] = []
        self._totals: list[int] = []
        self._parts: list[list[int]] = []
        self._lost = False

    def open(self) -> None:
        self._source.open()
        self._learn()

    def read(self) -> Sequence[int | None]:
        try:
            values = self._source.read()
        except LayoutChanged:
            self._learn()
            self._lost = True
            raise
        reduced = [
            self._added(at, values) if column.kind is Kind.COUNTER else self._folded(at, values)
            for at, column in enumerate(self.channels)
        ]
        self._last, self._lost = list(values), False
        return reduced

    def close(self) -> None:
        self._source.close()
        self.channels = ()

    def _learn(self) -> None:
        places: dict[Channel, list[int]] = {}
        for at, column in enumerate(self._source.channels):
            places.setdefault(column, []).append(at)
        totals = dict(zip(self.channels, self._totals, strict=False))
        self.channels, self._parts = tuple(places), list(places.values())
        self._totals = [totals.get(column, 0) for column in self.channels]
        self._last = list(self._source.read())

    def _added(self, at: int, values: Sequence[int | None]) -> int | None:
        read = False
        for part in self._parts[at]:
            now, last = values[part], self._last[part]
            if now is not None:
                read = True
                self._totals[at] += max(now - last, 0) if last is not None else 0
        return self._totals[at] if read and not self._lost else None

    def _folded(self, at: int, values: Sequence[int | None]) -> int | None:
        known = [value for part in self._parts[at] if (value := values[part]) is not None]
        return self._fold(known) if known else None
