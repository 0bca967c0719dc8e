"""Slices that a stream lost before anybody read them, and slices that never arrived.

Both are gaps in the sequence of a node.  A stream keeps two minutes: where its first entry is later
than the last one that was read, what lay between was trimmed.  When a missing slice would have
arrived follows from its number and from the time of the slice after it.  All times are those of
the ids of entries, on the clock of Redis.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

BEHIND_SECONDS = 10.0  # streams keep more: what is read to its end in this time loses nothing
_MAX_SPANS = 8


class LostSlices(NamedTuple):
    """How many slices of a gap never arrived, and how many were trimmed before they were read."""

    missing: int
    trimmed: int


class Gap(NamedTuple):
    """A gap of ``slices`` between the entries at ``from_ms`` (0 is unknown) and ``to_ms``."""

    from_ms: int
    to_ms: int
    slices: int
    slice_ms: int

    def since(self, time_ms: float) -> int:
        """Return how many of the slices would have arrived then or later.

        Slices come at uneven times: those of half a period before count too.
        """
        later = math.ceil((self.to_ms - time_ms) / self.slice_ms - 0.5)
        return min(self.slices, max(0, later))


@dataclass
class _Shard:
    read_ms: int = 0  # of the last entry that was read, by whomever
    ended_s: float | None = None  # when it was last read to its end (monotonic)
    counted_ms: int = 0  # what was lost until then was not this analyzer's to count
    spans: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_MAX_SPANS))


class TrimmedSpans:
    """The spans of time in which each shard lost unread entries."""

    def __init__(self) -> None:
        self._shards: dict[int, _Shard] = {}

    def take_over(self, shard: int, read_ms: int) -> None:
        """Begin with a shard whose last owner read the entries until then."""
        self._shards[shard] = _Shard(read_ms, counted_ms=read_ms)

    def behind(self, shards: Iterable[int], now: float) -> list[int]:
        """Return the shards that may have lost something: they were not read to their end."""
        known = ((number, self._shards.get(number)) for number in shards)
        return [
            number
            for number, shard in known
            if shard and (shard.ended_s is None or now - shard.ended_s > BEHIND_SECONDS)
        ]

    def check(self, first_ms: Mapping[int, int], redis_ms: int, now: float) -> None:
        """Note what was lost, from the first entries that streams have now."""
        for number, first in first_ms.items():
            shard = self._shards[number]
            away_s = now - shard.ended_s if shard.ended_s is not None else math.inf
            start = max(shard.read_ms, redis_ms - away_s * 1000)
            if first > start:
                shard.spans.append((int(start), first))

    def read(
        self, asked: Iterable[int], last_ms: Mapping[int, int], full: Collection[int], now: float
    ) -> None:
        """Note the last entries that were read; ``full`` shards may have more."""
        for number in asked:
            if (shard := self._shards.get(number)) is None:
                continue
            shard.read_ms = max(shard.read_ms, last_ms.get(number, 0))
            if number not in full:
                shard.ended_s = now

    def pending_lost(self, shard: int, entry_ms: int) -> None:
        """Note an entry that was read before and is gone: it is counted already."""
        known = self._shards.setdefault(shard, _Shard())
        known.counted_ms = max(known.counted_ms, entry_ms)

    def split(self, shard: int, gap: Gap) -> LostSlices:
        """Return what became of the slices of a gap."""
        known = self._shards.get(shard) or _Shard()
        trimmed = sum(
            gap.since(max(start, gap.from_ms)) - gap.since(end + gap.slice_ms)
            for start, end in known.spans
            if end > max(start, gap.from_ms)
        )
        trimmed = min(trimmed, gap.slices)
        not_counted = gap.since(known.counted_ms + gap.slice_ms)
        return LostSlices(max(0, not_counted - trimmed), trimmed)
