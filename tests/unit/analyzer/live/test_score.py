"""When the live score recomputes its ranges."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.live.score import LiveScore
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.node import NodeAnalyzer
from reveal_contract.settings import AnalyzerSettings
from support.synthetic_node import Node

SETTINGS = LiveSettings(warmup=20, quarantine=5, keep=100)


def renewed(phase: int, seconds: int) -> list[int]:
    """Return the seconds in which a quiet node got new ranges."""
    node, deriver, score = Node(), Deriver(), LiveScore(SETTINGS, phase)
    found = []
    for second in range(1, seconds + 1):
        before = score.ranges
        derived = deriver.second(node.slice(), node.table)
        score.adopt_table(derived)
        score.score(derived)
        if score.ranges is not before:
            found.append(second)
    return found


@pytest.mark.parametrize("phase", [0, 7, 20_013])
def test_ranges_are_recomputed_in_the_seconds_of_the_phase(phase: int) -> None:
    found = renewed(phase, 100)[1:]  # the first ones as soon as there is a history
    assert all((second + phase) % SETTINGS.refit == 0 for second in found)
    assert set(np.diff(found).tolist()) == {SETTINGS.refit}


def test_nodes_that_begin_together_do_not_fall_due_together() -> None:
    due: dict[int, int] = {}
    settings = AnalyzerSettings()
    for number in range(100):
        score = NodeAnalyzer(f"gpu-{number:03d}", settings, rules=())._live
        offset = score._phase % score.settings.refit
        due[offset] = due.get(offset, 0) + 1
    assert len(due) == score.settings.refit
    assert max(due.values()) <= 25
