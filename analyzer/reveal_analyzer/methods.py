"""The paper's three detectors beside our own decision: which of them agree with an episode.

They are fitted on the warm-up's windows; a window is scored when there is something to
explain, or each one where they decide (``--mode paper``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.columns import known
from reveal_analyzer.detectors.trio import MIN_WINDOWS
from reveal_analyzer.paper import PaperDetector, PaperOptions, PaperVerdict
from reveal_analyzer.windows import WindowRing
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Scope
from reveal_contract.wire import Message

Floats = NDArray[np.float64]


class Methods:
    """Windows of one node's fast channels and the trio's verdicts on them."""

    def __init__(
        self, window: int, warmup: int, leave_out: Callable[[Channel], bool] | None = None
    ) -> None:
        self._leave_out = leave_out
        self._ring = WindowRing(window)
        self._warmup = max(MIN_WINDOWS, warmup - window + 1)
        self._window: Floats | None = None
        self._names: tuple[tuple[str, str], ...] = ()
        self._detector: PaperDetector | None = None
        self._table: ChannelTable | None = None
        self._verdict: PaperVerdict | None = None

    @property
    def ready(self) -> bool:
        return self._detector is not None and self._detector.ready

    def push(self, message: Message, table: ChannelTable) -> None:
        """Take in a slice; during the warm-up its window is learned."""
        self._follow(table)
        values = message.fast.astype(np.float64)
        values[message.fast_missing] = np.nan
        padded = np.hstack([values, np.full((len(values), 1), np.nan)])  # for channels gone
        self._window = self._ring.push(padded[:, self._places] * self._scale)
        self._verdict = None
        if self._window is not None and self._detector and not self._detector.ready:
            self._detector.learn(self._window)

    def reset(self) -> None:
        """After a gap: no window may span it."""
        self._ring.reset()
        self._window = None

    def verdict(self) -> PaperVerdict | None:
        """What the three say of the window that ends now; None without one or a reference."""
        if self._verdict is None and self._window is not None and self.ready:
            assert self._detector is not None
            self._verdict = self._detector.judge(self._window)
        return self._verdict

    def _follow(self, table: ChannelTable) -> None:
        """Find the channels learned first in another table; those gone read as missing."""
        if table is self._table:
            return
        self._table = table
        at = {(c.metric, c.instance): place for place, c in enumerate(table.fast)}
        if self._detector is None:
            self._begin(table)
        gone = len(table.fast)
        self._places = np.array([at.get(name, gone) for name in self._names], np.intp)
        scales = [c.scale for c in table.fast] + [1.0]
        self._scale = np.array([scales[place] for place in self._places])

    def _begin(self, table: ChannelTable) -> None:
        used = [c for c in table.fast if self._wanted(c)]
        rows = [catalogue.find(c.metric) for c in used]
        self._names = tuple((c.metric, c.instance) for c in used)
        self._detector = PaperDetector(
            [c.label for c in used],
            [row.subsystem for row in rows],
            roles=[row.role for row in rows],
            kinds=[c.kind for c in used],
            options=PaperOptions(warmup_windows=min(self._warmup, 300)),
        )

    def _wanted(self, channel: Channel) -> bool:
        if not known(channel) or (self._leave_out and self._leave_out(channel)):
            return False
        row = catalogue.find(channel.metric)
        return row.source != "own" and row.scope is not Scope.SUBJECT
