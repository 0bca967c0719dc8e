"""Token buckets: so many at once, so many over time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from reveal_contract.time_units import NS_PER_SECOND


class TokenBucket:
    """Holds ``capacity`` tokens at most and gains one in ``every_s`` seconds; full at first.

    Times are nanoseconds of one clock.  One that steps back gives nothing and takes nothing.
    """

    def __init__(self, capacity: int, every_s: float) -> None:
        self._capacity, self._every_ns = capacity, every_s * NS_PER_SECOND
        self._tokens = float(capacity)
        self._at_ns: int | None = None

    def take(self, now_ns: int, *, leave: int = 0) -> bool:
        """Take a token where more than ``leave`` are there; whether that was so."""
        self._gain(now_ns)
        if self._tokens < 1 + leave:
            return False
        self._tokens -= 1
        return True

    def _gain(self, now_ns: int) -> None:
        passed = 0 if self._at_ns is None else max(0, now_ns - self._at_ns)
        self._tokens = min(self._capacity, self._tokens + passed / self._every_ns)
        self._at_ns = now_ns


class Buckets:
    """A bucket for each key; ``most`` are kept, those used last."""

    def __init__(self, capacity: int, every_s: float, most: int = 4096) -> None:
        self._shape, self._most = (capacity, every_s), most
        self._buckets: OrderedDict[Hashable, TokenBucket] = OrderedDict()

    def take(self, key: Hashable, now_ns: int) -> bool:
        bucket = self._buckets.setdefault(key, TokenBucket(*self._shape))
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return bucket.take(now_ns)
