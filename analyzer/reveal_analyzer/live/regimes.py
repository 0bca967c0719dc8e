"""Regimes: what a node was like with each set of workloads, so that a job that returns is no news.

The past of the score is five minutes.  A job that comes back after ten would meet a past that
has forgotten it; so of every set of workloads a sample is kept, and when that set returns the
sample joins the past again.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from reveal_analyzer.arrays import Bools, Floats16, Floats32
from reveal_analyzer.live.remap import Shift
from reveal_contract.channels import Channel

Key = tuple[str, ...]

MOST = 6  # sets of workloads remembered, those seen last
ROWS = 24  # seconds of each
STEP = 10  # accepted seconds from one of them to the next
_USAGE = "cpu.subject.usage"
# what a controller adds to a name so that no two are alike: hashes, five letters, numbers
_ADDED = re.compile(r"[-_.~]([0-9a-f]{8,}|(?=[a-z]*\d)[a-z0-9]{5}|\d+)(?=$|[-_./~])|\[\d+\]")


def workloads(channels: Iterable[Channel]) -> Key:
    """The subjects of a table, by what stays of their names when they are started again."""
    names = {c.instance for c in channels if c.metric == _USAGE and c.instance}
    return tuple(sorted({_ADDED.sub("", name) for name in names}))


@dataclass
class _Regime:
    rows: deque[Floats16] = field(default_factory=lambda: deque(maxlen=ROWS))
    left: int = 0  # accepted seconds of this node when it was here last


class Regimes:
    """Samples of held values (views, 2, columns) by set of workloads.

    A set that returns within ``forgotten`` accepted seconds is still in the past itself.
    """

    def __init__(self, forgotten: int) -> None:
        self._forgotten = forgotten
        self._known: OrderedDict[Key, _Regime] = OrderedDict()
        self._now: _Regime | None = None
        self._seconds = 0

    def enter(self, key: Key) -> Sequence[Floats32]:
        """The workloads are these from now on; what the past has forgotten of them."""
        regime = self._known.setdefault(key, _Regime(left=self._seconds))
        if regime is self._now:
            return ()
        if self._now is not None:
            self._now.left = self._seconds
        self._now = regime
        self._known.move_to_end(key)
        if len(self._known) > MOST:
            self._known.popitem(last=False)
        away = self._seconds - regime.left
        return [row.astype(np.float32) for row in regime.rows] if away >= self._forgotten else ()

    def learn(self, views: Floats32) -> None:
        """A second was accepted."""
        if self._now is not None and self._seconds % STEP == 0:
            self._now.rows.append(views.astype(np.float16))
        self._seconds += 1

    def always(self, level: Floats32, asked: Bools) -> Bools:
        """Which of the columns ``asked`` for every sample has at these levels."""
        places, wanted = np.flatnonzero(asked), level[asked].astype(np.float16)
        there = asked.copy()
        for regime in self._known.values():
            if regime.rows:
                rows = np.array([row[..., places] for row in regime.rows])
                there[places] &= (rows == wanted).all(axis=(0, 1, 2))
        return there

    def move(self, shift: Shift) -> None:
        """Columns changed."""
        for regime in self._known.values():
            regime.rows = deque((shift.levels(row) for row in regime.rows), ROWS)
