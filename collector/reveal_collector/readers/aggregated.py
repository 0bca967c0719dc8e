"""Many sysfs numbers aggregated into few columns: counters are added, gauges are folded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.raw_bounds import raw_bounds
from reveal_collector.readers.source import Source, degraded_of
from reveal_collector.readers.sums import grouped
from reveal_collector.readers.sysfs_attributes import AttributeFile, AttributeSource, single_column
from reveal_contract.bounds import RawBounds
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane


def number_attributes(
    name: str,
    lane: Lane,
    find: Callable[[], Mapping[Path, Channel]],
    fingerprint: Callable[[], object],
    absent: Unsupported,
) -> AttributeSource:
    """Return a source of files with one number each.

    ``find`` is called again when ``fingerprint`` returns another value.
    """

    def attributes() -> list[AttributeFile]:
        return [single_column(path, column) for path, column in find().items()]

    return AttributeSource(name, lane, attributes, fingerprint, absent)


class AggregatedSource:
    """A source that combines the columns of one channel into one column.

    Counters are added by their increments: a part that disappears (its CPU went offline) or
    reappears with other counts causes no jump.  After the layout is learned again, one reading is
    missing.  ``fold`` combines gauges; the default is the maximum.  A part outside of the bounds of
    its metric does not count: a broken sensor must not hide the others.
    """

    def __init__(self, source: Source, fold: Callable[[Iterable[int]], int] = max) -> None:
        self.name, self.lane = source.name, source.lane
        self.channels: tuple[Channel, ...] = ()
        self._source, self._fold = source, fold
        self._last: list[int | None] = []
        self._totals: list[int] = []
        self._members: list[tuple[int, ...]] = []
        self._bounds: list[RawBounds] = []
        self._relearned = False

    def open(self) -> None:
        """Open the source and learn its columns."""
        self._source.open()
        self._learn()

    def read(self) -> Sequence[int | None]:
        """Return one value for each distinct channel."""
        try:
            values = self._source.read()
        except LayoutChanged:
            self._learn()
            self._relearned = True
            raise
        row = [
            self._added(index, values)
            if column.kind is Kind.COUNTER
            else self._folded(index, values)
            for index, column in enumerate(self.channels)
        ]
        self._last, self._relearned = list(values), False
        return row

    @property
    def degraded(self) -> Sequence[str]:
        """The phrases of the source."""
        return degraded_of(self._source)

    def close(self) -> None:
        """Close the source."""
        self._source.close()
        self.channels = ()

    def _learn(self) -> None:
        positions = grouped((column, index) for index, column in enumerate(self._source.channels))
        totals = dict(zip(self.channels, self._totals, strict=False))
        self.channels, self._members = tuple(positions), list(positions.values())
        self._bounds = list(map(raw_bounds, self.channels))
        self._totals = [totals.get(column, 0) for column in self.channels]
        self._last = list(self._source.read())

    def _added(self, index: int, values: Sequence[int | None]) -> int | None:
        any_known = False
        for part in self._members[index]:
            now, last = values[part], self._last[part]
            if now is not None:
                any_known = True
                self._totals[index] += max(now - last, 0) if last is not None else 0
        return self._totals[index] if any_known and not self._relearned else None

    def _folded(self, index: int, values: Sequence[int | None]) -> int | None:
        bounds = self._bounds[index]
        parts = (bounds.known(values[part]) for part in self._members[index])
        known = [value for value in parts if value is not None]
        return self._fold(known) if known else None
