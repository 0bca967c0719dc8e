"""Common times of series that were sampled at moments of their own."""

from __future__ import annotations

import pytest

from reveal_analyzer.tables.ingest.common_times import common_times


@pytest.mark.parametrize(
    "series",
    [
        [[0, 15, 30, 45], [0, 15, 30, 45]],
        [[0, 15, 30, 45], [0, 15, 45]],  # some are missing
        [[0, 15, 30, 45], [1, 61, 121, 181]],  # another period
        [[0, 15, 30, 45], [7]],
        [[0, 15, 30, 45], ["x", "y", "z"]],
    ],
)
def test_times_stay_as_they_are(series: list[list[object]]) -> None:
    assert common_times(series) == series


def test_moments_of_the_same_period_are_common() -> None:
    first, second = common_times([[100, 115, 130, 145], [107, 122, 137, 152]])
    assert first == [90, 105, 120, 135]
    assert set(first) & set(second) == {105, 120, 135}


def test_texts_become_nanoseconds() -> None:
    texts = [[f"2026-11-21T10:{m:02d}:{s:02d}Z" for m in range(9)] for s in (0, 20)]
    first, second = common_times(texts)
    assert first == second
    assert first[1] - first[0] == 60 * 10**9
