"""The metrics of a page: those that stand out, in bins, ranked as `reveal explain` does."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.derive.columns import LEVEL, Column
from reveal_analyzer.tables.scoring.api import Table, distances_by_sample, rank
from reveal_cli.page_data.scores import MOST_BINS, NodeTable, brush_data, ranked_rows
from reveal_contract import catalogue

SECOND = 10**9
NAMES = ("cpu.busy", "cpu.context_switches", "memory.mem_available")
COLUMNS = [Column(catalogue.find(name), "", LEVEL) for name in NAMES]


def node_table(seconds: int, fault: range) -> NodeTable:
    random = np.random.default_rng(0)
    values = 100.0 + random.standard_normal((seconds, len(COLUMNS)))
    values[:, 2] = 5.0
    values[fault.start : fault.stop, 1] += 500.0
    times = np.arange(seconds) * SECOND
    return NodeTable("", Table(times, tuple(c.label for c in COLUMNS), values), COLUMNS)


def test_the_metric_of_a_fault_ranks_first_in_its_span() -> None:
    source = node_table(200, range(100, 110))
    [rows] = ranked_rows(source, [(100 * SECOND, 110 * SECOND)])
    assert rows[0].label == "cpu.context_switches"
    assert rows[0].subsystem == "CPU"
    [none] = ranked_rows(source, [(900 * SECOND, 910 * SECOND)])
    assert none == []


def test_the_script_can_rank_any_span_as_explain_does() -> None:
    source = node_table(200, range(100, 110))
    brush = brush_data([source], 0, 200 * SECOND)
    assert (brush.bin_s, brush.bins) == (1.0, 200)
    for first, end in ((0, 60), (98, 112), (100, 101), (150, 200)):
        expected = {row.name: row.score for row in rank(source.table, first, end)}
        for series in brush.series:
            level, forecast = max(series.levels[first:end]), max(series.forecasts[first:end])
            score = np.sqrt(level * forecast) / 8
            assert abs(score - expected[f"{series.label}__mean"]) < 0.2


def test_what_never_changes_is_left_out_and_values_come_back() -> None:
    brush = brush_data([node_table(200, range(100, 110))], 0, 200 * SECOND)
    labels = [series.label for series in brush.series]
    assert labels[0] == "cpu.context_switches"
    assert "memory.mem_available" not in labels
    first = brush.series[0]
    value = first.low + first.values[105] / 255 * (first.high - first.low)
    assert 595 < value < 605


def test_a_long_recording_has_a_bounded_number_of_bins() -> None:
    seconds = 3 * MOST_BINS - 100
    brush = brush_data([node_table(seconds, range(2000, 2010))], 0, seconds * SECOND)
    assert brush.bin_s == 3.0
    assert brush.bins <= MOST_BINS
    assert all(len(series.levels) == brush.bins for series in brush.series)
    assert max(brush.series[0].levels) == brush.series[0].levels[2004 // 3]


def test_distances_of_an_empty_table_are_none() -> None:
    level, forecast = distances_by_sample(Table(np.zeros(0, np.int64), (), np.zeros((0, 0))))
    assert level.shape == forecast.shape == (0, 0)
