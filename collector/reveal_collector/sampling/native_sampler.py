"""The sampler whose ticks are a thread in C: Python wakes once a second.

The thread reads all files that have plans.  What has none is read here: slow sources when a
slice is complete, fast ones (a site's own, mostly) by ticking along with the thread.  A source
whose plan failed is read once by its own code, which learns anew, and the next plan is handed
to the thread before its next slice begins.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from reveal_collector.kernel.scheduling import prefer_real_time
from reveal_collector.native import load
from reveal_collector.native.scanner import (
    EVERY_TICK,
    GROWN,
    NativePlan,
    NativeSlice,
    RowLayout,
    ScanEntry,
    Ticker,
)
from reveal_collector.readers.plan import BACK_OFF, QUIET, FileScan, WakingSource, scans_of
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
from reveal_collector.sampling.native_view import (
    PlanView,
    SourceColumns,
    hide,
    latest,
    note_spent,
    put,
)
from reveal_collector.sampling.sampler import Sampler
from reveal_contract.metric import Lane
from reveal_contract.time_units import NS_PER_SECOND

log = logging.getLogger(__name__)

_MOST_ROOM = 1 << 12
_NOTE_SLICES = 10  # how often the time of reads is noted where none takes long
_GATES_A_TICK = 16  # some 0.4 ms
_SLOW_LONG_NS = SLOW_MEDIAN_NS // 4  # in one tick, of those a source's files are spread over


@dataclass
class _Along:
    """Fast sources read by Python during the slice that began at ``due``."""

    due: int
    rows: dict[Feed, list[Values]] = field(default_factory=dict)


def make_sampler(
    node: str,
    sources: Sequence[Source],
    deliver: Callable[[RawSlice], None],
    period_ns: int,
    absent: Sequence[Source] = (),
) -> Sampler:
    """The sampler in C where the library is there, else the one in Python; says which."""
    if load().library is None:
        log.warning("%s", load().unavailable)
        made = Sampler(node, sources, deliver, period_ns, absent=absent)
        made.not_native = load().unavailable
        return made
    return NativeSampler(node, sources, deliver, period_ns, absent=absent)


class NativeSampler(Sampler):
    """See the module; the interface is that of ``Sampler``."""

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
        self._room: dict[Feed, int] = {}
        all_ = (*sources, *absent)
        self._thrifty = [source for source in all_ if isinstance(source, ThrottledSource)]
        self._watching = [feed for feed in self.feeds if feed.watching is not None]
        self._views: dict[int, PlanView] = {}
        self._ticker: Ticker | None = None
        self._number = 0
        self._learned = False
        self._noting = SLOW_SAMPLES  # slices in which every read's time is noted

    def start(self) -> None:
        self.rare_lane.start()
        scan, view = self._plan()
        self._ticker = Ticker(scan, self._phase, self._period)
        self._number = 1
        self._views[self._number] = view
        for feed in self.feeds:
            if isinstance(feed.source, WakingSource):
                feed.source.call_when_stale(self._ticker.wake)
        self.not_real_time = self._ticker.not_real_time
        if self.not_real_time:
            log.warning("%s", self.not_real_time)
        self._thread.start()

    def stop(self, timeout: float = 1.0) -> None:
        self._stopping.set()
        if self._ticker is not None:
            self._ticker.stop()
        super().stop(timeout)
        if self._ticker is not None and not self._thread.is_alive():
            self._ticker.close()
            self._ticker = None

    def _run(self) -> None:
        prefer_real_time()  # what a plan lost is lost until this thread has made another
        while not self._stopping.is_set():
            self._take(self._tick_along())
        while self._take(None):
            pass

    def _tick_along(self) -> _Along | None:
        """Read the fast sources that have no plan, tick by tick; None where there are none."""
        feeds = [part.feed for part in self._newest().parts[: self._newest().fast]
                 if part.owner < 0 and part.shown and not part.feed.broken]  # fmt: skip
        if not feeds:
            return None
        along = _Along(self.first_due(), {feed: [] for feed in feeds})
        for tick in range(self._ticks):
            ahead = along.due + tick * self._period - self._clock.monotonic()
            if self._stopping.wait(max(0, ahead) / NS_PER_SECOND):
                break
            for feed in feeds:
                along.rows[feed].append(feed.read())
            self._read_new()
        return along

    def _next(self, ticker: Ticker) -> NativeSlice | None:
        """The next finished slice; none after the last one of all.

        Woken before it is there, what is new is read tick by tick until its columns are shown.
        """
        patience = 2 * NS_PER_SECOND
        while True:
            taken = ticker.wait(patience)
            if taken is not None or self._stopping.is_set():
                return taken
            patience = self._period if self._read_new() else 2 * NS_PER_SECOND

    def _read_new(self) -> bool:
        """Whether a source has columns that no plan reads yet; they are read now."""
        feeds = [feed for feed in self._fast if not feed.broken]
        for feed in feeds:
            if feed.changed or (feed.stale and feed.stale()):
                feed.read()
                self._learned = True
        return any(feed.changed for feed in feeds)

    def _take(self, along: _Along | None) -> bool:
        """Wait for a slice, hand it over, learn what its files say; whether there was one."""
        ticker = self._ticker
        taken = self._next(ticker) if ticker is not None else None
        if ticker is None or taken is None:
            return False
        for old in [number for number in self._views if number < taken.plan]:
            del self._views[old]
        view = self._views[taken.plan]
        self._note(view, taken)
        learned = self._look_after(view, taken)
        self._learned |= bool(learned)
        slow = self._slow_row(view, taken, learned)
        hide(view, taken)
        if along is not None and along.due == taken.due:
            _merge(view, taken, along)
        if taken.lateness:
            sequence = (taken.due - self._phase) // NS_PER_SECOND
            self.counts.sequence = sequence
            self._deliver(
                RawSlice(sequence, taken.start_ns, view.table, taken.fast, slow, taken.lateness)
            )
        if not self._stopping.is_set():
            self._renew(ticker)
        return True

    def _newest(self) -> PlanView:
        return self._views[self._number]

    def _note(self, view: PlanView, taken: NativeSlice) -> None:
        """Punctuality, and what each source's files took."""
        counts = taken.counts
        lost = counts.skipped_slices + counts.overruns - self.counts.skipped_slices
        if lost:
            log.warning("%d s went by without a sample: the host or this process stood still", lost)
        self.counts.late_ticks, self.counts.missed_ticks = counts.late_ticks, counts.missed_ticks
        self.counts.skipped_slices += lost
        if taken.flagged or taken.longest > FAST_MEDIAN_NS or taken.longest_slow > _SLOW_LONG_NS:
            self._noting = SLOW_SAMPLES
        self._noting = max(0, self._noting - 1)
        if self._noting or self.counts.sequence % _NOTE_SLICES == 0:
            note_spent(view, taken)
        if taken.lateness:
            self._ask_watching(view, taken)

    def _ask_watching(self, view: PlanView, taken: NativeSlice) -> None:
        """Tell sources what was read of them last, if it is still of their columns."""
        if not view.watched:
            return
        newest = taken.fast[-len(view.table.fast) :]
        for part, fast in view.watched:
            feed, watching = part.feed, part.feed.watching
            if watching is None or part.owner < 0:
                continue
            if part.shown is feed.shown and not feed.changed:
                columns = slice(part.column, part.column + len(part.shown))
                watching.observe(
                    latest(taken.fast, newest, columns) if fast else taken.slow[columns].tolist()
                )

    def _look_after(self, view: PlanView, taken: NativeSlice) -> dict[Feed, Values]:
        """Let sources learn whose plans failed, or who know of something a plan cannot see."""
        values = {}
        for part in view.parts if taken.flagged else view.asked:
            if part.feed.broken:
                continue
            if part.owner < 0:
                if not part.shown:  # nothing to read along with the ticks: perhaps there is now
                    part.feed.read()
                continue
            flags = taken.flags[part.owner]
            if flags & GROWN:
                self._room[part.feed] = min(4 * self._room.get(part.feed, 1), _MOST_ROOM)
            if flags or (part.feed.stale and part.feed.stale()):
                values[part.feed] = part.feed.read()
        return values

    def _slow_row(
        self, view: PlanView, taken: NativeSlice, learned: dict[Feed, Values]
    ) -> memoryview[int]:
        row = taken.slow
        for part in view.read_here:
            if part.feed.shown is part.shown:
                put(row, part.column, part.feed.read())
        for part in view.parts[view.fast :] if learned else ():
            failed = part.feed in learned and taken.flags[part.owner]
            if failed and part.shown and part.feed.shown is part.shown:
                put(row, part.column, learned[part.feed])
        for rare, shown, column in view.rare:
            if shown and rare.shown is shown:
                put(row, column, rare.take())
        return row

    def _renew(self, ticker: Ticker) -> None:
        """Another table or other plans: hand them to the thread, for its next slice."""
        self._renew_table()
        self._settle_lanes()
        newest = self._newest()
        others = (self._thrift(), self._broken())
        same = self.table is newest.table and others == (newest.slowdown_factor, newest.broken)
        hidden = self._hidden()
        if same and hidden != newest.hidden:  # hidden in a first slice: shown by the same plan
            self._views[self._number] = replace(newest, hidden=hidden)
        learned, self._learned = self._learned, False
        # plans are others only once a source was read by its own code
        if same and not (learned and self._scans() != newest.scans):
            return
        scan, view = self._plan()
        self._number = ticker.swap(scan)
        self._views[self._number] = view

    def _scans(self) -> dict[Feed, Sequence[FileScan] | None]:
        """The plans of every source that has them and is not broken."""
        return {
            feed: None if feed.broken else _scans(feed, self._room.get(feed, 1))
            for feed in (*self._fast, *self._slow)
        }

    def _plan(self) -> tuple[NativePlan, PlanView]:
        scans = self._scans()
        entries: list[ScanEntry] = []
        parts = self._lay_out(self._fast, scans, entries)
        fast = len(parts)
        parts += self._lay_out(self._slow, scans, entries)
        column = sum(len(part.shown) for part in parts[fast:])
        rare = []
        for held in self._rare:
            rare.append((held, held.shown, column))
            column += len(held.shown)
        slowdown_factor = self._thrift()
        hidden = self._hidden()
        view = PlanView(
            self.table,
            tuple(parts),
            fast,
            tuple(rare),
            scans,
            hidden,
            slowdown_factor,
            self._broken(),
        )
        owners = 1 + max((part.owner for part in parts), default=-1)
        layout = RowLayout(
            len(self.table.fast), len(self.table.slow), owners, QUIET, BACK_OFF * slowdown_factor
        )
        return NativePlan(sorted(entries, key=lambda entry: entry.slot), layout), view

    def _hidden(self) -> dict[Feed, tuple[int, ...]]:
        return {
            feed: tuple(feed.watching.hidden_columns())
            for feed in self._watching
            if feed.watching is not None and feed.lane is not Lane.RARE and not feed.changed
        }

    def _broken(self) -> frozenset[Feed]:
        return frozenset(feed for feed in self.feeds if feed.broken)

    def _thrift(self) -> int:
        """How much less often than usual resting files are looked at, to keep the budget."""
        return max((source.slowdown_factor for source in self._thrifty), default=1)

    def _lay_out(
        self,
        feeds: Sequence[Feed],
        scans: dict[Feed, Sequence[FileScan] | None],
        entries: list[ScanEntry],
    ) -> list[SourceColumns]:
        """The columns of one lane, source by source; adds what the thread reads to ``entries``."""
        parts, column = [], 0
        owners = 1 + max((entry.owner for entry in entries), default=-1)
        for place, feed in enumerate(feeds):
            owner, found = -1, scans[feed]
            if found is not None:
                owner, owners = owners, owners + 1
                made = ScanEntry(owner, found, column, EVERY_TICK, self._room.get(feed, 1))
                entries += [made] if feeds is self._fast else self._spread(made, self._slot(place))
            parts.append(SourceColumns(feed, feed.shown, column, owner))
            column += len(feed.shown)
        return parts

    def _spread(self, entry: ScanEntry, slot: int) -> Iterator[ScanEntry]:
        """Slow files from one tick on, spread over several where they are many cgroups'.

        One by one they would cost more: the kernel sums up the counters of a tree for the first
        that asks, and the next finds them fresh.
        """
        column = entry.column
        groups = groupby(entry.scans, lambda scan: scan.gate and scan.gate.key)
        for number, (_, group) in enumerate(groups):
            scans = list(group)
            at = (slot + number // _GATES_A_TICK) % self._ticks
            yield replace(entry, scans=scans, column=column, slot=at)
            column += sum(scan.plan.width for scan in scans)


def _scans(feed: Feed, room: int) -> Sequence[FileScan] | None:
    """The plans of a source, if they give just the columns it shows."""
    found = scans_of(feed.source)
    width = sum(scan.plan.width for scan in found or ())
    return found if found is not None and width == len(feed.shown) else None


def _merge(view: PlanView, taken: NativeSlice, along: _Along) -> None:
    """What Python read tick by tick goes into the rows, where the columns are still the same."""
    width = len(view.table.fast)
    for part in view.parts[: view.fast]:
        if part.feed.shown is not part.shown:
            continue
        for tick, values in enumerate(along.rows.get(part.feed, ())):
            at = tick * width + part.column
            if tick < len(taken.lateness) and taken.fast[at] == MISSING:
                put(taken.fast, at, values)
