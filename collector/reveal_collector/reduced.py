"""Many sysfs numbers that make few columns: counters summed up, of gauges the highest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from reveal_collector.joined import NumberFiles
from reveal_collector.source import LayoutChanged
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind


class Reduced:
    """Files that share a channel become one column.

    Counters add up by their steps: a file that goes away (its CPU went offline) or comes back
    with what it counted meanwhile makes no jump.  Of gauges ``fold`` takes one, the
    highest unless told.
    """

    def __init__(self, files: NumberFiles, fold: Callable[[Iterable[int]], int] = max) -> None:
        self.name, self.lane = files.name, files.lane
        self.channels: tuple[Channel, ...] = ()
        self._files, self._fold = files, fold
        self._last: list[int | None] = []
        self._totals: list[int] = []
        self._parts: list[list[int]] = []

    def open(self) -> None:
        self._files.open()
        self._learn()

    def read(self) -> Sequence[int | None]:
        try:
            values = self._files.read()
        except LayoutChanged:
            self._learn()
            raise
        columns = zip(self.channels, self._parts, strict=True)
        reduced = [
            self._added(at, values) if column.kind is Kind.COUNTER else self._folded(parts, values)
            for at, (column, parts) in enumerate(columns)
        ]
        self._last = list(values)
        return reduced

    def close(self) -> None:
        self._files.close()
        self.channels = ()

    def _learn(self) -> None:
        places: dict[Channel, list[int]] = {}
        for at, column in enumerate(self._files.channels):
            places.setdefault(column, []).append(at)
        totals = dict(zip(self.channels, self._totals, strict=False))
        self.channels, self._parts = tuple(places), list(places.values())
        self._totals = [totals.get(column, 0) for column in self.channels]
        self._last = [None] * len(self._files.channels)

    def _added(self, at: int, values: Sequence[int | None]) -> int | None:
        read = False
        for part in self._parts[at]:
            now, last = values[part], self._last[part]
            if now is not None:
                read = True
                self._totals[at] += max(now - last, 0) if last is not None else 0
        return self._totals[at] if read else None

    def _folded(self, parts: Sequence[int], values: Sequence[int | None]) -> int | None:
        known = [value for part in parts if (value := values[part]) is not None]
        return self._fold(known) if known else None
