"""Small clean tables: obvious faults are found, and nothing else."""

import numpy as np
import pytest
from numpy.typing import NDArray

from reveal_analyzer.tables.scoring.api import Scores, Table, score

MINUTE = 60 * 10**9
DAY = 1_440
SPREAD = 2.0


def clean(rows: int, metrics: int = 7, seed: int = 0) -> NDArray[np.float64]:
    return 100 + SPREAD * np.random.default_rng(seed).normal(size=(rows, metrics))


def judged(values: NDArray[np.float64], mode: str = "report") -> Scores:
    names = tuple(f"m{index}" for index in range(values.shape[1]))
    return score(Table(np.arange(len(values), dtype=np.int64) * MINUTE, names, values), mode)


class TestReport:
    @pytest.mark.parametrize("rows", [60, 200, 600, 2000])
    @pytest.mark.parametrize("lasting", [1, 3, 15])
    def test_finds_fifty_spreads_in_three_metrics_of_seven(self, rows: int, lasting: int) -> None:
        values, fault = clean(rows), slice(rows // 2, rows // 2 + lasting)
        values[fault, :3] += 50 * SPREAD
        (span,) = judged(values).spans
        assert span[0] <= fault.start
        assert span[1] >= fault.stop

    @pytest.mark.parametrize("metrics", [1, 2, 3, 7, 30])
    def test_finds_nothing_in_a_healthy_table(self, metrics: int) -> None:
        for rows in (60, 200, 1000):
            assert judged(clean(rows, metrics, seed=rows)).spans == []

    def test_a_single_sample_of_a_metric_is_a_faulty_reading(self) -> None:
        values = clean(600)
        values[300, 0] += 50 * SPREAD
        assert judged(values).spans == []

    def test_metrics_that_rest_and_twitch_are_no_excursion(self) -> None:
        random = np.random.default_rng(1)
        values = np.where(random.random((2000, 7)) < 0.05, random.exponential(1, (2000, 7)), 0)
        assert judged(values).spans == []


class TestOnline:
    def test_what_a_metric_does_each_day_is_no_news(self) -> None:
        """Two metrics jump for half an hour each day, never together."""
        values = clean(8 * DAY, 4)
        starts = DAY * np.arange(8) + np.random.default_rng(2).integers(0, DAY - 30, 8)
        for start in starts:
            values[start : start + 30, 0] += 40 * SPREAD
        new = 7 * DAY + 700
        values[new : new + 30, 3] += 40 * SPREAD
        found = judged(values, "online")
        normal = max(found.methods["Level"][start : start + 30].max() for start in starts[4:])
        assert found.methods["Level"][new : new + 30].max() > 2 * normal
