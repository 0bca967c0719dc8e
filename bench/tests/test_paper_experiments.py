"""The arithmetic of the paper's experiments: warped distances, agreeing intervals, the tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperbench import reproducibility, window_settings, workloads
from paperbench.agreement import Agreement, agreement, length, merged, turned
from paperbench.dtw import distances
from paperbench.traces import Trace, Traces, TracesError, cycles, load, moving
from paperbench.window_settings import SETTINGS, marks
from reveal_analyzer.selection.resampler import MetricInstance
from reveal_contract import catalogue
from support.grouped_metrics import fast_values, record
from support.property_tests import examples

SMALL = st.lists(st.integers(-9, 9), min_size=1, max_size=7)


def warped(left: list[float], other: list[float], band: int) -> float:
    """By the definition, as a recursion."""

    @cache
    def cheapest(i: int, j: int) -> float:
        if i < 0 or j < 0 or abs(i - j) > band:
            return 0.0 if (i, j) == (-1, -1) else float("inf")
        before = min(cheapest(i - 1, j), cheapest(i, j - 1), cheapest(i - 1, j - 1))
        return abs(left[i] - other[j]) + before

    return cheapest(len(left) - 1, len(other) - 1)


def column(*values: float) -> np.ndarray:
    return np.array(values, float)[:, None]


def test_dtw_of_known_series() -> None:
    # a bump a sample later costs nothing once the path may bend, and its height twice if not
    early, late = column(0, 0, 1, 2, 1, 0, 0), column(0, 0, 0, 1, 2, 1, 0)
    assert distances(early, late, 6).tolist() == [0.0]
    assert distances(early, late, 1).tolist() == [0.0]
    assert distances(early, late, 0).tolist() == [4.0]
    assert distances(column(1, 2, 3), column(2, 2, 2), 2).tolist() == [2.0]


@given(left=SMALL, other=SMALL, band=st.integers(0, 7))
@examples(80)
def test_dtw_is_the_cheapest_path(left: list[int], other: list[int], band: int) -> None:
    size = min(len(left), len(other))
    a, b = [float(x) for x in left[:size]], [float(x) for x in other[:size]]
    both = np.column_stack([a, b]), np.column_stack([b, a])
    assert distances(*both, band).tolist() == [warped(a, b, band)] * 2


def test_dtw_refuses_series_of_different_shapes() -> None:
    with pytest.raises(ValueError, match="no pairs"):
        distances(np.zeros((3, 1)), np.zeros((4, 1)), 1)


def test_agreement_as_the_paper_counts_it() -> None:
    first, second = [(0.0, 4.0), (10.0, 12.0)], [(3.0, 7.0), (20.0, 21.0)]
    found = agreement(first, second)
    assert found == Agreement(iou=1 / 10, by_count=1 / 2, by_length=1 / 6)
    back = agreement(second, first)
    assert back is not None
    assert (back.by_count, back.by_length) == (1 / 2, 1 / 5)
    assert agreement(first, first) == Agreement(1.0, 1.0, 1.0)
    assert agreement(first, []) is None


def test_touching_intervals_are_merged() -> None:
    assert merged([(5, 8), (0, 3), (3, 4), (1, 2)]) == [(0, 4), (5, 8)]


def test_turned_intervals_keep_their_length() -> None:
    marked = [(0.0, 4.0), (10.0, 12.0)]
    moved = turned(marked, 9.0, 20.0)
    assert moved == [(0.0, 1.0), (9.0, 13.0), (19.0, 20.0)]
    assert length(moved) == length(marked)


def traces(names: tuple[str, ...], values: dict[tuple[str, int], np.ndarray]) -> Traces:
    items = tuple(MetricInstance(catalogue.find(name), "") for name in names)
    return Traces(items, tuple(Trace(w, n, each) for (w, n), each in values.items()))


def waves(seed: int, period: float) -> np.ndarray:
    """A metric that has the workload's rhythm, one that is the same noise everywhere."""
    draw = np.random.default_rng(seed)
    index = np.arange(80)
    rhythm = np.sin(2 * np.pi * index / period) + 0.05 * draw.standard_normal(80)
    return np.column_stack([rhythm, draw.standard_normal(80)])


