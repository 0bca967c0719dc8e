"""A made-up node with its live score, second by second."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from reveal_analyzer.derive.deriver import Deriver, Second
from reveal_analyzer.live.score import LiveScore, Scored
from reveal_analyzer.live.settings import LiveSettings
from support.synthetic_node import Node

LOSS = {"network.tcp.retrans_segs": 60.0, "network.tcp.out_segs": 3000.0}
PRESSURE = {"cpu.pressure.some": 6e5}
SHARE, WAITING = "network.tcp.retransmit_share__mean", "cpu.pressure.some__mean"


class ScoredNode:
    """Feeds a live score with the seconds of a node."""

    def __init__(self, live: LiveScore | None = None, node: Node | None = None) -> None:
        self.live = live or LiveScore(LiveSettings())
        self.node = node or Node()
        self._deriver = Deriver()
        self.second: Second | None = None

    def run(
        self,
        seconds: int,
        values: dict[str, float] | None = None,
        *,
        alarm: bool = False,
        missing: Collection[str] = (),
    ) -> list[Scored]:
        """Return the scores of some seconds, in which metrics may be ``missing``."""
        result = []
        for _ in range(seconds):
            message, table = self.node.slice(values), self.node.table
            lost = np.array([channel.metric in missing for channel in table.fast])
            message = replace(message, fast_missing=message.fast_missing | lost)
            self.second = self._deriver.second(message, table)
            self.live.adopt_table(self.second)
            result.append(self.live.score(self.second, alarm=alarm))
        return result

    def index(self, label: str) -> int:
        """Return the index of a column in the present plan."""
        assert self.second is not None
        return self.second.plan.labels.index(label)

    def highest(self, label: str) -> float:
        """Return the highest level of a column that is normal now."""
        return float(self.live.reference(np.array([self.index(label)])).highest[0])
