"""Excursions are the runs above two spreads that reach more than four."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.arrays import Floats
from reveal_analyzer.tables.scoring.excursions import excursions, far_metrics
from reveal_analyzer.tables.scoring.scales import Scale


def expected(distance: Floats) -> list[tuple[int, int, float]]:
    """Return first row, end and height of each excursion, row by row."""
    found, run = [], list[int]()
    for row, value in enumerate([*distance.tolist(), 0.0]):
        if value > 2.0:
            run.append(row)
        elif run:
            height = max(float(distance[index]) for index in run)
            found += [(run[0], row, height)] if height > 4.0 else []
            run = []
    return found


@pytest.mark.parametrize("seed", range(8))
def test_excursions_are_those_of_a_row_by_row_search(seed: int) -> None:
    distance = 3.0 * np.random.default_rng(seed).normal(size=200)
    distance[::17] = np.nan
    found = excursions(distance)
    assert expected(distance)
    assert list(zip(found.firsts, found.ends, found.heights, strict=True)) == expected(distance)


@pytest.mark.parametrize("distance", [[], [0.0], [3.0, 3.9, 4.0], [np.nan, np.nan]])
def test_what_stays_near_has_none(distance: list[float]) -> None:
    assert not len(excursions(np.array(distance)))


def test_only_metrics_with_a_far_sample_are_searched() -> None:
    values = np.zeros((9, 5))
    values[3, 1], values[4, 2], values[5, 4] = 90.0, -90.0, np.nan
    values[:, 3] = np.nan
    with np.errstate(all="ignore"):
        found = dict(far_metrics(values, Scale(np.zeros(5), np.array([1.0, 10.0, 10.0, 1.0, 0.0]))))
    assert list(found) == [1, 2]
    assert found[1].tolist() == [0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.0]
