"""Verdicts of the paper's three detectors, shown as ``methods`` of our findings.

Their reference are the windows of the warm-up.  Fitting takes a hundred times as long as the rest
of a node's second, and scoring a window several times as long.  So the warm-up is kept as received,
and used when a finding is explained, or every second if the detectors decide (``--mode paper``).
Fitted detectors are dropped when nothing was explained for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.channel_index import indices_by_metric
from reveal_analyzer.derive.columns import DEFAULT_MEMORY
from reveal_analyzer.detectors.paper_detectors import MIN_WINDOWS
from reveal_analyzer.paper.detector import (
    PaperDetector,
    PaperOptions,
    PaperVerdict,
    SampleUnits,
)
from reveal_analyzer.paper.fit_budget import FitBudget
from reveal_analyzer.paper.windows import (
    ChannelLayout,
    DecodedSlice,
    UndecodedSlice,
    WarmupSlices,
    WindowRing,
)
from reveal_contract import catalogue, ledger, wire
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Capacity, Harm, Kind, Scope
from reveal_contract.runtime.malloc_trim import give_back
from reveal_contract.wire import Message

_MOST_WINDOWS = 300
UNUSED_SLICES = 120


class WindowSettings(NamedTuple):
    """Length and distance of windows, how long they are learned, and what counts as abnormal.

    ``contamination`` is the share of healthy windows over a detector's threshold.
    """

    window_s: int = 3
    stride_s: int = 1
    warmup_s: int = 60
    contamination: float = 0.01

    @property
    def in_warmup(self) -> int:
        """Windows of the warm-up, which takes longer where these are too few to learn from."""
        whole = (self.warmup_s - self.window_s) // self.stride_s + 1
        return max(MIN_WINDOWS, whole)

    @property
    def reference(self) -> int:
        """Windows that are learned."""
        return -(-self.in_warmup // self._every)

    def warmup(self) -> WarmupSlices:
        """Return an empty warm-up: of a long one, every so many windows are learned."""
        return WarmupSlices(self.reference, self.window_s, self._every)

    def options(self) -> PaperOptions:
        """Return the settings of the detectors."""
        return PaperOptions(
            warmup_windows=self.reference,
            contamination=self.contamination,
            overlap=-(-self.window_s // (self.stride_s * self._every)) - 1,
        )

    @property
    def _every(self) -> int:
        return -(-self.in_warmup // _MOST_WINDOWS)


class PaperMethods:
    """Windows of one node's fast channels and the verdicts on them.

    ``budget`` decides when detectors may be fitted; None: whenever a verdict is requested.
    """

    def __init__(
        self,
        windows: WindowSettings,
        leave_out: Callable[[Channel], bool] | None = None,
        budget: FitBudget | None = None,
    ) -> None:
        self._budget = budget
        self._leave_out = leave_out
        self._windows = windows
        self._ring = WindowRing(windows.window_s, windows.stride_s)
        self._warmup = windows.warmup()
        self._channels: list[Channel] | None = None
        self._table: ChannelTable | None = None
        self._tick_us = 0
        self._detector: PaperDetector | None = None
        self._now_ns = 0
        self._unused = 0
        self._verdict: PaperVerdict | None = None

    def push(self, message: Message, table: ChannelTable, data: bytes = b"") -> None:
        """Add a slice; those of the warm-up are kept.

        ``data`` is the encoded message, if it is available.  Keeping it instead of the numbers uses
        30 times less cache in an analyzer of thousands of nodes.
        """
        self._adopt_period(message.tick_us)
        self._adopt_table(table)
        item = self._slice(message, data)
        self._ring.push(item)
        self._now_ns = message.start_ns
        if self._ring.complete:
            self._verdict = None
        self._unused += 1
        if self._unused > UNUSED_SLICES:
            self._detector = None
        if not self._warmup.complete:
            self._warmup.add(item, window=self._ring.complete)

    def reset(self) -> None:
        """Start again after a gap, as no window may span it."""
        self._ring.reset()
        self._verdict = None
        if not self._warmup.complete:
            self._warmup.gap()

    @property
    def ready(self) -> bool:
        """Whether detectors are fitted, so that every whole window has a verdict."""
        return self._detector is not None

    @property
    def window_ends(self) -> bool:
        """Whether a window ends with the last slice."""
        return self._ring.complete

    def verdict(self) -> PaperVerdict | None:
        """Return the verdict on the window that ended last.

        None without a reference, or if it was not asked for when the window ended.
        """
        if self._verdict is None and self._ring.complete and self._warmup.complete:
            self._detector = self._detector or self._fit()
            if self._detector is not None:
                self._verdict = self._detector.judge(self._ring.window())
        self._unused = 0
        return self._verdict

    def _fit(self) -> PaperDetector | None:
        """Fit the detectors; return None if other nodes' fits come first."""
        if self._budget is None:
            return self._fitted()
        return self._budget.request(self._now_ns, self._fitted)

    def _adopt_period(self, tick_us: int) -> None:
        """Learn again after another sample period: features of other samples do not compare."""
        if self._tick_us and tick_us != self._tick_us:
            self._detector, self._verdict = None, None
            self._warmup = self._windows.warmup()
            self._ring.reset()
        self._tick_us = tick_us

    def _slice(self, message: Message, data: bytes) -> DecodedSlice | UndecodedSlice:
        if data:
            return UndecodedSlice(data, self._gauges, len(message.fast), self._layout)
        return DecodedSlice(message.fast, message.fast_missing, self._layout)

    def _adopt_table(self, table: ChannelTable) -> None:
        """Find the channels of the reference in another table; absent ones read as missing."""
        if table is self._table:
            return
        self._table, self._gauges = table, wire.gauges(table)
        if self._channels is None:
            indices = self._used(table.fast)
            self._channels = [table.fast[index] for index in indices]
        else:
            index_of = {(c.metric, c.instance): index for index, c in enumerate(table.fast)}
            gone = len(table.fast)
            indices = [index_of.get((c.metric, c.instance), gone) for c in self._channels]
        scales = [c.scale for c in table.fast] + [1.0]
        self._layout = ChannelLayout(
            np.array(indices, np.intp), np.array([scales[index] for index in indices])
        )

    def _fitted(self) -> PaperDetector:
        """Return detectors fitted on the warm-up; the result is the same each time."""
        assert self._channels is not None
        rows = [catalogue.find(c.metric) for c in self._channels]
        windows = self._warmup.windows(self._windows.stride_s)
        first = next(windows)
        detector = PaperDetector(
            [c.label for c in self._channels],
            [row.subsystem for row in rows],
            roles=[row.role for row in rows],
            kinds=[c.kind for c in self._channels],
            samples=sample_units(self._channels, first, self._tick_us / 1e6),
            options=self._windows.options(),
        )
        for window in chain([first], windows):
            detector.learn(window)
        give_back()
        return detector

    def _used(self, channels: Sequence[Channel]) -> list[int]:
        """Return the indices of the channels that windows have, ascending."""
        leave_out = self._leave_out
        found = [
            index
            for metric, indices in indices_by_metric(channels).items()
            if _is_used(metric)
            for index in indices
            if not (leave_out and leave_out(channels[index]))
        ]
        return sorted(found)


