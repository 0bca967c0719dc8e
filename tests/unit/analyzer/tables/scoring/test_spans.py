"""Warm-ups are no alarm, and a change that stays is a single span to the end."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.tables.scoring.spans import spans_of, warm_ups, with_shifts


def flags(rows: int, *spans: tuple[int, int]) -> np.ndarray:
    found = np.zeros(rows, np.bool_)
    for first, end in spans:
        found[first:end] = True
    return found


class TestWarmUps:
    since = np.arange(1_000)
    restarted = np.concatenate([np.arange(600), np.arange(400)])

    def test_what_a_table_begins_with_and_ends_soon_is_found(self) -> None:
        assert warm_ups(flags(1_000, (0, 60)), self.since, 5) == [(0, 60)]

    def test_what_lasts_or_begins_later_is_none(self) -> None:
        assert not warm_ups(flags(1_000, (0, 300)), self.since, 5)
        assert not warm_ups(flags(1_000, (50, 90)), self.since, 5)

    def test_a_restart_after_a_gap_is_found(self) -> None:
        assert warm_ups(flags(1_000, (598, 640)), self.restarted, 5) == [(598, 640)]

    def test_what_is_abnormal_before_the_gap_is_none(self) -> None:
        assert not warm_ups(flags(1_000, (590, 640)), self.restarted, 10)

    def test_an_empty_table_has_none(self) -> None:
        assert warm_ups(flags(0), np.arange(0), 5) == []


def test_a_change_replaces_the_spans_about_it() -> None:
    spans = spans_of(flags(1_000, (100, 110), (498, 505), (800, 810)), 5)
    assert with_shifts(spans, [500], 1_000, 5) == [(100, 110), (500, 1_000), (800, 810)]
