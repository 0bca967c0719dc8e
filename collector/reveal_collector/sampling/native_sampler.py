"""The sampler whose ticks run in a C thread: Python wakes up once a second.

The C thread reads all files that have plans.  This module reads the rest: slow sources when a
slice is complete, and fast ones (mostly of plugins) tick by tick along with the thread.  A source
whose plan failed is read once by its own code, which learns the new layout; the thread gets the
new plan before its next slice starts.

A read of the C thread that hangs in a driver would stop all sources.  After a few seconds without a
slice, the source that is read then counts as broken, and a new C thread reads the others.  Where
a call of Python hangs, a new Python thread completes the slices (``tick_watch``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from reveal_collector.kernel_interfaces.scheduling import prefer_real_time
from reveal_collector.native import load
from reveal_collector.native.scanner import GROWN, NativePlan, NativeSlice, Ticker
from reveal_collector.readers.plan import WakingSource
from reveal_collector.readers.raw_slice import MISSING, RawSlice
from reveal_collector.readers.source import Source, ThrottledSource
from reveal_collector.sampling.clock import Clock
from reveal_collector.sampling.feed import (
    FAST_MEDIAN_NS,
    SLOW_MEDIAN_NS,
    SLOW_SAMPLES,
    Feed,
    Values,
)
from reveal_collector.sampling.native_planner import NativePlanner
from reveal_collector.sampling.native_view import PlanView, hide, latest, put, record_reads
from reveal_collector.sampling.sampler import Sampler, SamplerCounts
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane
from reveal_contract.time_units import NS_PER_SECOND

log = logging.getLogger(__name__)

_RECORD_EVERY = 10  # slices between two records of read times while no read is long
_SLOW_LONG_NS = SLOW_MEDIAN_NS // 4  # in one tick, as a source's files are spread over several
_PATIENCE_NS = 2 * NS_PER_SECOND  # without a slice, until a check what the C thread reads
_CHECKS = 2  # that find the same source: a thread that merely waits for a CPU goes on meanwhile
# A slice that waits for so long after its end is completed without values that Python reads: they
# would be those of a later second.
_TOO_LATE_NS = NS_PER_SECOND
_BEHIND_NS = NS_PER_SECOND // 2  # reading along would keep the delay


@dataclass
class _PythonReads:
    """Values of fast sources that Python read during the slice that starts at ``due``."""

    due: int
    rows: dict[Feed, list[Values]] = field(default_factory=dict)


def make_sampler(
    node: str,
    sources: Sequence[Source],
    deliver: Callable[[RawSlice], None],
    period_ns: int,
    absent: Sequence[Source] = (),
) -> Sampler:
    """Return the native sampler where the C library is available, else the one in Python."""
    if load().library is None:
        log.warning("%s", load().unavailable)
        sampler = Sampler(node, sources, deliver, period_ns, absent=absent)
        sampler.not_native = load().unavailable
        return sampler
    return NativeSampler(node, sources, deliver, period_ns, absent=absent)


class NativeSampler(Sampler):
    """Sampler with a tick thread in C; the interface is that of ``Sampler``."""

    def __init__(
        self,
        node: str,
        sources: Sequence[Source],
        deliver: Callable[[RawSlice], None],
        period_ns: int = NS_PER_SECOND // 10,
        clock: Clock | None = None,
        absent: Sequence[Source] = (),
    ) -> None:
        super().__init__(node, sources, deliver, period_ns, clock, absent)
        self._planner = NativePlanner(self._fast, self._slow, self._rare, self._ticks)
        all_sources = (*sources, *absent)
        self._throttled = [each for each in all_sources if isinstance(each, ThrottledSource)]
        self._observing = [feed for feed in self.feeds if feed.observer is not None]
        self._views: dict[int, PlanView] = {}  # by the number of the plan
        self._ticker: Ticker | None = None
        self._hanging: list[Ticker] = []  # abandoned ones, until their read returns
        self._counts_before = SamplerCounts()  # those of the abandoned ones
        self._number = 0  # of the newest plan
        self._learned = False  # a source was read by its own code since the last plan
        self._unfinished: NativeSlice | None = None  # the slice that is being completed
        self._behind = False  # finished slices are waiting
        self._recording = SLOW_SAMPLES  # slices for which the time of every read is recorded

    def start(self) -> None:
        """Start the rare lane, the C thread, and the thread that waits for its slices."""
        self.rare_lane.start()
        self._start_ticker()
        if self.not_real_time:
            log.warning("%s", self.not_real_time)
        self._thread.start()
        self.tick_watch.start()

    def _start_ticker(self) -> None:
        plan, view = self._plan()
        self._ticker = Ticker(plan, self._phase, self._period)
        self._number = 1
        self._views = {self._number: view}
        for feed in self.feeds:
            if isinstance(feed.source, WakingSource):
                feed.source.call_when_stale(self._ticker.wake)
        self.not_real_time = self._ticker.not_real_time

    def stop(self, timeout: float = 1.0) -> None:
        """Stop within a tick and deliver the part of the current slice that was read."""
        self._stopping.set()
        if self._ticker is not None:
            self._ticker.end()
        super().stop(timeout)
        # a thread that hangs in a read is left with its memory
        if self._ticker is not None and not self._thread.is_alive() and self._ticker.collect():
            self._ticker = None

    def _replace_thread(self) -> None:
        self._behind = self._learned = True  # slices wait, and a source may have learned something
        super()._replace_thread()

    def _run(self) -> None:
        prefer_real_time()  # a failed plan loses samples until this thread has replaced it
        while not self._stopping.is_set():
            self._take(None if self._behind else self._read_along())
        while self._take(None):
            pass

    def _read_along(self) -> _PythonReads | None:
        """Read the fast sources without a plan, tick by tick; return None where there are none."""
        newest = self._newest()
        feeds = [part.feed for part in newest.parts[: newest.fast]
                 if part.owner < 0 and part.channels and not part.feed.broken]  # fmt: skip
        if not feeds:
            return None
        reads = _PythonReads(self.first_due(), {feed: [] for feed in feeds})
        for tick in range(self._ticks):
            ahead = reads.due + tick * self._period - self._clock.monotonic()
            if self._stopping.wait(max(0, ahead) / NS_PER_SECOND):
                break
            for feed in feeds:
                reads.rows[feed].append(feed.read())
            self._read_changed()
        return reads

    def _next(self, ticker: Ticker) -> NativeSlice | None:
        """Return the next finished slice, or None after the last one of this ticker.

        A source may wake the wait before the slice is finished.  New columns are then read tick
        by tick until they are in the table.
        """
        patience, began = _PATIENCE_NS, self._clock.monotonic()
        found: list[tuple[int, int] | None] = []  # what the thread read at each check
        while True:
            taken = ticker.wait(patience)
            if taken is not None or self._stopping.is_set():
                return taken
            waited = self._clock.monotonic() - began
            if waited >= _PATIENCE_NS * (len(found) + 1):
                found.append(ticker.reading())
                if len(found) >= _CHECKS and self._leave_hung(ticker, found[-_CHECKS:], waited):
                    return None
            patience = self._period if self._read_changed() else _PATIENCE_NS

    def _leave_hung(
        self, ticker: Ticker, found: Sequence[tuple[int, int] | None], waited_ns: int
    ) -> bool:
        """Go on with a new C thread where the present one hangs in a source; return whether so."""
        reading = found[0]
        view = self._views.get(reading[0]) if reading is not None else None
        if reading is None or view is None or len(set(found)) > 1:
            return False
        feed = next(part.feed for part in view.parts if part.owner == reading[1])
        log.warning("source %s does not answer: it is left out", feed.name)
        feed.leave_hung(self._clock.monotonic() - waited_ns)
        ticker.end()
        self._hanging.append(ticker)
        self.counts.skipped_slices += waited_ns // NS_PER_SECOND
        self._counts_before = replace(self.counts)
        self._start_ticker()
        return True

    def _read_changed(self) -> bool:
        """Read fast sources with columns that no plan reads yet; return whether there are any."""
        feeds = [feed for feed in self._fast if not feed.broken]
        for feed in feeds:
            if feed.changed or feed.is_stale():
                feed.read()
                self._learned = True
        return any(feed.changed for feed in feeds)

    def _take(self, reads: _PythonReads | None) -> bool:
        """Wait for a slice, complete and deliver it; return False after the last one."""
        ticker, taken = self._ticker, self._unfinished
        if taken is None and ticker is not None:
            taken = self._next(ticker)
        if ticker is None or taken is None:
            return False
        self._unfinished = taken
        self._complete(taken, reads)
        self._unfinished = None
        self.rare_lane.check()
        if self._hanging:
            self._hanging = [each for each in self._hanging if not each.collect()]
        if not self._stopping.is_set():
            self._update_plan(ticker)
        self._behind = self._age_ns(taken) > _BEHIND_NS
        return True

    def _complete(self, taken: NativeSlice, reads: _PythonReads | None) -> None:
        """Read what the C thread cannot read, and deliver the slice."""
        for old in [number for number in self._views if number < taken.plan]:
            del self._views[old]
        view = self._views[taken.plan]
        self._record(view, taken)
        learned = self._relearn(view, taken)
        self._learned |= bool(learned)
        slow = self._slow_row(view, taken, learned)
        hide(view, taken)
        if reads is not None and reads.due == taken.due:
            _merge(view, taken, reads)
        if taken.lateness:
            sequence = self.counts.sequence = self._numbers.of(taken.due)
            self._deliver(
                RawSlice(sequence, taken.start_ns, view.table, taken.fast, slow, taken.lateness)
            )

    def _age_ns(self, taken: NativeSlice) -> int:
        """Return the time since the end of a slice."""
        return self._clock.monotonic() - taken.due - NS_PER_SECOND

    def _newest(self) -> PlanView:
        return self._views[self._number]

    def _record(self, view: PlanView, taken: NativeSlice) -> None:
        """Record late ticks and read times, and pass the values to the sources that observe."""
        counts, before = taken.counts, self._counts_before
        skipped = before.skipped_slices + counts.skipped_slices + counts.overruns
        lost = skipped - self.counts.skipped_slices
        if lost:
            log.warning("no sample for %d s: the host or this process stood still", lost)
        self.counts.late_ticks = before.late_ticks + counts.late_ticks
        self.counts.missed_ticks = before.missed_ticks + counts.missed_ticks
        self.counts.skipped_slices += lost
        # Recording the time of every read costs more than the reads: do it for some slices after
        # a long read, where a source may have to move to a slower lane, and seldom otherwise.
        if taken.flagged or taken.longest > FAST_MEDIAN_NS or taken.longest_slow > _SLOW_LONG_NS:
            self._recording = SLOW_SAMPLES
        self._recording = max(0, self._recording - 1)
        if self._recording or self.counts.sequence % _RECORD_EVERY == 0:
            record_reads(view, taken)
        if taken.lateness:
            self._notify_observers(view, taken)

    def _notify_observers(self, view: PlanView, taken: NativeSlice) -> None:
        """Pass the values read last to the sources that observe them, if columns still match."""
        if not view.observed:
            return
        newest = taken.fast[-len(view.table.fast) :]
        for part, fast in view.observed:
            feed, observer = part.feed, part.feed.observer
            if observer is None or part.owner < 0:
                continue
            if part.channels is feed.table_columns and not feed.changed:
                columns = slice(part.column, part.column + len(part.channels))
                observer.observe(
                    latest(taken.fast, newest, columns) if fast else taken.slow[columns].tolist()
                )

    def _relearn(self, view: PlanView, taken: NativeSlice) -> dict[Feed, Values]:
        """Read the sources whose plans failed or are stale by their own code; return the values.

        Their code learns the new layout.
        """
        values = {}
        for part in view.parts if taken.flagged else view.polled:
            if part.feed.broken:
                continue
            if part.owner < 0:
                if not part.channels:  # no columns so far: there may be some now
                    part.feed.read()
                continue
            flags = taken.flags[part.owner]
            if flags & GROWN:
                self._planner.grow(part.feed)
            if flags or part.feed.is_stale():
                values[part.feed] = part.feed.read()
        return values

    def _slow_row(
        self, view: PlanView, taken: NativeSlice, learned: dict[Feed, Values]
    ) -> memoryview[int]:
        """Return the slow row, completed by the values that the C thread did not read."""
        row = taken.slow
        if self._age_ns(taken) <= _TOO_LATE_NS:
            self._put_python_values(row, view, taken, learned)
        now = self._clock.monotonic()
        for rare, channels, column in view.rare:
            if channels and rare.table_columns is channels:
                put(row, column, rare.latest_values(now))
        return row

    def _put_python_values(
        self,
        row: memoryview[int],
        view: PlanView,
        taken: NativeSlice,
        learned: dict[Feed, Values],
    ) -> None:
        """Write the values of sources that their own code reads."""
        whole = len(taken.lateness) == self._ticks
        for part in view.read_by_python:
            if part.feed.table_columns is part.channels:
                values = part.feed.read()
                put(row, part.column, values if whole else _levels(part.channels, values))
        for part in view.parts[view.fast :] if learned else ():
            failed = part.feed in learned and taken.flags[part.owner]
            if failed and part.channels and part.feed.table_columns is part.channels:
                put(row, part.column, learned[part.feed])

    def _update_plan(self, ticker: Ticker) -> None:
        """Pass a new plan to the C thread where the table or a source's plan has changed."""
        self._update_table()
        self._adjust_lanes()
        newest = self._newest()
        current = (self._slowdown_factor(), self._broken())
        same = self.table is newest.table and current == (newest.slowdown_factor, newest.broken)
        hidden = self._hidden()
        # columns hidden in their first slice are shown afterwards: the plan is the same
        if same and hidden != newest.hidden:
            self._views[self._number] = replace(newest, hidden=hidden)
        learned, self._learned = self._learned, False
        # scans change only after a source was read by its own code
        if same and not (learned and self._planner.scans() != newest.scans):
            return
        plan, view = self._plan()
        self._number = ticker.swap(plan)
        self._views[self._number] = view

    def _plan(self) -> tuple[NativePlan, PlanView]:
        return self._planner.plan(
            self.table, self._hidden(), self._slowdown_factor(), self._broken()
        )

    def _hidden(self) -> dict[Feed, tuple[int, ...]]:
        return {
            feed: tuple(feed.observer.hidden_columns())
            for feed in self._observing
            if feed.observer is not None and feed.lane is not Lane.RARE and not feed.changed
        }

    def _broken(self) -> frozenset[Feed]:
        return frozenset(feed for feed in self.feeds if feed.broken)

    def _slowdown_factor(self) -> int:
        """Return how many times less often than normal idle files are read."""
        return max((source.slowdown_factor for source in self._throttled), default=1)


def _levels(channels: Sequence[Channel], values: Values) -> Values:
    """Return the values without those of counters.

    The last slice may end early: the increment of a counter that is read then covers less than the
    second that a slow counter stands for.
    """
    return [
        None if channel.kind is Kind.COUNTER else value
        for channel, value in zip(channels, values, strict=True)
    ]


def _merge(view: PlanView, taken: NativeSlice, reads: _PythonReads) -> None:
    """Write what Python read tick by tick into the rows, where the columns still match."""
    width = len(view.table.fast)
    for part in view.parts[: view.fast]:
        if part.feed.table_columns is not part.channels:
            continue
        for tick, values in enumerate(reads.rows.get(part.feed, ())):
            index = tick * width + part.column
            # write only the cells that the C thread left empty
            if tick < len(taken.lateness) and taken.fast[index] == MISSING:
                put(taken.fast, index, values)
