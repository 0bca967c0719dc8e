"""Detection on tables through its public interface: what is found, named and ignored."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from threadpoolctl import threadpool_info, threadpool_limits

from reveal_analyzer.tables.scoring.api import (
    MODES,
    SampleSettings,
    Scores,
    Table,
    rank,
    rank_spans,
    score,
)
from support.property_tests import examples

MINUTE = 60 * 10**9
FAULT = slice(1500, 1540)


def telemetry(rows: int, metrics: int = 8, seed: int = 0) -> NDArray[np.float64]:
    """Return metrics that follow a shared load, each with its own noise."""
    rng = np.random.default_rng(seed)
    load = np.zeros(rows)
    for index, push in enumerate(rng.normal(size=rows)):
        load[index] = 0.9 * load[index - 1] + push
    return 50 + load[:, None] * rng.uniform(1, 3, metrics) + rng.normal(size=(rows, metrics))


def table(values: NDArray[np.float64], period: int = MINUTE, first: int = 0) -> Table:
    names = tuple(f"m{index}" for index in range(values.shape[1]))
    return Table((first + np.arange(len(values), dtype=np.int64)) * period, names, values)


@pytest.fixture(scope="module")
def run() -> NDArray[np.float64]:
    """Return a machine with 2000 healthy samples, followed by as many with a fault."""
    values = telemetry(4000)
    values[2000:][FAULT, 3] += 80.0
    values[2000:][FAULT, 5] -= 60.0
    return values


@pytest.fixture(scope="module")
def faulty(run: NDArray[np.float64]) -> NDArray[np.float64]:
    return run[2000:]


@pytest.fixture(scope="module")
def healthy(run: NDArray[np.float64]) -> NDArray[np.float64]:
    return run[:2000]


def overlap(found: Scores) -> bool:
    return any(first < FAULT.stop and end > FAULT.start for first, end in found.spans)


def same(first: Scores, second: Scores) -> bool:
    return (
        first.score.tobytes() == second.score.tobytes()
        and first.methods.keys() == second.methods.keys()
        and all(
            first.methods[name].tobytes() == second.methods[name].tobytes()
            for name in first.methods
        )
    )


class TestScore:
    @pytest.mark.parametrize("mode", MODES)
    def test_finds_the_fault(
        self, mode: str, faulty: NDArray[np.float64], healthy: NDArray[np.float64]
    ) -> None:
        baseline = table(healthy) if mode == "online" else None
        found = score(table(faulty, first=2000), mode, baseline)
        assert overlap(found)
        assert found.score[FAULT].max() == found.score.max()
        assert found.score.shape == found.anomalous.shape == (2000,)

    @pytest.mark.parametrize("mode", ["report", "online"])
    def test_a_healthy_table_has_no_findings(self, mode: str, healthy: NDArray[np.float64]) -> None:
        found = score(table(healthy), mode)
        assert not found.anomalous.any() and not found.spans

    def test_paper_always_marks_something(self, healthy: NDArray[np.float64]) -> None:
        assert score(table(healthy), "paper").spans

    def test_linear_algebra_runs_on_a_single_thread(self, healthy: NDArray[np.float64]) -> None:
        threads = set[int]()

        def progress(_: float) -> None:
            known = threadpool_info()
            threads.update(each["num_threads"] for each in known if each["user_api"] == "blas")

        with threadpool_limits(2, "blas"):
            judged = table(healthy)
            score(judged, progress=progress)
            rank_spans(judged, [(3, 9)], progress=progress)
        assert threads == {1}

    @pytest.mark.parametrize("mode", MODES)
    def test_same_input_same_output(self, mode: str, faulty: NDArray[np.float64]) -> None:
        assert same(score(table(faulty), mode), score(table(faulty.copy()), mode))

    def test_online_knows_no_future(self, faulty: NDArray[np.float64]) -> None:
        whole = score(table(faulty), "online")
        part = score(table(faulty[:1600]), "online")
        assert part.score == pytest.approx(whole.score[:1600], rel=1e-4)

    def test_online_learns_first(self, faulty: NDArray[np.float64]) -> None:
        alone = score(table(faulty), "online")
        assert (alone.score[:1440] == 0.0).all() and (alone.score[1440:] > 0.0).all()

    def test_a_baseline_spares_the_warm_up(
        self, faulty: NDArray[np.float64], healthy: NDArray[np.float64]
    ) -> None:
        found = score(table(faulty), "online", table(healthy))
        assert (found.score > 0.0).all()

    @pytest.mark.parametrize("mode", MODES)
    def test_units_do_not_matter(self, mode: str, faulty: NDArray[np.float64]) -> None:
        plain = score(table(faulty), mode)
        other = score(table(faulty * 2.0**40), mode)
        assert other.score == pytest.approx(plain.score, rel=1e-3)

    def test_a_fault_all_along_stands_out_of_a_baseline(self, healthy: NDArray[np.float64]) -> None:
        shifted = healthy[:300].copy()
        shifted[:, 1:7] += 150.0
        assert not score(table(shifted)).anomalous.any()
        for mode in ("report", "online"):
            found = score(table(shifted), mode, table(healthy))
            assert found.anomalous.mean() > 0.9

    def test_threshold_is_a_setting(self, faulty: NDArray[np.float64]) -> None:
        found = score(table(faulty), settings=SampleSettings(threshold=1e6))
        assert found.threshold == 1e6 and not found.anomalous.any()

    def test_window_is_a_setting(self, faulty: NDArray[np.float64]) -> None:
        found = score(table(faulty), settings=SampleSettings(window=12, stride=6))
        assert set(found.methods) == {"Level", "Forecast", "Windows12"}
        paper = score(table(faulty), "paper", settings=SampleSettings(window=12))
        assert overlap(paper)

    def test_invalid_arguments_are_errors(self, healthy: NDArray[np.float64]) -> None:
        given_table = table(healthy)
        with pytest.raises(ValueError, match="no mode 'live'"):
            score(given_table, "live")
        stranger = Table(given_table.times_ns, tuple("abcdefgh"), healthy)
        with pytest.raises(ValueError, match="none of the table's columns"):
            score(given_table, baseline=stranger)
        with pytest.raises(ValueError, match="4 samples"):
            SampleSettings(window=3)
        with pytest.raises(ValueError, match="must rise"):
            Table(np.zeros(2, np.int64), ("a",), np.zeros((2, 1)))


class TestBadInput:
    @pytest.mark.parametrize("mode", MODES)
    def test_holes_and_infinities_hide_no_fault(
        self, mode: str, faulty: NDArray[np.float64]
    ) -> None:
        values = np.hstack([faulty, np.full((2000, 1), np.nan), np.full((2000, 1), 3.0)])
        rng = np.random.default_rng(2)
        values[rng.random(values.shape) < 0.02] = np.nan
        values[rng.random(values.shape) < 0.001] = np.inf
        found = score(table(values), mode)
        assert np.isfinite(found.score).all()
        assert found.score[FAULT].max() >= np.quantile(found.score, 0.99) > 0.0

    @examples(25)
    @given(st.integers(0, 70), st.integers(0, 3), st.sampled_from(MODES), st.integers(0, 2**32 - 1))
    def test_no_small_table_is_an_error(
        self, rows: int, metrics: int, mode: str, seed: int
    ) -> None:
        rng = np.random.default_rng(seed)
        odd = np.array([np.nan, np.inf, -np.inf, 0.0, 1e300, -1e300, 1e-300, 5.0])
        given_table = table(rng.choice(odd, size=(rows, metrics)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = score(given_table, mode)
            ranked = rank(given_table, 0, rows) if rows else []
        assert np.isfinite(found.score).all() and len(found.score) == rows
        assert sorted(each.name for each in ranked) == (list(given_table.names) if rows else [])
        assert all(np.isfinite(each.score) for each in ranked)

    @pytest.mark.parametrize("mode", MODES)
    def test_constant_tables_are_silent(self, mode: str) -> None:
        found = score(table(np.full((300, 4), 7.0)), mode)
        assert not found.anomalous.any()

    @pytest.mark.parametrize("mode", ["report", "online"])
    def test_gaps_are_no_anomaly(self, mode: str) -> None:
        values = telemetry(2000)
        times = np.arange(2000, dtype=np.int64)
        times[1700:] += 10_000
        found = score(Table(times * MINUTE, table(values).names, values), mode)
        assert not found.anomalous.any()

    def test_many_columns_few_rows(self) -> None:
        values = np.random.default_rng(0).normal(size=(40, 3000))
        found = score(table(values))
        assert np.isfinite(found.score).all()

    def test_the_papers_mode_names_its_limit(self) -> None:
        wide = table(np.broadcast_to(np.zeros(1), (2000, 30_000)))
        with pytest.raises(ValueError, match="larger stride or fewer columns"):
            score(wide, "paper")


class TestRank:
    def test_the_metrics_of_the_fault_come_first(self, faulty: NDArray[np.float64]) -> None:
        ranking = rank(table(faulty), FAULT.start, FAULT.stop)
        assert {each.name for each in ranking[:2]} == {"m3", "m5"}
        assert len(ranking) == 8 == len({each.name for each in ranking})
        scores = [each.score for each in ranking]
        assert scores == sorted(scores, reverse=True)

    def test_has_value_baseline_and_direction(self, faulty: NDArray[np.float64]) -> None:
        by_name = {each.name: each for each in rank(table(faulty), FAULT.start, FAULT.stop)}
        assert by_name["m3"].direction == "up" and by_name["m5"].direction == "down"
        assert by_name["m3"].baseline == pytest.approx(np.median(faulty[:, 3]))
        assert by_name["m3"].value > by_name["m3"].baseline + 30

    def test_a_fault_all_along_shows_against_a_baseline(self, healthy: NDArray[np.float64]) -> None:
        shifted = healthy.copy()
        shifted[:, 2] += 60.0
        ranking = rank(table(shifted[:500]), 0, 500, table(healthy))
        assert ranking[0].name == "m2"

    def test_several_spans_are_ranked_as_each_alone(self, faulty: NDArray[np.float64]) -> None:
        spans = [(0, 1), (1500, 1540), (1990, 2000)]
        together = rank_spans(table(faulty), spans)
        assert together == [rank(table(faulty), *span) for span in spans]

    def test_what_was_never_known_comes_last(self) -> None:
        values = np.hstack([np.full((200, 1), np.nan), telemetry(200, 2)])
        last = rank(table(values), 50, 60)[-1]
        assert last.name == "m0" and last.score == 0.0
        assert np.isnan(last.value) and np.isnan(last.baseline)

    @pytest.mark.parametrize("span", [(5, 5), (-1, 3), (0, 101)])
    def test_spans_out_of_the_table_are_refused(self, span: tuple[int, int]) -> None:
        with pytest.raises(ValueError, match="no samples"):
            rank(table(telemetry(100)), *span)
