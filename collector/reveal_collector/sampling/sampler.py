"""The tick thread: reads the lanes on an absolute grid and hands over one raw slice a second."""

from __future__ import annotations

import logging
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from reveal_collector.kernel.scheduling import prefer_real_time
from reveal_collector.readers.raw_slice import MISSING, RawSlice, gather
from reveal_collector.readers.source import Source
from reveal_collector.sampling.clock import Clock, SystemClock, phase_ns
from reveal_collector.sampling.feed import SAMPLES, Feed, RareFeed
from reveal_collector.sampling.rare_lane import RareLane
from reveal_contract.channels import ChannelTable
from reveal_contract.metric import Lane
from reveal_contract.time_units import NS_PER_SECOND

log = logging.getLogger(__name__)

_MOST_LATE_US = 2**31 - 1


@dataclass
class SamplerCounts:
    """What the tick thread knows about its own punctuality since it started."""

    late_ticks: int = 0  # over a tenth of the period behind
    missed_ticks: int = 0  # over a whole period behind: recorded as missing
    skipped_slices: int = 0  # the host stood still for whole slices
    channels: int = 0
    sequence: int = 0


class Sampler:
    """Runs the lanes: fast feeds every tick, slow ones staggered over the slice, rare ones held.

    A slice's sequence is its number on the monotonic grid since boot: it grows over restarts
    of the collector, and a standstill shows as a gap.
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
        self._granted: dict[str, Lane] = {}
        self._deliver = deliver
        self._period = period_ns
        self._ticks = NS_PER_SECOND // period_ns
        self._phase = phase_ns(node, period_ns)
        self._clock = clock or SystemClock()
        feeds = [Feed(source) for source in sources]
        feeds += [Feed(source, absent=True) for source in absent]
        self.feeds = feeds
        self._fast = [feed for feed in feeds if feed.lane is Lane.FAST]
        self._slow = [feed for feed in feeds if feed.lane is Lane.SLOW]
        self._rare = [RareFeed(feed) for feed in feeds if feed.lane is Lane.RARE]
        self.rare_lane = RareLane(self._rare, feeds)
        self._table = self._build_table()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reveal-tick", daemon=True)

    @property
    def table(self) -> ChannelTable:
        """The channel table in use."""
        return self._table

    def start(self) -> None:
        self.rare_lane.start()
        self._thread.start()

    def stop(self, timeout: float = 1.0) -> None:
        """Hand over what the current slice holds so far and end, within a tick."""
        self._stopping.set()
        self.rare_lane.stop()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        self.not_real_time = prefer_real_time() or ""
        if self.not_real_time:
            log.warning("%s", self.not_real_time)
        due = self.first_due()
        self._stopping.wait((due - self._clock.monotonic() - self._period) / NS_PER_SECOND)
        while not self._stopping.is_set():
            due = self.take_slice(due)

    def first_due(self) -> int:
        """The next beginning of a slice on this node's grid (monotonic ns)."""
        now = self._clock.monotonic()
        return now - (now - self._phase) % NS_PER_SECOND + NS_PER_SECOND

    def take_slice(self, due: int) -> int:
        """Read and hand over the slice that begins at ``due``; gives the next one's beginning."""
        due = self._past_standstill(due)
        self._clock.sleep_until(due)
        self._renew_table()
        start_ns = self._clock.wall() - max(0, self._clock.monotonic() - due)
        rows = array("q")
        blank = [MISSING] * len(self._table.fast)
        slow: dict[Feed, Sequence[int | None]] = {}
        lateness: list[int] = []
        waiting = list(self._slow)
        for tick in range(self._ticks):
            self._clock.sleep_until(due + tick * self._period)
            if self._stopping.is_set():
                break
            if self._is_missed(due + tick * self._period, lateness):
                rows.extend(blank)
                continue
            for feed in self._fast:
                gather(rows, feed.read())
            while waiting and self._slot(len(self._slow) - len(waiting)) <= tick:
                feed = waiting.pop(0)
                slow[feed] = feed.read()
        if lateness:
            self._hand_over(due, start_ns, rows, slow, lateness)
        self._settle_lanes()
        return due + NS_PER_SECOND

    def _past_standstill(self, due: int) -> int:
        """Skip whole slices that went by (a stopped guest, a debugger): a gap, not blank rows."""
        behind = (self._clock.monotonic() - due) // NS_PER_SECOND
        if behind <= 0:
            return due
        self.counts.skipped_slices += behind
        log.warning("%d s went by without a sample: the host or this process stood still", behind)
        return due + behind * NS_PER_SECOND

    def _is_missed(self, due: int, lateness: list[int]) -> bool:
        late = max(0, self._clock.monotonic() - due)
        lateness.append(min(late // 1000, _MOST_LATE_US))
        if late * 10 > self._period:
            self.counts.late_ticks += 1
        if late < self._period:
            return False
        self.counts.missed_ticks += 1
        return True

    def _slot(self, place: int) -> int:
        """The tick at which the slow feed at ``place`` is read: spread over the slice."""
        return place * self._ticks // max(1, len(self._slow))

    def _hand_over(
        self,
        due: int,
        start_ns: int,
        rows: array[int],
        slow: dict[Feed, Sequence[int | None]],
        lateness: list[int],
    ) -> None:
        row = array("q")
        for feed in self._slow:
            gather(row, slow.get(feed, feed.blank))
        for rare in self._rare:
            gather(row, rare.take())
        self.counts.sequence = (due - self._phase) // NS_PER_SECOND
        self._deliver(RawSlice(self.counts.sequence, start_ns, self._table, rows, row, lateness))

    def _renew_table(self) -> None:
        """Between two slices: take over what sources learned since."""
        changed = [  # as ``changed`` says; asked of all each second
            feed for feed in (*self._fast, *self._slow)
            if feed.columns is not feed.shown and not feed.broken
        ]  # fmt: skip
        rare = [held for held in self._rare if held.changed]
        for feed in changed:
            feed.show()
        for held in rare:
            held.show()
        if changed or rare:
            self._table = self._build_table()

    def _build_table(self) -> ChannelTable:
        slow = [feed.shown for feed in self._slow] + [held.shown for held in self._rare]
        table = ChannelTable(
            tuple(channel for feed in self._fast for channel in feed.shown),
            tuple(channel for shown in slow for channel in shown),
        )
        self.counts.channels = len(table.fast) + len(table.slow)
        return table

    def grant(self, lanes: Mapping[str, Lane]) -> None:
        """The fastest lanes these sources may have, from the next slice on; from any thread."""
        self._granted = dict(lanes)

    def _settle_lanes(self) -> None:
        """Put sources into the lanes that their own cost and the CPU budget allow."""
        for feed in (*self._fast, *self._slow):
            if feed.since_long < SAMPLES and (lane := feed.judge()):
                feed.demote(lane)
        granted = self._granted
        wanted = {
            feed: slower(feed.home, granted.get(feed.name)) for feed in self.feeds
            if feed.home is not feed.lane or feed.name in granted
        }  # fmt: skip
        due = [(feed, lane) for feed, lane in wanted.items() if lane is not feed.lane]
        moved = [feed for feed, lane in due if self._moved(feed, lane)]
        if moved:  # all in their old order, so that who is back makes the old table
            self._fast.sort(key=self.feeds.index)
            self._slow.sort(key=self.feeds.index)
            self._rare.sort(key=lambda rare: self.feeds.index(rare.feed))
            self._table = self._build_table()

    def _moved(self, feed: Feed, lane: Lane) -> bool:
        """Whether it could be moved now: the rare lane may be reading it."""
        if feed.lane is Lane.RARE:
            held = next(rare for rare in self._rare if rare.feed is feed)
            if not self.rare_lane.release(held):
                return False
            self._rare.remove(held)
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


def slower(one: Lane, other: Lane | None) -> Lane:
    """The slower of two lanes of sources; None asks for nothing."""
    order = (Lane.FAST, Lane.SLOW, Lane.RARE)
    return max(one, other or one, key=order.index)
