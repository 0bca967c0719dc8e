"""The incremental state of the score equals a full sort."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.columns import LARGEST, TOTAL, Column, folds
from reveal_analyzer.kernels import derive
from reveal_analyzer.live.column_map import ColumnMap
from reveal_analyzer.live.history import History
from reveal_analyzer.live.ranges import Ranges
from reveal_analyzer.live.scaling import GroupPooling
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.live.thresholds import Thresholds
from reveal_analyzer.live.views import SustainedViews
from reveal_contract import catalogue
from reveal_contract.metric import Subsystem
from support.property_tests import examples

SETTINGS = LiveSettings(keep=20)
COLUMNS = 4
# few values, so that many are equal
VALUES = st.lists(st.integers(-2, 3).map(float), min_size=COLUMNS, max_size=COLUMNS)


def sorted_views(recent: list[Floats]) -> Floats:
    """Return the values sustained for k of the last w seconds, by definition."""
    out = np.empty((len(SETTINGS.views), 2, COLUMNS))
    for index, (width, need) in enumerate(SETTINGS.views):
        window = np.sort(np.array(recent[-width:]), axis=0)
        k = min(need, len(window))
        out[index] = window[len(window) - k], window[k - 1]
    return out


@given(st.lists(st.one_of(VALUES, st.just("gap"), st.permutations(range(COLUMNS))), max_size=40))
def test_sustained_views_are_those_of_sorted_seconds(events: list[object]) -> None:
    """Seconds with gaps and column changes between them."""
    sustained, recent = SustainedViews(SETTINGS.views), list[Floats]()
    for event in events:
        if event == "gap":
            sustained.reset()
            recent = []
        elif isinstance(event[0], int):  # type: ignore[index]
            source = np.array(event)
            source[0] = -1  # new
            sustained.remap(ColumnMap(source, np.zeros(source.size, np.float32)))
            recent = [np.where(source < 0, 0.0, row[source]) for row in recent]
        else:
            observed = np.array(event)
            recent.append(observed)
            np.testing.assert_array_equal(sustained.push(observed), sorted_views(recent))


@examples(60)
@given(st.data(), st.integers(1, 50), st.booleans())
def test_ranges_of_the_history_are_those_of_all_its_seconds(
    data: st.DataObject, seconds: int, moves: bool
) -> None:
    """A history longer than the ring, with constant, newly constant and new columns."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    history, kept = History(SETTINGS), deque[Floats](maxlen=SETTINGS.keep)
    moving = rng.random(COLUMNS) < 0.5
    until = rng.integers(0, seconds + 1)
    levels = rng.integers(-3, 4, COLUMNS).astype(float)
    for second in range(seconds):
        noise = rng.integers(0, 3, (3, 2, COLUMNS)) * moving * (second < until)
        views = levels + noise
        views[0, 1] = views[0, 0]  # of one second both directions are the value
        history.append(views)
        kept.append(views)
        if moves and second == seconds // 2:
            source = np.array([2, -1, 0, 1])
            history.remap(ColumnMap(source, np.zeros(source.size, np.float32)))
            kept = deque((np.where(source < 0, 0.0, v[..., source]) for v in kept), kept.maxlen)
            levels, moving = np.where(source < 0, 0.0, levels[source]), moving[source]
        if second % 7 == 6 or second == seconds - 1:
            mine, its = history.ranges(), Ranges.of(np.array(kept), SETTINGS)
            for name in ("high", "low", "spread", "middle"):
                np.testing.assert_array_equal(getattr(mine, name), getattr(its, name), name)
    assert len(history) == len(kept)


def test_ranges_omit_single_values_of_a_long_history() -> None:
    history = np.zeros((160, 3, 2, 1))
    history[[7, 90]] = 9.0
    assert Ranges.of(history, SETTINGS).high.max() == 0
    history[120] = 9.0
    assert Ranges.of(history, SETTINGS).high.min() == 9
    assert Ranges.of(history[:59], SETTINGS).high.min() == 9