def _is_used(metric: str) -> bool:
    try:
        row = catalogue.find(metric)
    except catalogue.UnknownMetricError:
        return False
    return row.source not in ("own", ledger.SOURCE) and row.scope is not Scope.SUBJECT


def sample_units(channels: Sequence[Channel], window: Floats, tick_s: float) -> SampleUnits:
    """Return units of the samples of channels, and the amounts that begin to matter in them.

    Of activity no amount matters by itself: nearly all metrics of a healthy host stand still for a
    minute, and move later.
    """
    rows = [catalogue.find(c.metric) for c in channels]
    memory = [
        float(window[-1, index])
        for index, row in enumerate(rows)
        if row.name == "memory.mem_total" and window[-1, index] > 0
    ]
    cpus = sum(1 for c in channels if c.metric == "cpu.user" and c.instance)
    sizes = {
        Capacity.ABSOLUTE: 1.0,
        Capacity.MEMORY: memory[0] if memory else DEFAULT_MEMORY,
        Capacity.CPUS: float(max(cpus, 1)),
    }
    amounts = np.array(
        [np.inf if row.harm is Harm.NEITHER else row.quantum * sizes[row.capacity] for row in rows]
    )
    counters = np.array([c.kind is Kind.COUNTER for c in channels], np.bool_)
    amounts[counters] *= tick_s
    return SampleUnits(tick_s, [row.unit for row in rows], amounts)
