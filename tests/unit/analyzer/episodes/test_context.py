"""The load of the warm-up, a mean over the seconds that were read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.episodes.context import warmup_load
from support.synthetic_node import TABLE, Node

PRESSURE = "cpu.pressure.some"


def test_a_second_without_a_value_leaves_the_mean_as_it_was() -> None:
    node, deriver, load = Node(), Deriver(), dict[str, float]()
    unread = [channel.metric == PRESSURE for channel in TABLE.fast]
    for age in range(1, 61):
        message = node.slice({PRESSURE: 500_000.0})
        if age in (1, 2) or age > 30:
            message = replace(message, fast_missing=message.fast_missing | unread)
        load = warmup_load(load, age, deriver.second(message, TABLE))
    assert load[PRESSURE] == pytest.approx(0.5, rel=0.02)
