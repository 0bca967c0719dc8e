"""Which metrics stay, which represent others, the lost information, and the knee of the curve."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from reveal_analyzer.selection.choice import choose, select
from reveal_analyzer.selection.correlation import Correlation, CorrelationSums
from reveal_analyzer.selection.curves import THRESHOLDS, ThresholdPoint, curves, knee, multi_r2
from reveal_analyzer.selection.priority import preference_orders, rank
from reveal_analyzer.selection.resampler import MetricInstance, Resampler
from reveal_analyzer.selection.workload import WorkloadCorrelation, average
from reveal_contract import catalogue
from support.grouped_metrics import GROUPS, LONE, STILL, TABLE, slices
from support.property_tests import examples

SAMPLE = 100_000_000
NAMES = ("cpu.user", "cpu.system", "cpu.idle", "cpu.iowait", "cpu.irq", "cpu.softirq", "cpu.steal")


def item(name: str, instance: str = "") -> MetricInstance:
    return MetricInstance(catalogue.find(name), instance)


def workload(
    r: np.ndarray, name: str = "job", labels: tuple[str, ...] = NAMES
) -> WorkloadCorrelation:
    """Return a run with this matrix; metrics with 0 on the diagonal are constant."""
    moved = np.diag(r) > 0
    items = tuple(item(label) for label in labels[: len(r)])
    return average(name, [Correlation(items, np.where(r == 0, np.nan, r), moved, 1000)])


def of_clusters(seed: int, name: str = "job") -> WorkloadCorrelation:
    resampler, moments = Resampler(SAMPLE), CorrelationSums()
    for message in slices(60, seed):
        rows = resampler.push(message, TABLE)
        assert rows is not None
        moments.add(rows)
    return average(name, [moments.correlation()])


def random_workload(seed: int) -> WorkloadCorrelation:
    draw = np.random.default_rng(seed)
    values = draw.standard_normal((40, 7)) @ draw.standard_normal((7, 7))
    return workload(np.corrcoef(values.T))


def test_the_known_groups_are_found_and_named_by_the_preferred_metric() -> None:
    found = select([of_clusters(1)], 0.5)
    assert {(gone.metric, gone.by) for gone in found.dropped} == {
        (gone, by) for by, those in GROUPS for gone in those
    }
    assert {each.metric for each in found.kept} == {by for by, _ in GROUPS} | {*LONE, *STILL}
    reasons = {each.metric: each.reason for each in found.kept}
    assert reasons["cpu.user"] == "represents 3 others"
    assert reasons["cpu.pressure.some"] == "represents 1 other"
    assert reasons["memory.mem_available"].startswith("represents itself")
    assert reasons["memory.mem_total"].startswith("constant")
    r = {gone.metric: gone.r for gone in found.dropped}
    assert r["cpu.busy"] == 1.0
    assert r["cpu.forks"] < -0.9  # falls as the other rises: it says the same
    assert 0.9 < r["cpu.user{1}"] < 1


def test_the_same_input_gives_the_same_file() -> None:
    first, second = (select([of_clusters(2)], 0.5).to_yaml() for _ in range(2))
    assert first == second


@given(seed=st.integers(0, 2**32 - 1), threshold=st.floats(0.01, 0.99))
@examples(60)
def test_each_dropped_metric_has_a_representative_and_kept_metrics_differ(
    seed: int, threshold: float
) -> None:
    run = random_workload(seed)
    found = choose(run, preference_orders([run])[0], threshold)
    strength = np.abs(run.r)
    assert sorted([*found.kept, *found.represented_by]) == list(range(len(run.items)))
    for gone, by in found.represented_by.items():
        assert by in found.kept
        assert strength[gone, by] == strength[gone, list(found.kept)].max() > threshold
    among = strength[np.ix_(found.kept, found.kept)] - np.eye(len(found.kept))
    assert among.max(initial=0) <= threshold


def test_a_chain_is_no_group() -> None:
    chain = np.array([[1, 0.7, 0.01], [0.7, 1, 0.7], [0.01, 0.7, 1]])
    labels = ("cpu.idle", "cpu.system", "cpu.user")  # by name, as all else is equal
    found = choose(workload(chain, labels=labels), [0, 1, 2], 0.5)
    assert found.kept == (0, 2)
    assert found.represented_by == {1: 0}


def test_a_metric_kept_for_a_workload_is_kept_for_all() -> None:
    alike = workload(np.array([[1, 0.9], [0.9, 1]]), "alike")
    apart = workload(np.array([[1, 0.1], [0.1, 1]]), "apart")
    assert [gone.metric for gone in select([alike], 0.5).dropped] == ["cpu.user"]
    both = select([alike, apart], 0.5)
    assert both.dropped == ()
    assert "|r| of the closest metric is 0.10" in both.kept[1].reason
    assert [basis.name for basis in both.workloads] == ["alike", "apart"]


def test_a_workload_with_a_constant_metric_does_not_decide_on_it() -> None:
    alike = workload(np.array([[1, 0.9], [0.9, 1]]), "alike")
    still = workload(np.array([[0.0, 0], [0, 1]]), "still")
    (gone,) = select([alike, still], 0.5).dropped
    assert (gone.metric, gone.by, gone.r) == ("cpu.user", "cpu.system", 0.9)


def test_the_representative_has_the_best_worst_case_correlation() -> None:
    # the last goes by the first in one workload and by the second in the other
    first = np.array([[1, 0.1, 0.95], [0.1, 1, 0.6], [0.95, 0.6, 1]])
    second = np.array([[1, 0.1, 0.55], [0.1, 1, 0.7], [0.55, 0.7, 1]])
    labels = ("cpu.idle", "cpu.system", "cpu.user")
    found = select([workload(first, "one", labels), workload(second, "two", labels)], 0.5)
    (gone,) = found.dropped
    assert (gone.metric, gone.by, gone.r) == ("cpu.user", "cpu.system", 0.65)


def test_priorities_follow_the_catalogue() -> None:
    ranked = [
        item("cpu.pressure.some"),  # of the host, read, hurts, every tick
        item("cpu.user"),
        item("cpu.load.1m"),  # each second
        item("cpu.busy"),  # derived
        item("storage.disk.reads", "sda"),  # of a device
        item("cpu.user", "3"),  # of one CPU
    ]
    ranks = [rank(each) for each in ranked]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ranks)


def test_equal_priorities_are_ordered_by_spread_and_then_by_name() -> None:
    # that of the first is 0.35 off its mean either way, of the last 0.25, of the second 0.1
    matrix = np.array([[1, 0.1, 0.8], [0.1, 1, 0.3], [0.8, 0.3, 1]])
    labels = ("cpu.idle", "cpu.system", "cpu.user")
    run = workload(matrix, labels=labels)
    assert run.spread.tolist() == pytest.approx([0.1225, 0.01, 0.0625])
    assert [labels[index] for index in preference_orders([run])[0]] == [
        "cpu.idle",
        "cpu.user",
        "cpu.system",
    ]
    alike = workload(np.array([[1, 0.2], [0.2, 1]]))
    assert [alike.items[index].label for index in preference_orders([alike])[0]] == [
        "cpu.system",
        "cpu.user",
    ]


@given(seed=st.integers(0, 2**32 - 1), kept=st.integers(1, 6))
@examples(20)
def test_multi_r2_is_that_of_least_squares(seed: int, kept: int) -> None:
    draw = np.random.default_rng(seed)
    values = draw.standard_normal((300, 7)) @ draw.standard_normal((7, 7)) + 5
    found = multi_r2(np.corrcoef(values.T), range(kept), range(kept, 7))
    left = values[:, :kept]
    expected = [
        LinearRegression().fit(left, values[:, index]).score(left, values[:, index])
        for index in range(kept, 7)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_multi_r2_stands_twins_among_the_kept() -> None:
    draw = np.random.default_rng(8)
    values = draw.standard_normal((200, 3))
    values = np.column_stack([values, values[:, 0], values[:, 0] + values[:, 1]])
    found = multi_r2(np.corrcoef(values.T), [0, 1, 2, 3], [4])
    assert found[0] == pytest.approx(1.0)
    assert found[0] <= 1.0


def test_the_curves_have_the_cost_of_each_threshold() -> None:
    run = of_clusters(3)
    points = {point.threshold: point for point in curves([run, of_clusters(4)])}
    assert tuple(points) == THRESHOLDS
    half = points[0.5]
    assert half.kept == half.union == pytest.approx(4 / 10)  # of ten that moved
    assert half.max_r > 0.9
    assert half.multi_r2 >= half.max_r**2
    assert points[0.05].kept <= half.kept <= points[0.95].kept


def test_without_dropped_metrics_nothing_is_lost() -> None:
    (point,) = curves([workload(np.array([[1, 0.2], [0.2, 1]]))], [0.5])
    assert (point.kept, point.union) == (1.0, 1.0)
    assert math.isnan(point.multi_r2)
    assert math.isnan(point.max_r)


def test_the_union_counts_what_any_workload_keeps() -> None:
    first = np.array([[1, 0.1, 0.1], [0.1, 1, 0.9], [0.1, 0.9, 1]])
    second = np.array([[1, 0.9, 0.1], [0.9, 1, 0.1], [0.1, 0.1, 1]])
    (point,) = curves([workload(first), workload(second)], [0.5])
    assert point.kept == pytest.approx(2 / 3)
    assert point.union == 1.0


def points(shares: list[float]) -> list[ThresholdPoint]:
    thresholds = np.linspace(0, 1, len(shares))
    return [
        ThresholdPoint(float(x), 1.0, 1.0, y, 1.0) for x, y in zip(thresholds, shares, strict=True)
    ]


def test_the_knee_is_where_the_curve_leaves_the_line_most() -> None:
    # of the square root it is where its slope is 1: at a quarter
    assert knee(points([math.sqrt(x) for x in np.linspace(0, 1, 21)])) == pytest.approx(0.25)


@pytest.mark.parametrize(
    "shares", [[0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 0.04, 0.25, 0.6, 1.0], [1.0, 1.0, 1.0], [0.1, 0.9]]
)
def test_a_line_or_a_hollow_curve_has_no_knee(shares: list[float]) -> None:
    assert knee(points(shares)) is None
