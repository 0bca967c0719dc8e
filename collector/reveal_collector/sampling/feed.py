"""A source in its lane: read, timed, kept apart from the others when it fails or changes."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic_ns

from reveal_collector.kernel.errors import LayoutChanged, Unsupported
from reveal_collector.readers.plan import ObservingSource
from reveal_collector.readers.source import Source
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane
from reveal_contract.runtime.backoff import delay

log = logging.getLogger(__name__)

FAST_MEDIAN_NS = 200_000
FAST_LONG_NS = 5_000_000
SLOW_MEDIAN_NS = 5_000_000
# One long read may be a preempted one; a source that is slow is so again and again.
LONG_READS = 3
SAMPLES = 50
SLOW_SAMPLES = 10
FAILURES = 5
FIRST_RETRY_NS = 1_000_000_000
LAST_RETRY_NS = 60_000_000_000
ABSENT_RETRIES = 30  # hardware that was absent at the start is tried at the longest interval

Values = Sequence[int | None]


class Feed:
    """One opened source.

    ``shown`` are its columns in the table in use, ``columns`` what it gives now; until the
    next table its values are brought under the old columns by name.  A feed that failed
    ``FAILURES`` times running is ``broken``: nobody reads it until ``reopen`` succeeded.
    ``absent``: its source did not open at start; hardware and drivers may come later.
    """

    def __init__(self, source: Source, absent: bool = False) -> None:
        self.source = source
        # asked once: a protocol's check costs 25 us
        self.watching = source if isinstance(source, ObservingSource) else None
        self.stale: Callable[[], bool] | None = getattr(source, "stale", None)
        self.name = source.name
        self.lane = source.lane
        self.home = source.lane  # where it belongs by the time its reads take
        self.demoted = ""
        self.absent = self.broken = absent
        self.retry_at_ns = 0
        self.read_ns = 0
        self.columns: tuple[Channel, ...] = ()
        self.shown: tuple[Channel, ...] = ()
        self.blank: tuple[None, ...] = ()
        self._places: list[int] | None = None
        self._failures = 0
        self._retries = 0  # failed attempts to open it again, since it was last read
        self._spent: deque[int] = deque(maxlen=SAMPLES)
        self.since_long = SAMPLES  # reads since one that took long: there is nothing to judge
        self.broke: Callable[[], None] = _nobody
        if absent:
            self._retries = ABSENT_RETRIES
            self.retry_at_ns = monotonic_ns() + LAST_RETRY_NS
            return
        self._learn()
        self.show()

    @property
    def changed(self) -> bool:
        """Whether the source's columns are others than the table's."""
        return self.columns is not self.shown

    def show(self) -> None:
        """The columns are in the table now."""
        self.shown = self.columns
        self.blank = (None,) * len(self.shown)
        self._places = None

    def read(self) -> Values:
        """One value a shown column; never raises."""
        if self.broken:
            return self.blank
        began = monotonic_ns()
        try:
            values = self._read_source()
        except Exception as error:  # a failing source must not stop the others
            return self._failed(error)
        self.read_ns = monotonic_ns() - began
        self._spent.append(self.read_ns)
        self.since_long = 0 if self.read_ns > FAST_MEDIAN_NS else self.since_long + 1
        self._failures = self._retries = 0
        if self._places is not None:
            return [values[at] if at >= 0 else None for at in self._places]
        return values

    def note(self, spent_ns: Sequence[int]) -> None:
        """The scanner read the source in full: what each read took."""
        if spent_ns:
            self.read_ns = spent_ns[-1]
            self._spent.extend(spent_ns)
            long = max(spent_ns) > FAST_MEDIAN_NS
            self.since_long = 0 if long else self.since_long + len(spent_ns)
        self._failures = self._retries = 0

    def judge(self) -> Lane | None:
        """The lane this source should move to by the time its reads take, if any."""
        if self.lane is Lane.FAST and len(self._spent) == SAMPLES:
            spent = sorted(self._spent)
            if spent[SAMPLES // 2] > FAST_MEDIAN_NS or spent[-LONG_READS] > FAST_LONG_NS:
                return Lane.SLOW
        elif self.lane is Lane.SLOW and len(self._spent) >= SLOW_SAMPLES:
            spent = sorted(self._spent)
            if spent[len(spent) // 2] > SLOW_MEDIAN_NS:
                return Lane.RARE
        return None

    def demote(self, lane: Lane) -> None:
        """Say that it belongs into a slower lane; the sampler moves it there."""
        middle = sorted(self._spent)[len(self._spent) // 2]
        self.demoted = f"{self.name}: {self.lane} -> {lane}, a read takes {middle // 1000} us"
        log.warning("source moved to a slower lane: %s", self.demoted)
        self.home = lane

    def move(self, lane: Lane) -> None:
        """Go over to another lane, in a table with its columns there."""
        self.lane = lane
        if lane is Lane.RARE and self.watching is not None:
            self.watching.stop_observing()
        self._spent.clear()
        self._learn()
        self.show()

    def reopen(self, now_ns: int) -> None:
        """Close and open a broken source; on failure it is due again, later each time."""
        try:
            self.source.close()
            self.source.open()
        except (Unsupported, OSError, ValueError) as error:
            self._retries += 1
            self.retry_at_ns = now_ns + self._retry_delay_ns()
            log.debug("source %s is still broken: %s", self.name, error)
            return
        log.info("source %s %s", self.name, "is there now" if self.absent else "works again")
        self._failures = 0
        self._learn()
        self.absent = self.broken = False

    def _read_source(self) -> Values:
        try:
            values = self.source.read()
        except LayoutChanged:
            self._learn()
            values = self.source.read()
        if len(values) != len(self.columns):
            raise ValueError(f"{len(values)} values for {len(self.columns)} columns")
        return values

    def _learn(self) -> None:
        columns = tuple(self.source.channels)
        if self.lane is not self.source.lane:
            columns = tuple(replace(channel, lane=self.lane) for channel in columns)
        if columns == self.shown:
            self.columns, self._places = self.shown, None
            return
        self.columns = columns
        at = {(channel.metric, channel.instance): n for n, channel in enumerate(columns)}
        self._places = [at.get((shown.metric, shown.instance), -1) for shown in self.shown]

    def _retry_delay_ns(self) -> int:
        return delay(self._retries, FIRST_RETRY_NS, LAST_RETRY_NS)

    def _failed(self, error: Exception) -> Values:
        self._failures += 1
        if self._failures == 1:
            log.warning("source %s cannot be read: %s", self.name, error)
        if self._failures >= FAILURES:
            self.retry_at_ns = monotonic_ns() + self._retry_delay_ns()
            self.broken = True
            self.broke()
        return self.blank


def _nobody() -> None:
    """No lane that tries again what broke."""


class RareFeed:
    """A feed that one thread reads, seldom, and another takes the last values of.

    Columns and values go over as one pair, so that neither meets the other's layout.
    """

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.due_ns = 0
        self.leaving = self.left = False
        feed.show()
        self._held: tuple[tuple[Channel, ...], Values] = (feed.shown, feed.blank)
        self.shown = feed.shown

    def refresh(self) -> None:
        """Read the source: in the thread of the rare lane, it may take its time."""
        values = self.feed.read()
        if self.feed.changed:
            self.feed.show()
            values = self.feed.read()
        self._held = (self.feed.shown, values)

    @property
    def changed(self) -> bool:
        return self._held[0] is not self.shown

    def show(self) -> None:
        """The columns held now are in the table; for the thread that takes."""
        self.shown = self._held[0]

    def take(self) -> Values:
        """The last values, blank while they are not of the shown columns."""
        columns, values = self._held
        return values if columns is self.shown else (None,) * len(self.shown)
