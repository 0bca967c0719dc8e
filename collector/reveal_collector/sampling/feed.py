"""A source in its lane: read, timed, and isolated from the others when it fails or changes."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic_ns
from typing import TypeVar

from reveal_collector.kernel_interfaces.errors import LayoutChanged
from reveal_collector.readers.opening import Opening
from reveal_collector.readers.plan import FileScan, ObservingSource, scans_of
from reveal_collector.readers.source import HUNG_NS, Outage, Source
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane
from reveal_contract.runtime import backoff

log = logging.getLogger(__name__)

FAST_MEDIAN_NS = 200_000
FAST_LONG_NS = 5_000_000
SLOW_MEDIAN_NS = 5_000_000
# A single long read may be a preempted one: a slow source has several of them.
LONG_READS = 3
SAMPLES = 50
SLOW_SAMPLES = 10
# until a source is tried again in the lane that it was too slow for; doubled each time it still is
RETURN_NS = 60_000_000_000
LAST_RETURN_NS = 16 * RETURN_NS
FAILURES = 5
FIRST_RETRY_NS = 1_000_000_000
LAST_RETRY_NS = 60_000_000_000
_LAST_RETRY = 6  # the number of retries after which the delay stays at LAST_RETRY_NS

Values = Sequence[int | None]
_Result = TypeVar("_Result")


class ThreadReplaced(BaseException):
    """The call of a source returned after its thread was replaced, which must end now.

    Like ``SystemExit`` it is no ``Exception``: only the function of the thread catches it.
    """


class Feed:
    """One opened source.

    ``table_columns`` are its columns in the current channel table, ``columns`` the ones it
    returns now.  Until the next table, its values are mapped to the table's columns by name.  A sum
    of other members than in the table is missing until then.
    After ``FAILURES`` failures in a row a feed is ``broken``: it is not read until ``reopen``
    succeeds.  ``absent`` marks a source that did not open at start: hardware and drivers may
    appear later.

    ``busy_since_ns`` is when the read or the opening under way began (monotonic), 0 between two.
    A source that another thread reads reports its own outages (``Outage``).
    """

    def __init__(self, source: Source, absent: bool = False) -> None:
        self.source = source
        # checked once: an instance check of a protocol costs 25 us
        self.observer = source if isinstance(source, ObservingSource) else None
        self._stale: Callable[[], bool] | None = getattr(source, "stale", None)
        self.checks_layout = self._stale is not None
        self._outage: Callable[[], Outage | None] | None = getattr(source, "outage", None)
        self.name = source.name
        # the name under which outages are stated: several sources may share one driver
        self.driver: str = getattr(source, "driver", source.name)
        self.busy_since_ns = 0
        self._opening: Opening | None = None
        self._has_hung = False
        self._lock = threading.Lock()  # held to begin or end the leaving of a call
        self._is_left = False  # a call hangs in a thread that was replaced
        self.lane = source.lane
        self.home_lane = source.lane  # the lane that fits the duration of its reads
        self._keeps_lane: bool = getattr(source, "keeps_lane", False)
        self.demoted = ""  # a phrase, if the source was too slow for its lane
        self._demoted_ns = 0
        self._return_wait_ns = RETURN_NS
        self.absent = self.broken = absent
        self.retry_due_ns = 0
        self.read_ns = 0
        self.columns: tuple[Channel, ...] = ()
        self.table_columns: tuple[Channel, ...] = ()
        self.blank: tuple[None, ...] = ()
        self._indices: list[int] | None = None  # of the table's columns among ``columns``
        self._failures = 0
        self._retries = 0
        self._spent: deque[int] = deque(maxlen=SAMPLES)
        self.reads_since_long = SAMPLES  # no long read so far: the lane needs no check
        self.on_broken: Callable[[], None] = _ignore
        if absent:
            # drivers and devices appear seldom: retry at the longest interval
            self._retries = _LAST_RETRY
            self.retry_due_ns = monotonic_ns() + LAST_RETRY_NS
            return
        self._learn()
        self.adopt_columns()

    @property
    def changed(self) -> bool:
        """Whether the source's columns differ from those in the table."""
        return self.columns is not self.table_columns

    def adopt_columns(self) -> None:
        """Record that the current columns are in the table."""
        self.table_columns = self.columns
        self.blank = (None,) * len(self.table_columns)
        self._indices = None

    def read(self) -> Values:
        """Return one value for each column in the table; never raises."""
        if self.broken:
            return self.blank
        began = self.busy_since_ns = monotonic_ns()
        try:
            values = self._read_source()
        except Exception as error:  # a failing source must not stop the others
            return self._failed(error)
        finally:
            self._end_call()
        self.read_ns = monotonic_ns() - began
        self._spent.append(self.read_ns)
        self.reads_since_long = 0 if self.read_ns > FAST_MEDIAN_NS else self.reads_since_long + 1
        self._failures = self._retries = 0
        if self._indices is not None:
            return [values[index] if index >= 0 else None for index in self._indices]
        return values

    def is_stale(self) -> bool:
        """Return whether the source must be read by its own code; it may look at files for that."""
        if self._stale is None or self.broken:
            return False
        try:
            return self._call(self._stale)
        except Exception:  # the read that follows fails as well, and is counted
            return True

    def scans(self) -> Sequence[FileScan] | None:
        """Return what the native scanner reads of the source; None where its own code reads it."""
        if self.broken:
            return None
        try:
            return self._call(lambda: scans_of(self.source))
        except Exception:  # its own code reads it, and its failures are counted
            return None

    def leave_call(self, since_ns: int) -> bool:
        """Leave the call that began then to its thread: the source is broken until it returns.

        Return False where that call is over.
        """
        with self._lock:
            if self.busy_since_ns != since_ns:
                return False
            self._is_left = True
            self._break_hung()
        self.on_broken()
        return True

    def _call(self, call: Callable[[], _Result]) -> _Result:
        """Call the source where it may hang."""
        self.busy_since_ns = monotonic_ns()
        try:
            return call()
        finally:
            self._end_call()

    def _end_call(self) -> None:
        """Raise ``ThreadReplaced`` if another thread has gone on meanwhile."""
        with self._lock:
            self.busy_since_ns = 0
            was_left, self._is_left = self._is_left, False
        if was_left:
            raise ThreadReplaced(self.name)

    def _break_hung(self) -> None:
        self._has_hung = True
        self.broken, self.retry_due_ns = True, monotonic_ns() + FIRST_RETRY_NS

    def outage(self, now_ns: int) -> Outage | None:
        """Return since when the source has not answered; None while it answers in time."""
        if self.busy_since_ns:
            found: Outage | None = Outage(self.busy_since_ns)
        else:
            found = self._outage() if self._outage is not None else None
        return found if found is not None and now_ns - found.since_ns >= HUNG_NS else None

    def record_reads(self, spent_ns: Sequence[int]) -> None:
        """Record successful reads by the native scanner, with the duration of each."""
        if spent_ns:
            self.read_ns = spent_ns[-1]
            self._spent.extend(spent_ns)
            long = max(spent_ns) > FAST_MEDIAN_NS
            self.reads_since_long = 0 if long else self.reads_since_long + len(spent_ns)
        self._failures = self._retries = 0

    @property
    def has_long_read(self) -> bool:
        """Whether one of its last reads delayed what was read after it."""
        return max(self._spent, default=0) > FAST_LONG_NS

    def slower_lane(self, preempted: bool = False) -> Lane | None:
        """Return the lane that this source must move to because its reads take too long.

        ``preempted``: its thread had to wait for a CPU lately: single long reads are not its own.
        """
        if self._keeps_lane:
            return None
        if self.lane is Lane.FAST and len(self._spent) == SAMPLES:
            spent = sorted(self._spent)
            is_long = spent[-LONG_READS] > FAST_LONG_NS and not preempted
            if spent[SAMPLES // 2] > FAST_MEDIAN_NS or is_long:
                return Lane.SLOW
        elif self.lane is Lane.SLOW and len(self._spent) >= SLOW_SAMPLES:
            spent = sorted(self._spent)
            if spent[len(spent) // 2] > SLOW_MEDIAN_NS:
                return Lane.RARE
        return None

    def demote(self, lane: Lane, now_ns: int) -> None:
        """Assign the source to a slower lane; the sampler moves it there."""
        median = sorted(self._spent)[len(self._spent) // 2]
        self.demoted = f"{self.name}: {self.lane} -> {lane}, a read takes {median // 1000} us"
        level = logging.INFO if self._demoted_ns else logging.WARNING
        log.log(level, "source moved to a slower lane: %s", self.demoted)
        # it held its lane for long: what was before says nothing about the next time
        if now_ns - self._demoted_ns > 2 * LAST_RETURN_NS:
            self._return_wait_ns = RETURN_NS
        self._demoted_ns, self.home_lane = now_ns, lane

    def return_when_due(self, now_ns: int) -> None:
        """Assign a source that was too slow to its own lane again, once it has waited for it.

        A host that was saturated, or a first read, may have made its reads long.
        """
        if not self.demoted or now_ns - self._demoted_ns < self._return_wait_ns:
            return
        self._return_wait_ns = min(2 * self._return_wait_ns, LAST_RETURN_NS)
        self.demoted, self.home_lane = "", self.source.lane

    def move(self, lane: Lane) -> None:
        """Move to another lane; the columns of the source get that lane, too."""
        self.lane = lane
        if lane is Lane.RARE and self.observer is not None:
            self.observer.stop_observing()
        self._spent.clear()
        self._learn()
        self.adopt_columns()

    def await_opening(self, opening: Opening) -> None:
        """Note that the opening at start hangs: the source is broken until it ends."""
        self._opening, self.busy_since_ns = opening, opening.began_ns
        self.absent, self.broken = False, True
        self.retry_due_ns = opening.began_ns

    def leave_hung(self, since_ns: int) -> None:
        """Note that the C thread has hung in a read since then: the source is broken."""
        self.busy_since_ns = since_ns
        self._break_hung()
        self.on_broken()

    def reopen(self, now_ns: int) -> None:
        """Close and open a broken source; on failure, schedule the next retry later."""
        opening = self._opening
        if self._is_left or (opening is not None and not opening.ended.is_set()):
            self.retry_due_ns = now_ns + FIRST_RETRY_NS
            return
        self.busy_since_ns = self.busy_since_ns or monotonic_ns()
        try:
            self._open()
        except Exception as error:  # also of a defect: it must not end the thread of the rare lane
            self._retries += 1
            self._schedule_retry(now_ns)
            log.debug("source %s is still broken: %s", self.name, error)
            return
        finally:
            self.busy_since_ns = 0
        log.info("source %s %s", self.name, "is available now" if self.absent else "works again")
        self._failures = 0
        self._learn()
        self.absent = self.broken = False

    def _open(self) -> None:
        """Open the source again, unless the opening that hung at start succeeded."""
        opening, self._opening = self._opening, None
        if opening is None or opening.error is not None:
            self.source.close()
            self.source.open()
        if self._has_hung:
            with suppress(OSError, LayoutChanged):
                self.source.read()  # in this thread, as it may hang again
            self._has_hung = False

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
        if columns == self.table_columns:
            # the same object tells the sampler that the table needs no change
            self.columns, self._indices = self.table_columns, None
            return
        self.columns = columns
        indices = {channel.identity: index for index, channel in enumerate(columns)}
        self._indices = [indices.get(channel.identity, -1) for channel in self.table_columns]

    def _failed(self, error: Exception) -> Values:
        self._failures += 1
        if self._failures == 1:
            log.warning("source %s cannot be read: %s", self.name, error)
        if self._failures >= FAILURES:
            self._schedule_retry(monotonic_ns())
            self.broken = True
            self.on_broken()
        return self.blank

    def _schedule_retry(self, now_ns: int) -> None:
        self.retry_due_ns = now_ns + backoff.delay(self._retries, FIRST_RETRY_NS, LAST_RETRY_NS)


def _ignore() -> None:
    """Do nothing: no rare lane reopens this feed."""
