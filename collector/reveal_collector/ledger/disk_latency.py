"""How long the requests of a subject take on a disk while hardly anybody else uses it.

A disk serves many requests at a time, so those of others need not delay a subject by their number.
What it waits for storage is its own as far as its requests would take that long alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

_ALONE = 0.8  # of the time in which requests are under way on a disk
_LEAST = 5  # requests
_NEW = 0.2  # weight of the latest interval in the mean


class Requests(NamedTuple):
    """What a subject did on a disk: ns that its requests were under way, those that ended."""

    time_ns: int = 0
    count: int = 0
    bytes: int = 0

    @property
    def size_class(self) -> int:
        """The power of two above their mean size: large requests take longer than small ones."""
        return (self.bytes // self.count).bit_length() if self.count > 0 else 0


class AloneLatencies:
    """Mean times of requests by subject, disk and size, of intervals with hardly any others."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int], float] = {}

    def learn(self, requests: Mapping[str, Sequence[Requests]], names: Collection[str]) -> None:
        """Add an interval; forget all subjects but these names."""
        disks = [
            sum(each.time_ns for each in column) for column in zip(*requests.values(), strict=True)
        ]
        for name, row in requests.items():
            for disk, each in enumerate(row):
                if each.count >= _LEAST and each.time_ns >= _ALONE * disks[disk]:
                    self._add((name, disk, each.size_class), each.time_ns / each.count)
        if len(self._known) > 2 * len(names):
            self._known = {key: mean for key, mean in self._known.items() if key[0] in names}

    def own_part(self, name: str, disk: int, requests: Requests) -> float:
        """Return which part of its time a subject's requests would take alone; 0 if unknown."""
        known = self._known.get((name, disk, requests.size_class))
        if known is None or requests.time_ns <= 0:
            return 0.0
        return min(1.0, known * requests.count / requests.time_ns)

    def _add(self, key: tuple[str, int, int], mean_ns: float) -> None:
        known = self._known.get(key, mean_ns)
        self._known[key] = known + _NEW * (mean_ns - known)
