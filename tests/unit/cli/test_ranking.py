"""The order of metrics in a span of a recording: first what changed by an amount that matters."""

from __future__ import annotations

import math

import pytest

from reveal_analyzer.offline.recording_table import RecordingTable
from reveal_analyzer.tables.scoring.metric_rank import MetricRank
from reveal_cli.ranking import by_what_matters
from support.synthetic_node import TABLE, Node

QUANTA = {"rare": 100.0, "throttled": 5e7}


def rank(name: str, score: float, value: float, baseline: float = 0.0) -> MetricRank:
    return MetricRank(name, "mean", score, value, baseline)


def test_a_change_below_the_amount_that_matters_comes_later() -> None:
    """Two multicast reports a second are many spreads, where there were none before."""
    rows = [rank("rare", 30.0, 2.0), rank("throttled", 12.0, 6e8)]
    found = by_what_matters(rows, QUANTA)
    assert [row.name for row in found] == ["throttled", "rare"]
    assert found[0].score == 12.0
    assert 0 < found[1].score < 1


@pytest.mark.parametrize(("value", "baseline"), [(1e3, 0.0), (0.0, 1e3), (100.0, math.nan)])
def test_a_change_that_matters_keeps_its_score(value: float, baseline: float) -> None:
    [found] = by_what_matters([rank("rare", 7.0, value, baseline)], QUANTA)
    assert found.score == pytest.approx(7.0)


def test_a_value_that_is_not_known_keeps_its_score() -> None:
    [found] = by_what_matters([rank("rare", 7.0, math.nan)], QUANTA)
    assert found.score == 7.0


def test_metrics_of_a_table_have_no_such_amounts() -> None:
    rows = [rank("any", 3.0, 1.0), rank("other", 2.0, 1.0)]
    assert by_what_matters(rows, {}) == rows


def test_each_column_of_a_recording_has_an_amount() -> None:
    table, node = RecordingTable(), Node()
    for _ in range(5):
        table.push(node.slice({}), TABLE)
    quanta = table.quanta()
    assert quanta.keys() == table.columns.keys()
    assert min(quanta.values()) > 0
