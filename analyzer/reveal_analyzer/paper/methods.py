"""The paper's three detectors beside our own decision: which of them agree with an episode.

Their reference is the warm-up's windows.  To fit on it takes a hundred times what the rest of a
node's second does, to score a window several times that.  So the warm-up is kept as it came and
looked at when there is something to explain, or in each second where the three decide
(``--mode paper``).  What was fitted is let go when nothing was explained for a while.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reveal_analyzer.derive.columns import in_catalogue
from reveal_analyzer.detectors.trio import MIN_WINDOWS
from reveal_analyzer.paper.detector import PaperDetector, PaperOptions, PaperVerdict
from reveal_analyzer.paper.fit_budget import Fits
from reveal_analyzer.paper.windows import Layout, Sealed, Slice, WarmUp, WindowRing
from reveal_contract import catalogue, wire
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Scope
from reveal_contract.runtime.malloc_trim import give_back
from reveal_contract.wire import Message

_MOST_WINDOWS = 300
UNUSED_SLICES = 120


class Methods:
    """Windows of one node's fast channels and the trio's verdicts on them.

    ``fits`` says when it may be fitted; None: whenever a verdict is asked for.
    """

    def __init__(
        self,
        window: int,
        warmup: int,
        leave_out: Callable[[Channel], bool] | None = None,
        fits: Fits | None = None,
    ) -> None:
        self._fits = fits
        self._leave_out = leave_out
        self._window, self._ring = window, WindowRing(window)
        self._learned = min(max(MIN_WINDOWS, warmup - window + 1), _MOST_WINDOWS)
        self._warmup = WarmUp(self._learned)
        self._channels: list[Channel] | None = None
        self._table: ChannelTable | None = None
        self._detector: PaperDetector | None = None
        self._now_ns = 0
        self._unused = 0
        self._verdict: PaperVerdict | None = None

    def push(self, message: Message, table: ChannelTable, data: bytes = b"") -> None:
        """Take in a slice; those of the warm-up are kept.

        ``data`` is the message as it came, where it is at hand: it is kept instead of the
        numbers, which are thirty times as much for the caches of who reads thousands of nodes.
        """
        self._follow(table)
        one = self._slice(message, data)
        self._ring.push(one)
        self._verdict, self._now_ns = None, message.start_ns
        self._unused += 1
        if self._unused > UNUSED_SLICES:
            self._detector = None
        if not self._warmup.complete:
            self._warmup.take(one, window=self._ring.complete)

    def reset(self) -> None:
        """After a gap: no window may span it."""
        self._ring.reset()
        if not self._warmup.complete:
            self._warmup.gap()

    def verdict(self) -> PaperVerdict | None:
        """What the three say of the window that ends now; None without one or a reference."""
        if self._verdict is None and self._ring.complete and self._warmup.complete:
            self._detector = self._detector or self._fit()
            if self._detector is not None:
                self._verdict = self._detector.judge(self._ring.window())
        self._unused = 0
        return self._verdict

    def _fit(self) -> PaperDetector | None:
        """None where it has to wait for other nodes' fits."""
        if self._fits is None:
            return self._fitted()
        return self._fits.fitted(self._now_ns, self._fitted)

    def _slice(self, message: Message, data: bytes) -> Slice | Sealed:
        if data:
            return Sealed(data, self._gauges, len(message.fast), self._layout)
        return Slice(message.fast, message.fast_missing, self._layout)

    def _follow(self, table: ChannelTable) -> None:
        """Find the channels learned first in another table; those gone read as missing."""
        if table is self._table:
            return
        self._table, self._gauges = table, wire.gauges(table)
        at = {(c.metric, c.instance): place for place, c in enumerate(table.fast)}
        if self._channels is None:
            self._channels = [c for c in table.fast if self._wanted(c)]
        gone = len(table.fast)
        places = [at.get((c.metric, c.instance), gone) for c in self._channels]
        scales = [c.scale for c in table.fast] + [1.0]
        self._layout = Layout(
            np.array(places, np.intp), np.array([scales[place] for place in places])
        )

    def _fitted(self) -> PaperDetector:
        """The three, fitted on the warm-up: each time the same."""
        assert self._channels is not None
        rows = [catalogue.find(c.metric) for c in self._channels]
        detector = PaperDetector(
            [c.label for c in self._channels],
            [row.subsystem for row in rows],
            roles=[row.role for row in rows],
            kinds=[c.kind for c in self._channels],
            options=PaperOptions(warmup_windows=self._learned),
        )
        for window in self._warmup.windows(WindowRing(self._window)):
            detector.learn(window)
        give_back()
        return detector

    def _wanted(self, channel: Channel) -> bool:
        if not in_catalogue(channel) or (self._leave_out and self._leave_out(channel)):
            return False
        row = catalogue.find(channel.metric)
        return row.source != "own" and row.scope is not Scope.SUBJECT
