"""The tick thread: reads the lanes on an absolute grid and delivers one raw slice a second."""

from __future__ import annotations

import logging
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from reveal_collector.kernel_interfaces.scheduling import prefer_real_time
from reveal_collector.readers.raw_slice import MISSING, RawSlice, gather
from reveal_collector.readers.source import Source
from reveal_collector.sampling.clock import Clock, SliceNumbers, SystemClock, phase_ns
from reveal_collector.sampling.feed import SAMPLES, Feed, ThreadReplaced
from reveal_collector.sampling.rare_feed import RareFeed
from reveal_collector.sampling.rare_lane import RareLane
from reveal_collector.sampling.tick_watch import TickWatch
from reveal_contract.channels import ChannelTable
from reveal_contract.metric import Lane
from reveal_contract.time_units import NS_PER_SECOND

log = logging.getLogger(__name__)

_MAX_LATENESS_US = 2**31 - 1
_LATE_SOURCES = 3  # with long reads: the host delays them, and none of them is too slow


@dataclass
class SamplerCounts:
    """Counts of the tick thread since its start, and the current sizes."""

    late_ticks: int = 0  # more than a tenth of the period late
    missed_ticks: int = 0  # at least a whole period late: recorded as missing
    skipped_slices: int = 0  # whole slices without a tick: the host stood still
    channels: int = 0
    sequence: int = 0


@dataclass
class _SliceRows:
    """The readings of a slice while its ticks are read."""

    fast: array[int]
    slow: dict[Feed, Sequence[int | None]]
    lateness: list[int]


