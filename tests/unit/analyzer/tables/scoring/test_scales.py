"""The parts of the detection on tables: scales, means, the daily pattern, forecast, windows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from reveal_analyzer.tables.scoring.forecast import Forecast
from reveal_analyzer.tables.scoring.frames import Frames, shape_features, window_features
from reveal_analyzer.tables.scoring.rows import METRICS, TableRows
from reveal_analyzer.tables.scoring.scales import (
    CAP,
    Spreads,
    deviation,
    extremes,
    least_spread,
    mean,
    median,
    plain_scale,
    quantiles,
    robust_scale,
)
from reveal_analyzer.tables.scoring.season import learn_level
from reveal_analyzer.tables.scoring.smooth import TOP, WorstMetrics, centered_mean, trailing_mean
from reveal_analyzer.tables.scoring.spans import spans_of
from reveal_analyzer.tables.scoring.table import Table
from reveal_analyzer.tables.scoring.views import combine_views, normal_level
from reveal_contract.time_units import NS_PER_DAY
from support.property_tests import examples

MINUTE = 60 * 10**9

holed = st.lists(
    st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(float("nan"))), min_size=3, max_size=3),
    min_size=1,
    max_size=40,
)


def table(values: NDArray[np.float64], period: int = MINUTE) -> Table:
    names = tuple(f"m{index}" for index in range(values.shape[1]))
    return Table(np.arange(len(values), dtype=np.int64) * period, names, values)


def noise(rows: int, metrics: int, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=(rows, metrics))


class TestScales:
    @examples(100)
    @given(holed)
    def test_agree_with_numpy_on_what_is_known(self, rows: list[list[float]]) -> None:
        values = np.array(rows)
        for column, found in enumerate(zip(median(values), mean(values), strict=True)):
            known = values[:, column][~np.isnan(values[:, column])]
            if not known.size:
                assert found == (0.0, 0.0)
                continue
            assert found == pytest.approx((np.median(known), known.mean()), abs=1e-9)
            assert deviation(values)[column] == pytest.approx(known.std(), rel=1e-9, abs=1e-9)

    @examples(100)
    @given(holed, st.floats(0.0, 1.0))
    def test_quantiles_agree_with_numpy_on_what_is_known(
        self, rows: list[list[float]], share: float
    ) -> None:
        values = np.array(rows)
        for column, found in enumerate(quantiles(values, (share,))[0]):
            known = values[:, column][~np.isnan(values[:, column])]
            expected = np.quantile(known, share) if known.size else 0.0
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)

    @examples(100)
    @given(holed)
    def test_spreads_are_those_of_the_single_functions(self, rows: list[list[float]]) -> None:
        values = np.array(rows)
        before = values.copy()
        spreads = Spreads.of(values)
        free = robust_scale(values, floor=np.zeros(values.shape[1]))
        assert spreads.center.tolist() == free.center.tolist()
        assert spreads.spread.tolist() == free.spread.tolist()
        assert spreads.least.tolist() == least_spread(values).tolist()
        assert np.array_equal(values, before, equal_nan=True), "the values stay as they are"

    def test_spread_has_a_floor_of_three_percent_of_the_range(self) -> None:
        values = np.zeros((1000, 1))
        values[::2] = 100.0
        values[5:] = 50.0  # stands still for nearly all of the time
        assert least_spread(values)[0] == pytest.approx(3.0)
        assert robust_scale(values).spread[0] == pytest.approx(3.0)

    def test_a_metric_that_never_moved_departs_as_far_as_anything(self) -> None:
        scale = robust_scale(np.full((50, 2), [0.0, 7.0]))
        with np.errstate(all="ignore"):
            off = scale.distance(np.array([[0.0, 7.0], [1.0, 6.0], [0.0, 7.0 + 1e-12]]))
        assert off.tolist() == [[0.0, 0.0], [CAP, -CAP], [0.0, pytest.approx(0.0, abs=0.1)]]

    def test_missing_is_no_departure(self) -> None:
        scale = plain_scale(noise(100, 2))
        assert scale.distance(np.full((3, 2), np.nan)).tolist() == [[0.0, 0.0]] * 3

    @pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
    def test_units_do_not_matter(self, size: float) -> None:
        values = noise(200, 3)
        plain, other = robust_scale(values), robust_scale(values * size)
        assert other.distance(values * size) == pytest.approx(plain.distance(values), rel=1e-9)

    @pytest.mark.parametrize("shape", [(0, 3), (1, 3), (700, 3), (2_050, 1), (5, 2_000)])
    def test_extremes_are_those_of_the_known_values(self, shape: tuple[int, int]) -> None:
        values = noise(*shape)
        values[::3] = np.nan
        low, high = extremes(values)
        expected = np.where(np.isnan(values), np.inf, values).min(0, initial=np.inf)
        assert low.tolist() == expected.tolist()
        expected = np.where(np.isnan(values), -np.inf, values).max(0, initial=-np.inf)
        assert high.tolist() == expected.tolist()


class TestMeans:
    def test_trailing_knows_no_future(self) -> None:
        values = np.array([[3.0], [0.0], [0.0], [0.0], [6.0]])
        assert trailing_mean(values, 3)[:, 0].tolist() == [3.0, 1.5, 1.0, 0.0, 2.0]

    def test_centred_repeats_the_ends(self) -> None:
        values = np.array([3.0, 0.0, 0.0, 9.0])
        assert centered_mean(values, 3).tolist() == [2.0, 1.0, 3.0, 6.0]

    @examples(50)
    @given(st.integers(1, 30), st.integers(1, 20))
    def test_worst_metrics_do_not_depend_on_the_blocks(self, width: int, block: int) -> None:
        values = np.abs(noise(30, width))
        worst = WorstMetrics(30, width)
        for index in range(0, width, block):
            worst.add(values[:, index : index + block])
        top = min(TOP, (width + 3) // 4)
        expected = np.sort(values, axis=1)[:, -top:].mean(1)
        assert worst.mean().tolist() == expected.tolist()


class TestDailyPattern:
    period = 10 * MINUTE
    times = np.arange(5 * 144, dtype=np.int64) * period

    def daily(self, metrics: int) -> NDArray[np.float64]:
        turn = 2 * np.pi * self.times / NS_PER_DAY
        return 10 * np.sin(turn)[:, None] + 0.1 * noise(len(self.times), metrics)

    def test_is_expected_once_three_days_are_known(self) -> None:
        values = self.daily(1)
        spreads = Spreads.of(values)
        level = learn_level(self.times, values, self.period, spreads, newest=True)
        assert level.daily.tolist() == [True]
        assert np.abs(level.distance(self.times, values)).max() < 3.0
        # the night's value at noon
        odd = level.distance(self.times[36:37], values[108:109])
        assert odd[0, 0] < -20.0

    def test_takes_three_days(self) -> None:
        values = self.daily(1)[: 2 * 144]
        spreads = Spreads.of(values)
        level = learn_level(self.times[:288], values, self.period, spreads, newest=True)
        assert not level.daily.any()

    def test_a_metric_without_a_pattern_keeps_its_plain_level(self) -> None:
        values = noise(len(self.times), 2)
        spreads = Spreads.of(values)
        level = learn_level(self.times, values, self.period, spreads, newest=False)
        assert not level.daily.any()
        plain = robust_scale(values, spreads.least).distance(values)
        assert level.distance(self.times, values).tolist() == plain.tolist()

    def test_missing_days_leave_a_pattern(self) -> None:
        values = self.daily(2)
        values[: 3 * 144, 0] = np.nan
        values[:, 1] = np.nan
        spreads = Spreads.of(values)
        level = learn_level(self.times, values, self.period, spreads, newest=False)
        found = level.distance(self.times, values)
        assert np.isfinite(found).all() and np.abs(found).max() < 4.0


class TestForecast:
    def test_finds_the_step_that_the_history_does_not_predict(self) -> None:
        values = np.cumsum(0.05 * noise(400, 4), axis=0)  # a level has no information
        since = np.arange(400)
        learned = Forecast(lags=2).fit(values[:300], since[:300])
        values[350, 2] += 3.0
        residual = learned.residual(values, since)
        assert np.unravel_index(residual.argmax(), residual.shape) in {(350, 2), (351, 2)}

    def test_has_no_forecast_over_a_gap_or_for_missing_values(self) -> None:
        values = noise(100, 2)
        since = np.concatenate([np.arange(50), np.arange(50)])
        values[70, 1] = np.nan
        residual = Forecast(lags=3).fit(values, since).residual(values, since)
        assert (residual[50:53] == 0.0).all() and (residual[:3] == 0.0).all()
        assert residual[70, 1] == 0.0 and residual[70, 0] > 0.0

    def test_a_reference_that_never_moved_is_no_error(self) -> None:
        values, since = np.ones((50, 3)), np.arange(50)
        assert (Forecast().fit(values, since).residual(values, since) == 0.0).all()


class TestFrames:
    def test_features_are_those_of_the_definition(self) -> None:
        values = noise(40, 2)
        frames = Frames(10, 5, np.arange(40))
        found = window_features(values, frames, shape_features, single=False)
        assert found.shape == (7, 20)
        window = values[5:15, 1]
        named = found[1].reshape(10, 2)[:, 1]
        assert named[0] == pytest.approx(window.mean())
        assert sorted(named) == pytest.approx(
            sorted(
                [
                    window.mean(),
                    window.var(),
                    window.std(),
                    stats.skew(window, bias=False),
                    stats.kurtosis(window, bias=False),
                    window.min(),
                    window.max(),
                    np.median(window),
                    stats.linregress(np.arange(10), window).slope,
                    self.autocorrelation(window),
                ]
            )
        )

    @staticmethod
    def autocorrelation(window: NDArray[np.float64]) -> float:
        off = window - window.mean()
        return float((off[1:] * off[:-1]).sum() / (9 * window.var()))

    def test_no_window_spans_a_gap(self) -> None:
        since = np.concatenate([np.arange(12), np.arange(12)])
        frames = Frames(8, 4, since)
        assert frames.starts.tolist() == [0, 4, 8, 12, 16]
        assert frames.whole.tolist() == [True, True, False, True, True]
        features = window_features(noise(24, 1), frames, shape_features)
        assert np.isnan(features).all(1).tolist() == [False, False, True, False, False]

    def test_a_sample_missing_is_a_feature_unknown(self) -> None:
        values = noise(20, 2)
        values[3, 0] = np.nan
        features = window_features(values, Frames(10, 10, np.arange(20)), shape_features)
        assert np.isnan(features.reshape(2, 10, 2)[0, :, 0]).all()
        assert np.isfinite(features.reshape(2, 10, 2)[1]).all()

    def test_how_a_sample_takes_its_windows_scores(self) -> None:
        frames = Frames(4, 2, np.arange(8))
        scores = np.array([1.0, 5.0, 3.0])
        assert frames.covering(scores).tolist() == [1, 1, 3, 3, 4, 4, 3, 3]
        assert frames.largest(scores).tolist() == [1, 1, 5, 5, 5, 5, 3, 3]
        assert frames.finished(scores).tolist() == [0, 0, 0, 1, 1, 5, 5, 3]

    def test_the_last_samples_have_a_window_too(self) -> None:
        assert Frames(4, 3, np.arange(9)).starts.tolist() == [0, 3, 5]
        assert Frames(4, 3, np.arange(9), to_end=False).starts.tolist() == [0, 3]
        assert not Frames(4, 3, np.arange(3)).starts.size

    def test_a_segment_starts_without_windows_of_the_previous_segment(self) -> None:
        frames = Frames(4, 4, np.concatenate([np.arange(8), np.arange(8)]))
        found = frames.finished(np.array([1.0, 2.0, 3.0, 4.0]))
        assert found.tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 0, 0, 0, 3, 3, 3, 3, 4]


class TestRows:
    def test_a_baseline_stands_before_the_table_by_the_names_of_metrics(self) -> None:
        before = Table(np.arange(3) * MINUTE, ("b", "x"), np.array([[1.0, 9.0]] * 3))
        after = Table(np.arange(2) * MINUTE, ("a", "b"), np.array([[5.0, 6.0]] * 2))
        rows = TableRows(after, before)
        (values,) = rows.blocks()
        assert values[:, 1].tolist() == [1.0, 1.0, 1.0, 6.0, 6.0]
        assert np.isnan(values[:3, 0]).all() and values[3:, 0].tolist() == [5.0, 5.0]
        assert rows.since.tolist() == [0, 1, 2, 0, 1]

    def test_short_holes_are_filled_and_infinite_is_missing(self) -> None:
        values = np.full((12, 1), np.nan)
        values[0], values[1], values[8] = 4.0, np.inf, 2.0
        (found,) = TableRows(table(values)).blocks()
        assert found[:4, 0].tolist() == [4.0] * 4
        assert np.isnan(found[4:8]).all() and found[8:, 0].tolist() == [2.0] * 4

    def test_nothing_is_filled_over_a_gap(self) -> None:
        times = np.array([0, 1, 2, 30, 31, 32], np.int64) * MINUTE
        values = np.array([[1.0], [1.0], [1.0], [np.nan], [2.0], [2.0]])
        rows = TableRows(Table(times, ("a",), values))
        (found,) = rows.blocks()
        assert rows.since.tolist() == [0, 1, 2, 0, 1, 2]
        assert np.isnan(found[3, 0])

    def test_wide_tables_come_in_blocks(self) -> None:
        blocks = list(TableRows(table(noise(5, 2 * METRICS + 1))).blocks())
        assert [block.shape[1] for block in blocks] == [METRICS, METRICS, 1]


class TestFold:
    def test_constant_scores_fold_to_1(self) -> None:
        constant = np.ones(4)
        assert combine_views({"a": constant, "b": constant}, {"a": 2.0}) == pytest.approx(constant)

    def test_agreement_counts_more_than_a_single_extreme_view(self) -> None:
        alone = combine_views({"a": np.array([9.0]), "b": np.array([1.0])}, {})
        both = combine_views({"a": np.array([5.0]), "b": np.array([5.0])}, {})
        assert alone[0] < 5.0 == pytest.approx(both[0])

    def test_a_view_that_stands_still_has_a_level(self) -> None:
        assert normal_level(np.zeros(5)) == normal_level(np.zeros(0)) > 0.0

    def test_adjacent_alarms_are_merged(self) -> None:
        flags = np.array([1, 1, 0, 0, 1, 0, 0, 0, 1], bool)
        assert spans_of(flags, 3) == [(0, 5), (8, 9)]
        assert spans_of(flags, 4) == [(0, 9)]
        assert spans_of(flags, 1) == [(0, 2), (4, 5), (8, 9)]
        assert spans_of(np.zeros(3, bool), 5) == []
