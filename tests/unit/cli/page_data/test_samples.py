"""Samples of charts: as they were read, folded over instances, apart at gaps."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_cli.page_data.samples import (
    SampleRequest,
    SampleSeries,
    band_of,
    read_samples,
    window_lines,
)
from support.synthetic_node import Node

SECOND = 10**9


def samples(metric: str, instance: str, feature: str = "mean", seconds: int = 3) -> np.ndarray:
    node = Node()
    request = SampleRequest("n1", metric, instance, feature)
    slices = [(node.slice(), node.table) for _ in range(seconds)]
    return read_samples(slices, {request: []}, {"n1": 1})[request].values


def test_a_counter_is_a_rate_in_base_units_ten_times_a_second() -> None:
    values = samples("cpu.pressure.some", "")
    assert len(values) == 30
    assert values.mean() == pytest.approx(2e6, rel=0.05)  # 2 ms a second


def test_a_gauge_is_a_level_and_a_slow_channel_has_a_sample_a_second() -> None:
    assert samples("memory.mem_total", "").mean() == pytest.approx((16 << 30), rel=0.05)
    assert len(samples("cpu.idle", "")) == 3


@pytest.mark.parametrize(("feature", "cores"), [("sum_values", 0.6), ("maximum", 0.3)])
def test_without_an_instance_all_instances_are_folded(feature: str, cores: float) -> None:
    values = samples("cpu.user", "", feature)
    assert values.mean() / 1e9 == pytest.approx(cores, rel=0.1)


def test_a_metric_that_is_not_read_has_no_samples() -> None:
    assert samples("gpu.utilization", "0").size == 0


def test_far_from_findings_a_long_recording_is_thinned() -> None:
    node = Node()
    slices = [(node.slice(), node.table) for _ in range(300)]
    start = slices[0][0].start_ns
    request = SampleRequest("n1", "cpu.pressure.some", "", "mean")
    found = read_samples(slices, {request: [start + 100 * SECOND]}, {"n1": 10})[request]
    kept = sorted({(each - start) // SECOND for each in found.times_ns.tolist()})
    assert set(range(40, 160)) <= set(kept)
    assert [second for second in kept if second > 170] == list(range(180, 300, 10))
    assert found.apart_s == 25.0


def test_a_computed_metric_of_a_long_recording_is_a_single_line() -> None:
    request = SampleRequest("n1", "cpu.busy", "", "mean")
    series = SampleSeries(request, step=4)
    series.fill(np.arange(0, 400, 4) * SECOND, np.ones(100))
    assert series.period_ns == 4 * SECOND
    lines = window_lines(
        series.times_ns, series.values, (0, 0), (0, 400 * SECOND), 0, series.apart_s
    )
    assert [len(line) for line in lines] == [100]


def test_the_band_leaves_out_findings() -> None:
    times = np.arange(100) * SECOND
    values = np.where((times >= 40 * SECOND) & (times < 60 * SECOND), 1000.0, 1.0)
    assert band_of(times, values, [(40 * SECOND, 60 * SECOND)]) == (1.0, 1.0)
    assert band_of(times, values, [(0, 100 * SECOND)]) is None


def test_a_window_has_all_samples_near_its_edges_and_means_of_seconds_between() -> None:
    times = np.arange(6000) * SECOND // 10
    lines = window_lines(times, np.ones(6000), (100 * SECOND, 500 * SECOND), (0, 600 * SECOND), 0)
    [points] = lines
    times_s = [time for time, _ in points]
    steps = np.diff(times_s)
    assert times_s == sorted(times_s)
    assert sum(40 <= time <= 160 for time in times_s) == 1201
    assert steps[times_s.index(200.5)] == pytest.approx(1.0)
    assert steps[times_s.index(100.0)] == pytest.approx(0.1)


def test_lines_are_apart_where_samples_are_missing() -> None:
    times = np.arange(100) * SECOND // 10
    values = np.ones(100)
    values[30:70] = np.nan
    lines = window_lines(times, values, (0, 0), (0, 10 * SECOND), 0)
    assert [(line[0][0], line[-1][0]) for line in lines] == [(0.0, 2.9), (7.0, 9.9)]