def test_excess_is_the_largest_distance_in_spreads_up_to_fifty() -> None:
    history = np.zeros((100, 3, 2, 2))
    history[:40] = 1.0
    ranges = Ranges.of(history, SETTINGS)
    np.testing.assert_array_equal(ranges.spread, np.full((3, 2, 2), 0.5))
    views = np.zeros((3, 2, 2))
    views[0, :, 0], views[2, :, 0], views[1, :, 1] = 2.0, 4.0, -1.0
    np.testing.assert_array_equal(ranges.excess(views), [[6.0, 0.0], [0.0, 2.0]])
    np.testing.assert_array_equal(ranges.excess(views * 1e3).max(), 50.0)


SCORES = st.lists(st.floats(0, 50), max_size=60) | st.lists(
    st.sampled_from([0.0, 1, 9]), max_size=60
)


@given(SCORES)
def test_a_subsystems_threshold_follows_the_98th_percentile_of_its_scores(
    scores: list[float],
) -> None:
    levels = Thresholds(SETTINGS)
    for count, score in enumerate(scores, start=1):
        levels.learn(np.array([score, *[0.0] * (len(Subsystem) - 1)]))
        known = sorted(scores[max(0, count - SETTINGS.keep) : count])
        calm = max(len(known), 200)
        baseline = known[max(len(known) - 1 - (calm - int(np.ceil(0.98 * calm))), 0)]
        expected = min(max(SETTINGS.limit, SETTINGS.multiple * baseline), SETTINGS.ceiling)
        assert levels.values[0] == (expected if len(known) >= 10 else SETTINGS.limit)
        assert set(levels.values[1:]) == {SETTINGS.limit}


METRICS = ("cpu.user", "cpu.run_time", "cpu.pressure.some", "memory.mem_free", "storage.disk.reads")


@given(st.data())
def test_a_subsystems_score_is_the_mean_of_its_three_worst_groups(data: st.DataObject) -> None:
    drawn = st.tuples(st.sampled_from(METRICS), st.sampled_from(["", "a", "b", "c", "d"]))
    names = data.draw(st.lists(drawn, min_size=1, max_size=25, unique=True))
    columns = [Column(catalogue.find(metric), instance, "mean") for metric, instance in names]
    excess = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(names),
                                        max_size=len(names))), float)  # fmt: skip
    scores = GroupPooling(columns, 3).scores(excess)
    assert set(scores) == set(Subsystem)
    for subsystem in Subsystem:
        best: dict[tuple[str, str], float] = {}
        for column, value in zip(columns, excess, strict=True):
            if column.metric.subsystem is subsystem:
                family = column.metric.metric_group, column.instance
                best[family] = max(best.get(family, 0.0), value)
        worst = sorted(best.values())[-3:]
        assert scores[subsystem] == pytest.approx(np.mean(worst) if worst else 0.0)


def sum_of_known(values: Floats) -> float:
    return float("nan") if np.isnan(values).all() else float(np.nansum(values))


@given(st.data())
def test_folds_are_the_largest_or_the_sum_of_what_was_read(data: st.DataObject) -> None:
    some = st.one_of(st.just(np.nan), st.integers(-5, 5).map(float))
    seconds = np.array(data.draw(st.lists(some, min_size=1, max_size=12)))
    position = st.integers(0, len(seconds) - 1)
    fold = st.tuples(st.sampled_from([LARGEST, TOTAL]), st.lists(position, min_size=1, max_size=6))
    folded = data.draw(st.lists(fold, max_size=5))
    expected = [
        np.fmax.reduce(seconds[positions]) if how == LARGEST else sum_of_known(seconds[positions])
        for how, positions in folded
    ]
    np.testing.assert_array_equal(derive.fold(seconds, folds(folded)), np.array(expected, float))


@given(st.data())
def test_some_columns_are_pooled_as_if_there_were_no_others(data: st.DataObject) -> None:
    drawn = st.tuples(st.sampled_from(METRICS), st.sampled_from(["", "a", "b", "c", "d"]))
    names = data.draw(st.lists(drawn, min_size=1, max_size=25, unique=True))
    columns = [Column(catalogue.find(metric), instance, "mean") for metric, instance in names]
    chosen = data.draw(st.lists(st.sampled_from(range(len(columns))), unique=True).map(sorted))
    part = GroupPooling(columns, 3).only(np.array(chosen, np.intp)).groups
    own = GroupPooling([columns[index] for index in chosen], 3).groups
    for mine, its in zip(part[:3], own[:3], strict=True):
        np.testing.assert_array_equal(mine, its)