class Sampler:
    """Reads fast feeds at every tick and slow feeds spread over the slice.

    The rare lane reads its feeds in a thread of its own; the sampler takes their last values while
    they are recent.
    The sequence of a slice is its number on the monotonic grid since boot: it increases over
    restarts of the collector, and a standstill or a suspension of the host shows as a gap.
    """

    def __init__(
        self,
        node: str,
        sources: Sequence[Source],
        deliver: Callable[[RawSlice], None],
        period_ns: int = NS_PER_SECOND // 10,
        clock: Clock | None = None,
        absent: Sequence[Source] = (),
    ) -> None:
        self.counts = SamplerCounts()
        self.not_real_time = ""
        self.not_native = ""
        self._lane_limits: dict[str, Lane] = {}
        self._deliver = deliver
        self._period = period_ns
        self._ticks = NS_PER_SECOND // period_ns
        self._phase = phase_ns(node, period_ns)
        self._clock = clock or SystemClock()
        self._numbers = SliceNumbers(self._clock, self._phase)
        feeds = [Feed(source) for source in sources]
        feeds += [Feed(source, absent=True) for source in absent]
        self.feeds = feeds
        self._fast = [feed for feed in feeds if feed.lane is Lane.FAST]
        self._slow = [feed for feed in feeds if feed.lane is Lane.SLOW]
        self._rare = [RareFeed(feed) for feed in feeds if feed.lane is Lane.RARE]
        self.rare_lane = RareLane(self._rare, feeds, self._clock.monotonic)
        self._table = self._build_table()
        self._reading_due = 0  # start of the slice that is read now
        self._stopping = threading.Event()
        self.tick_watch = TickWatch(feeds, self._replace_thread)
        self._thread = self._new_thread()

    @property
    def table(self) -> ChannelTable:
        """The channel table in use."""
        return self._table

    def start(self) -> None:
        """Start the rare lane, the tick thread and its watch."""
        self.rare_lane.start()
        self._thread.start()
        self.tick_watch.start()

    def stop(self, timeout: float = 1.0) -> None:
        """Stop within a tick and deliver the part of the current slice that was read."""
        self._stopping.set()
        self.tick_watch.stop()
        self.rare_lane.stop()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _new_thread(self) -> threading.Thread:
        return threading.Thread(target=self._run_until_replaced, name="reveal-tick", daemon=True)

    def _replace_thread(self) -> None:
        """Go on in a new thread where the present one hangs in a source; it ends by itself."""
        if not self._stopping.is_set():
            self._thread = self._new_thread()
            self._thread.start()

    def _run_until_replaced(self) -> None:
        with suppress(ThreadReplaced):
            self._run()

    def _run(self) -> None:
        self.not_real_time = prefer_real_time() or ""
        if self.not_real_time:
            log.warning("%s", self.not_real_time)
        due = self.first_due()
        if self._reading_due:  # the thread before hangs in that slice
            self.counts.skipped_slices += (due - self._reading_due) // NS_PER_SECOND
        self._stopping.wait((due - self._clock.monotonic() - self._period) / NS_PER_SECOND)
        while not self._stopping.is_set():
            due = self.take_slice(due)

    def first_due(self) -> int:
        """Return the next start of a slice on this node's grid (monotonic ns)."""
        now = self._clock.monotonic()
        return now - (now - self._phase) % NS_PER_SECOND + NS_PER_SECOND

    def take_slice(self, due: int) -> int:
        """Read and deliver the slice that starts at ``due``; return the start of the next one."""
        due = self._reading_due = self._skip_standstill(due)
        self._clock.sleep_until(due)
        self._update_table()
        start_ns = self._clock.wall() - max(0, self._clock.monotonic() - due)
        rows = self._read_ticks(due)
        if rows.lateness:
            self._hand_over(due, start_ns, rows)
        self.rare_lane.check()
        self._adjust_lanes()
        return due + NS_PER_SECOND

    def _skip_standstill(self, due: int) -> int:
        """Skip whole slices that passed without a tick (stopped guest, debugger).

        They become a gap in the sequence instead of slices of blank rows.
        """
        behind = (self._clock.monotonic() - due) // NS_PER_SECOND
        if behind <= 0:
            return due
        self.counts.skipped_slices += behind
        log.warning("no sample for %d s: the host or this process stood still", behind)
        return due + behind * NS_PER_SECOND

    def _read_ticks(self, due: int) -> _SliceRows:
        """Read the ticks of one slice; fewer if the sampler stops meanwhile."""
        rows = _SliceRows(array("q"), {}, [])
        blank = [MISSING] * len(self._table.fast)
        waiting = list(self._slow)
        for tick in range(self._ticks):
            self._clock.sleep_until(due + tick * self._period)
            if self._stopping.is_set():
                break
            if self._is_missed(due + tick * self._period, rows.lateness):
                # its row stays blank: later readings do not belong to this tick, and reading
                # them at once would delay the next tick, too
                rows.fast.extend(blank)
                continue
            for feed in self._fast:
                gather(rows.fast, feed.read())
            # after a missed tick this also reads the slow feeds of the slots that it skipped
            while waiting and self._slot(len(self._slow) - len(waiting)) <= tick:
                feed = waiting.pop(0)
                rows.slow[feed] = feed.read()
        return rows

    def _is_missed(self, due: int, lateness: list[int]) -> bool:
        late = max(0, self._clock.monotonic() - due)
        lateness.append(min(late // 1000, _MAX_LATENESS_US))
        if late * 10 > self._period:
            self.counts.late_ticks += 1
        if late < self._period:
            return False
        self.counts.missed_ticks += 1
        return True

    def _slot(self, index: int) -> int:
        """Return the tick at which the slow feed of this index is read: spread over the slice."""
        return index * self._ticks // max(1, len(self._slow))

    def _hand_over(self, due: int, start_ns: int, rows: _SliceRows) -> None:
        row = array("q")
        for feed in self._slow:
            gather(row, rows.slow.get(feed, feed.blank))
        now = self._clock.monotonic()
        for rare in self._rare:
            gather(row, rare.latest_values(now))
        sequence = self.counts.sequence = self._numbers.of(due)
        self._deliver(RawSlice(sequence, start_ns, self._table, rows.fast, row, rows.lateness))

    def _update_table(self) -> None:
        """Adopt, between two slices, the columns that sources learned since the last slice."""
        changed = [  # ``feed.changed``, inlined: it is evaluated for all feeds each second
            feed for feed in (*self._fast, *self._slow)
            if feed.columns is not feed.table_columns and not feed.broken
        ]  # fmt: skip
        changed_rare = [rare for rare in self._rare if rare.changed]
        for feed in changed:
            feed.adopt_columns()
        for rare in changed_rare:
            rare.adopt_columns()
        if changed or changed_rare:
            self._table = self._build_table()

    def _build_table(self) -> ChannelTable:
        slow = [feed.table_columns for feed in self._slow]
        slow += [rare.table_columns for rare in self._rare]
        table = ChannelTable(
            tuple(channel for feed in self._fast for channel in feed.table_columns),
            tuple(channel for columns in slow for channel in columns),
        )
        self.counts.channels = len(table.fast) + len(table.slow)
        return table

    def limit_lanes(self, lanes: Mapping[str, Lane]) -> None:
        """Set the fastest lanes allowed to these sources, from the next slice on.

        Other threads may call this.
        """
        self._lane_limits = dict(lanes)

    def _adjust_lanes(self) -> None:
        """Move sources into the lanes that their own cost and the CPU budget allow."""
        now = self._clock.monotonic()
        # a source without a recent long read cannot be too slow for its lane
        late = [f for f in (*self._fast, *self._slow) if f.reads_since_long < SAMPLES]
        preempted = bool(late) and self._is_preempted()
        for feed in late:
            if lane := feed.slower_lane(preempted):
                feed.demote(lane, now)
        for feed in self.feeds:
            feed.return_when_due(now)
        limits = self._lane_limits
        targets = {
            feed: slower(feed.home_lane, limits.get(feed.name)) for feed in self.feeds
            if feed.home_lane is not feed.lane or feed.name in limits
        }  # fmt: skip
        due = [(feed, lane) for feed, lane in targets.items() if lane is not feed.lane]
        moved = [feed for feed, lane in due if self._move(feed, lane)]
        if moved:  # in the original order, so that a source moved back restores the old table
            self._fast.sort(key=self.feeds.index)
            self._slow.sort(key=self.feeds.index)
            self._rare.sort(key=lambda rare: self.feeds.index(rare.feed))
            self._table = self._build_table()

    def _is_preempted(self) -> bool:
        """Return whether the thread had to wait for a CPU: several sources have long reads."""
        return sum(feed.has_long_read for feed in self._fast) >= _LATE_SOURCES

    def _move(self, feed: Feed, lane: Lane) -> bool:
        """Move a feed; return False while the rare lane has not released it."""
        if feed.lane is Lane.RARE:
            rare = next(rare for rare in self._rare if rare.feed is feed)
            if not self.rare_lane.release(rare):
                return False
            self._rare.remove(rare)
        else:
            (self._fast if feed.lane is Lane.FAST else self._slow).remove(feed)
        feed.move(lane)
        if lane is Lane.RARE:
            rare = RareFeed(feed)
            self._rare.append(rare)
            self.rare_lane.add(rare)
        else:
            (self._fast if lane is Lane.FAST else self._slow).append(feed)
        return True


def slower(lane: Lane, limit: Lane | None) -> Lane:
    """Return the slower of two lanes; None is no limit."""
    order = (Lane.FAST, Lane.SLOW, Lane.RARE)
    return max(lane, limit or lane, key=order.index)
