"""Token buckets: rate limits with bursts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from reveal_contract.time_units import NS_PER_SECOND


class TokenBucket:
    """Holds at most ``capacity`` tokens and gains one every ``every_s`` seconds; full at first.

    Times are nanoseconds of one clock.  A clock that steps back changes nothing.
    """

    def __init__(self, capacity: int, every_s: float) -> None:
        self._capacity, self._every_ns = capacity, every_s * NS_PER_SECOND
        self._tokens = float(capacity)
        self._last_ns: int | None = None

    def take(self, now_ns: int, *, leave: int = 0) -> bool:
        """Take a token if more than ``leave`` are left; return whether it did."""
        self._gain(now_ns)
        if self._tokens < 1 + leave:
            return False
        self._tokens -= 1
        return True

    def _gain(self, now_ns: int) -> None:
        passed = 0 if self._last_ns is None else max(0, now_ns - self._last_ns)
        self._tokens = min(self._capacity, self._tokens + passed / self._every_ns)
        self._last_ns = now_ns


class KeyedTokenBuckets:
    """A bucket for each key; the ``most`` used last are kept."""

    def __init__(self, capacity: int, every_s: float, most: int = 4096) -> None:
        self._shape, self._most = (capacity, every_s), most
        self._buckets: OrderedDict[Hashable, TokenBucket] = OrderedDict()

    def take(self, key: Hashable, now_ns: int) -> bool:
        """Take a token of a key; return whether there was one."""
        bucket = self._buckets.setdefault(key, TokenBucket(*self._shape))
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return bucket.take(now_ns)
