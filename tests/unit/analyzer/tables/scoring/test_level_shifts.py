"""A level that changes and stays is found where it changes, and moved back."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from reveal_analyzer.tables.scoring.level_shifts import LevelShift, ShiftFinder

Values = NDArray[np.float64]
NAMES = ("a", "b", "c", "d")


def healthy(rows: int = 1_000) -> Values:
    return 100 + np.random.default_rng(0).normal(size=(rows, 4))


def shifts(values: Values) -> list[LevelShift]:
    finder = ShiftFinder(len(values))
    finder.settled(values)
    return finder.shifts(NAMES)


class TestShiftFinder:
    @pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
    @pytest.mark.parametrize("rows", [400, 1_000, 20_000])
    def test_finds_a_change_wherever_it_begins(self, share: float, rows: int) -> None:
        values, first = healthy(rows), int(share * rows)
        values[first:, 1:3] -= 30.0
        (shift,) = shifts(values)
        assert shift.first == first
        assert {each.name for each in shift.metrics} == {"b", "c"}
        assert shift.metrics[0].baseline == pytest.approx(100, abs=0.5)
        assert shift.metrics[0].value == pytest.approx(70, abs=0.5)

    @pytest.mark.parametrize("rows", [400, 1_999, 2_000, 2_500, 9_000])
    def test_any_number_of_rows_in_a_bin_finds_it_among_missing_values(self, rows: int) -> None:
        values, first = healthy(rows), rows // 2
        values[first:, 1:3] -= 30.0
        values[::50] = np.nan
        (shift,) = shifts(values)
        assert abs(shift.first - first) <= 1

    def test_moves_the_level_back(self) -> None:
        values = healthy()
        values[500:, 1] += 30.0
        settled = ShiftFinder(1_000).settled(values)
        assert np.median(settled[500:, 1]) == pytest.approx(100, abs=0.2)
        assert values[500:, 1].mean() > 120

    def test_a_ramp_is_no_change_of_level(self) -> None:
        values = healthy()
        values[:, 0] += np.linspace(0, 80, 1_000)
        assert not shifts(values)

    def test_a_level_that_returns_is_no_lasting_change(self) -> None:
        values = healthy()
        values[300:700, :2] += 30.0
        assert not shifts(values)

    @pytest.mark.parametrize("last", [10, 40, 70])
    def test_a_warm_up_is_no_change(self, last: int) -> None:
        values = healthy()
        values[:last, :2] -= 50.0
        assert not shifts(values)

    def test_a_count_of_few_things_that_changes_alone_is_none(self) -> None:
        values = healthy()
        values[:, 0] = 120.0
        values[500:, 0] = 121.0
        assert not shifts(values)

    def test_blocks_are_numbered_on(self) -> None:
        values = healthy()
        values[500:, 2] += 40.0
        finder = ShiftFinder(1_000)
        for index in range(4):
            finder.settled(values[:, index : index + 1])
        (shift,) = finder.shifts(NAMES)
        assert [each.name for each in shift.metrics] == ["c"]

    def test_missing_values_hide_no_change(self) -> None:
        values = healthy()
        values[600:, :2] += 30.0
        values[np.random.default_rng(1).random(values.shape) < 0.1] = np.nan
        assert [shift.first for shift in shifts(values)] == pytest.approx([600], abs=3)
