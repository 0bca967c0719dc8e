"""Sentences about the sources that give no values, for the status of the node."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from reveal_collector.readers.source import HUNG_NS, Outage, time_of_day
from reveal_collector.sampling.feed import Feed


class FailingSource(NamedTuple):
    """A source that could be read and cannot be read now: why, as a part of a sentence."""

    source: str
    reason: str

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


class OutageTexts:
    """Texts of outages with the time of day of their begin, which stays the same while they last.

    A duration would change with every second, and with it each object that repeats the text.
    """

    def __init__(self) -> None:
        self._begins: dict[str, tuple[int, str]] = {}  # monotonic ns, time of day

    def text(self, name: str, outage: Outage) -> str:
        """Return ``has not answered since 12:03:05Z``."""
        known = self._begins.get(name)
        if known is None or known[0] != outage.since_ns:
            known = self._begins[name] = outage.since_ns, time_of_day(outage.since_ns)
        return f"{outage.reason} since {known[1]}"

    def failing(self, feeds: Iterable[Feed]) -> list[FailingSource]:
        """Return the feeds that are broken or do not answer; those of one driver once."""
        now_ns, found = time.monotonic_ns(), dict[str, str]()
        for feed in feeds:
            if (outage := feed.outage(now_ns)) is not None:
                found.setdefault(feed.driver, self.text(feed.driver, outage))
            elif feed.broken and not feed.absent:
                found.setdefault(feed.driver, "cannot be read, retrying")
        return [FailingSource(*each) for each in found.items()]

    def of_thread(self, name: str, since_ns: int) -> list[FailingSource]:
        """Return the outage of another thread whose work began then (monotonic; 0: it waits)."""
        if not since_ns or time.monotonic_ns() - since_ns < HUNG_NS:
            return []
        return [FailingSource(name, self.text(name, Outage(since_ns)))]
