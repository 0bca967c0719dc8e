"""How long the requests of a subject take on a disk while hardly anybody else uses it.

A disk serves many requests at a time, so those of others need not delay a subject by their number.
What it waits for storage is its own as far as its requests would take that long alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from reveal_collector.ledger.programs import DISKS

_ALONE = 0.8  # of the requests on a disk: of their time, number and bytes
_LEAST = 5  # requests
# A value that is too high hides what others take, one that is too low counts waits as taken by the
# share of requests.  So the mean follows shorter times soon, and longer ones slowly.
_SHORTER, _LONGER = 0.3, 0.05  # weights of the latest interval in the mean
_MOST = 2.0  # times the mean: more is a stall
_SHARED = DISKS - 1  # the index of all further disks


class Requests(NamedTuple):
    """What a subject did on a disk: ns that its requests were under way, how many ended, bytes."""

    time_ns: int = 0
    ended: int = 0
    bytes: int = 0

    @property
    def size_class(self) -> int:
        """The power of two above their mean size: large requests take longer than small ones."""
        return (self.bytes // self.ended).bit_length() if self.ended > 0 else 0


class AloneLatencies:
    """Mean times of requests by subject, disk and size, of intervals with hardly any others."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int], float] = {}

    def learn(
        self,
        requests: Mapping[str, Sequence[Requests]],
        names: Collection[str],
        elapsed_ns: int,
    ) -> None:
        """Add an interval of this length; forget all subjects but these names."""
        columns = zip(*requests.values(), strict=True)
        disks = [Requests(*map(sum, zip(*column, strict=True))) for column in columns]
        for name, row in requests.items():
            for disk, (each, everybody) in enumerate(zip(row, disks, strict=True)):
                if _is_alone(each, everybody) and each.time_ns <= each.ended * elapsed_ns:
                    self._add((name, disk, each.size_class), each.time_ns / each.ended)
        if len(self._known) > 2 * len(names):
            self._known = {key: mean for key, mean in self._known.items() if key[0] in names}

    def own_part(self, name: str, disk: int, requests: Requests) -> float:
        """Return which part of its time a subject's requests would take alone; 0 if unknown."""
        known = self._known.get((name, disk, requests.size_class))
        if disk == _SHARED or known is None or requests.time_ns <= 0:
            return 0.0
        return min(1.0, known * requests.ended / requests.time_ns)

    def _add(self, key: tuple[str, int, int], mean_ns: float) -> None:
        known = self._known.get(key, mean_ns)
        weight = _LONGER if mean_ns > known else _SHORTER
        self._known[key] = known + weight * (min(mean_ns, _MOST * known) - known)


def _is_alone(requests: Requests, everybody: Requests) -> bool:
    """Return whether hardly any requests, and hardly any bytes, on a disk are of others."""
    pairs = zip(requests, everybody, strict=True)
    return requests.ended >= _LEAST and all(own >= _ALONE * every for own, every in pairs)
