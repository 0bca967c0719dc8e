"""Regimes: samples of a node with each set of workloads, so that a returning job is no anomaly.

The history of the score covers five minutes.  A job that returns after ten minutes would be
compared with a history that no longer contains it.  So a sample is kept for every set of workloads,
and when the set returns, its sample joins the history again.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from reveal_analyzer.arrays import Bools, Floats16, Floats32
from reveal_analyzer.live.column_map import ColumnMap
from reveal_analyzer.live.packing import pack, unpack
from reveal_analyzer.state.tree import (
    StateTree,
    array,
    finite_array,
    integer,
    sections,
    texts,
)
from reveal_contract.channels import Channel

Key = tuple[str, ...]

MOST = 6  # sets of workloads remembered, the most recent ones
ROWS = 24  # seconds in a sample
STEP = 10  # accepted seconds between two of them
_USAGE = "cpu.subject.usage"
# unique suffixes that controllers add to names: hashes, five characters, numbers
_SUFFIX = re.compile(r"[-_.~]([0-9a-f]{8,}|(?=[a-z]*\d)[a-z0-9]{5}|\d+)(?=$|[-_./~])|\[\d+\]")


def workloads(channels: Iterable[Channel]) -> Key:
    """Return the subjects of a table by the part of their names that survives a restart."""
    names = {c.instance for c in channels if c.metric == _USAGE and c.instance}
    return tuple(sorted({_SUFFIX.sub("", name) for name in names}))


@dataclass
class _Regime:
    rows: deque[Floats16] = field(default_factory=lambda: deque(maxlen=ROWS))
    left: int = 0  # accepted seconds of the node when this regime ended last
    saved: StateTree | None = None  # of these rows

    def save(self, key: Key, base: Floats32) -> StateTree:
        """Return lowest, middle and highest of its rows, for they are compared with a range."""
        if self.saved is None:
            rows = np.sort(np.array(self.rows), axis=0)[[0, len(self.rows) // 2, -1]]
            # what is at the base up to the rounding of a row stays there
            values = np.where(rows == base.astype(np.float16), base, rows.astype(np.float32))
            steps = np.diff(pack(values, base), axis=0, prepend=np.int16(0))
            self.saved = {
                "workloads": list(key),
                "left": self.left,
                "middle": base,
                "rows": steps,
            }
        return self.saved

    @classmethod
    def restored(cls, tree: StateTree, views: int, columns: int) -> _Regime:
        """Return a regime whose sample has the saved range."""
        steps = array(tree, "rows", np.int16, (3, views, 2, columns))
        base = finite_array(tree, "middle", np.float32, (columns,))
        low, middle, high = unpack(np.cumsum(steps, axis=0, dtype=np.int32), base)
        third = ROWS // 3
        rows = [row.astype(np.float16) for row in (low, middle, high)] * third
        return cls(deque(rows, ROWS), integer(tree, "left", least=-(1 << 62)))


class Regimes:
    """Samples of views (views, 2, columns) by set of workloads.

    A set that returns within ``forgotten`` accepted seconds is still in the history itself.
    """

    def __init__(self, forgotten: int) -> None:
        self._forgotten = forgotten
        self._known: OrderedDict[Key, _Regime] = OrderedDict()
        self._current: _Regime | None = None
        self._seconds = 0

    def enter(self, key: Key) -> Sequence[Floats32]:
        """Switch to these workloads; return their sample if the history has forgotten them."""
        regime = self._known.setdefault(key, _Regime(left=self._seconds))
        if regime is self._current:
            return ()
        if self._current is not None:
            self._current.left = self._seconds
        self._current = regime
        regime.saved = None
        self._known.move_to_end(key)
        if len(self._known) > MOST:
            self._known.popitem(last=False)
        away = self._seconds - regime.left
        return [row.astype(np.float32) for row in regime.rows] if away >= self._forgotten else ()

    def learn(self, views: Floats32, left_out: Bools | None = None) -> None:
        """Add an accepted second; of columns that are left out the last value is repeated."""
        if self._current is not None and self._seconds % STEP == 0:
            row = views.astype(np.float16)
            if left_out is not None and self._current.rows:
                row[..., left_out] = self._current.rows[-1][..., left_out]
            self._current.rows.append(row)
            self._current.saved = None
        self._seconds += 1

    def constant_in_all(self, level: Floats32, candidates: Bools) -> Bools:
        """Return which of the candidate columns are at their level in every sample."""
        indices, expected = np.flatnonzero(candidates), level[candidates].astype(np.float16)
        constant = candidates.copy()
        for regime in self._known.values():
            if regime.rows:
                rows = np.array([row[..., indices] for row in regime.rows])
                constant[indices] &= (rows == expected).all(axis=(0, 1, 2))
        return constant

    def remap(self, column_map: ColumnMap) -> None:
        """Adopt a new set of columns."""
        for regime in self._known.values():
            regime.rows = deque((column_map.levels(row) for row in regime.rows), ROWS)
            regime.saved = None

    def save(self, base: Floats32) -> StateTree:
        """Return the samples of all but the present workloads, which the history still has.

        ``base`` (columns) is near most of the values.
        """
        others = [
            (key, regime)
            for key, regime in self._known.items()
            if regime is not self._current and regime.rows
        ]
        return {
            "seconds": self._seconds,
            "regimes": [regime.save(key, base) for key, regime in others],
        }

    def restore(self, tree: StateTree, views: int, columns: int) -> None:
        """Continue with saved samples; ``enter`` comes next."""
        self._seconds = integer(tree, "seconds")
        for each in sections(tree, "regimes")[-MOST:]:
            self._known[texts(each, "workloads")] = _Regime.restored(each, views, columns)