def test_a_metric_with_a_rhythm_of_its_own_is_reproduced_and_noise_is_not() -> None:
    periods = {"slow": 40.0, "middle": 20.0, "quick": 8.0, "still": 1e9}
    result = traces(
        ("cpu.user", "cpu.system"),
        {
            (name, run): waves(10 * run + index, period)
            for index, (name, period) in enumerate(periods.items())
            for run in (1, 2, 3)
        },
    )
    found = reproducibility.judge(result)
    assert [each.workload for each in found] == list(periods)
    for each in found:
        assert each.metrics == 2
        assert "cpu.user" not in each.not_compared
        assert each.chance == 1 / 4
        assert each.nearest >= 0.5
    noisy = sum("cpu.system" in each.not_compared for each in found)
    assert noisy >= 3  # of four; a false positive is possible at 5 %


def test_a_metric_that_never_differs_is_not_significant() -> None:
    same = np.column_stack([np.arange(40.0), np.ones(40)])
    result = traces(("cpu.user", "cpu.system"), {(w, n): same for w in "ab" for n in (1, 2, 3)})
    for each in reproducibility.judge(result):
        assert (each.metrics, each.significant, each.nearest) == (1, 0, 0.0)
        assert each.not_compared == ("cpu.user",)


def test_a_single_run_cannot_be_compared() -> None:
    result = traces(("cpu.user",), {("a", 1): np.arange(40.0)[:, None]})
    with pytest.raises(TracesError, match="two runs"):
        reproducibility.judge(result)


def test_constant_and_unread_metrics_are_excluded() -> None:
    first = np.column_stack([np.arange(5.0), np.ones(5), [1, 2, np.nan, 3, 4]])
    second = np.column_stack([np.arange(5.0), np.arange(5.0), np.arange(5.0)])
    assert moving([Trace("a", 1, first), Trace("a", 2, second)]).tolist() == [True, False, False]


def test_every_setting_marks_a_burst_that_stands_out() -> None:
    names = ("cpu.user", "cpu.system", "cpu.context_switches")
    runs = []
    for number in (1, 2, 3):
        values = np.random.default_rng(number).standard_normal((360, 3))
        if number == 2:
            values[200:230] += 30.0
        runs.append(Trace("job", number, values))
    items = tuple(MetricInstance(catalogue.find(name), "") for name in names)
    found = [marks(items, runs, setting) for setting in SETTINGS]
    for of_runs, setting in zip(found, SETTINGS, strict=True):
        hit = [(begin, end) for begin, end in of_runs[1] if begin < 23 and end > 20]
        assert hit, setting
    compared, counts = window_settings.compare(Traces(items, tuple(runs)))
    assert [str(each.first) for each in compared] == ["3/1 s", "3/1 s", "1.5/0.5 s"]
    for each in compared:
        assert each.found[0].iou > each.chance[0].iou
        assert each.row()["workloads"] == 1
    assert set(counts["job"]) == {"3/1 s", "1.5/0.5 s", "5/2 s"}


def test_recordings_become_traces_over_what_all_have(tmp_path: Path) -> None:
    paths = [record(tmp_path / f"{seconds}.rvl", seconds, seconds) for seconds in (12, 8)]
    result = load([("job", number, path) for number, path in enumerate(paths, 1)])
    assert result.samples == 80
    assert {run.values.shape for run in result.runs} == {(80, len(result.items))}
    assert "cpu.user{0}" in {item.label for item in result.items}
    with pytest.raises(TracesError, match="no recordings"):
        load([])


def test_phases_of_a_healthy_session_are_workloads_and_its_cycles_runs(tmp_path: Path) -> None:
    # the session began 40 s before its recording: the first cycle has no first phase
    recording, start_ns = record(tmp_path / "mixed.rvl", 870), (1000 - 40) * 10**9
    result = cycles(recording, start_ns)
    assert result.workloads == (
        "train", "server+train", "loader+server+train", "loader+server", "server",
    )  # fmt: skip
    assert {run.number for run in result.runs} == {2, 3}
    assert {run.values.shape for run in result.runs} == {(220, len(result.items))}
    # the second cycle's first phase: 300 s and 6 s to start, of a recording that begins at 40 s
    label = [item.label for item in result.items].index("memory.mem_available")
    raw = fast_values(870, 0)[(306 - 40) * 10 :][:220, 8] * 1024.0
    np.testing.assert_array_equal(result.of("train")[0].values[:, label], raw)


def test_a_session_of_a_single_cycle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TracesError, match="holds 1 whole cycles: 2 are needed"):
        cycles(record(tmp_path / "mixed.rvl", 320), 1000 * 10**9)


def test_there_are_six_workloads_of_both_kinds_without_jax(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    names = workloads.names()
    assert len(names) >= 6
    assert set(names) & set(workloads.TRAINING)
    assert set(names) & set(workloads.INFERENCE)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert {"jax_train", "jax_serve"} <= set(workloads.names())
