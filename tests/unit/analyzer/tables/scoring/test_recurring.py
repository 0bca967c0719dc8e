"""Events that recur by the clock are removed; what differs from them stays."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from reveal_analyzer.tables.scoring.event_trains import Clock
from reveal_analyzer.tables.scoring.recurring import RecurringEvents
from support.property_tests import examples

Values = NDArray[np.float64]
HEIGHT = 40.0


def clock(rows: int, gap: int | None = None) -> Clock:
    """Return a clock of one sample a second, with a gap before a row."""
    times = np.arange(rows, dtype=np.int64)
    since = np.arange(rows)
    if gap is not None:
        times[gap:] += 1_000
        since[gap:] -= gap
    return Clock.of(times * 10**9, since, 10**9)


def events(onsets: list[int], rows: int = 2_000, length: int = 6, seed: int = 0) -> Values:
    """Return a noisy metric with events, (rows, 1)."""
    values = np.random.default_rng(seed).normal(size=(rows, 1))
    for onset in onsets:
        values[onset : onset + length] += HEIGHT
    return values


def two_trains() -> Values:
    """Return a metric of which some short events begin within a longer event."""
    long = range(115, 3_980, 330)
    short = [row for row in range(50, 3_980, 100) if row % 330 != 120]
    values = events(short, rows=4_000)
    for onset in long:
        values[onset : onset + 20] = HEIGHT + values[onset : onset + 20] % 1
    return values


def without(values: Values, ticks: Clock | None = None) -> Values:
    ticks = ticks or clock(len(values))
    return RecurringEvents.learn(values, ticks).removed(values, ticks)


def rows_out(values: Values) -> list[int]:
    """Return the rows that are far from the noise."""
    return np.flatnonzero(np.abs(values[:, 0]) > 10).tolist()


class TestRemoved:
    @examples(40)
    @given(st.integers(60, 200), st.floats(0, 0.03), st.integers(1, 10), st.integers(0, 2**32 - 1))
    def test_checkpoints_of_any_period_and_some_jitter_are_removed(
        self, period: int, jitter: float, length: int, seed: int
    ) -> None:
        random = np.random.default_rng(seed)
        due = np.arange(period // 2, 1_980, period)
        onsets = [int(row + period * random.uniform(-jitter, jitter)) for row in due]
        assert not rows_out(without(events(onsets, length=length, seed=seed)))

    @examples(40)
    @given(st.integers(1, 12), st.integers(0, 2**32 - 1))
    def test_events_that_do_not_recur_stay(self, count: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        steps = random.choice([150, 220, 330, 500, 90, 720, 1_100, 60], count, replace=True)
        # every step is another, so there is no period
        onsets = [int(row) for row in np.cumsum(np.unique(steps)) if row < 1_900]
        values = events(onsets)
        assert rows_out(without(values)) == rows_out(values)

    def test_an_event_between_others_stays(self) -> None:
        values = events([*range(100, 1_900, 200), 1_010])
        assert rows_out(without(values)) == list(range(1_010, 1_016))

    def test_what_an_event_lasts_longer_stays(self) -> None:
        values = events(list(range(100, 1_900, 200)))
        values[906:960] += HEIGHT
        left = rows_out(without(values))
        assert left[-1] == 959 and left[0] > 906

    def test_what_an_event_is_larger_stays(self) -> None:
        values = events(list(range(100, 1_900, 200)))
        values[900:906] += 4 * HEIGHT
        assert rows_out(without(values)) == list(range(900, 906))

    def test_a_missing_event_is_an_excursion_to_the_other_side(self) -> None:
        onsets = list(range(100, 1_900, 200))
        onsets.remove(900)
        left = without(events(onsets))
        assert rows_out(left) == list(range(900, 906))
        assert left[902, 0] < -20

    def test_many_missing_events_are_normal(self) -> None:
        onsets = [day * 100 + 50 for day in range(20) if day % 7 < 5]
        assert not rows_out(without(events(onsets)))

    def test_events_continue_after_a_gap_in_another_phase(self) -> None:
        onsets = [*range(50, 990, 150), *range(1_093, 1_950, 150)]
        assert not rows_out(without(events(onsets), clock(2_000, gap=1_000)))

    def test_what_began_recently_stays(self) -> None:
        values = events(list(range(1_500, 1_980, 40)))
        assert rows_out(without(values)) == rows_out(values)

    def test_two_trains_are_removed_where_their_events_coincide(self) -> None:
        short = events(list(range(50, 3_980, 100)), rows=4_000)
        long = events(list(range(120, 3_980, 330)), rows=4_000, length=9, seed=1)
        assert not rows_out(without(short + long))

    def test_an_event_hidden_in_that_of_another_train_is_not_missing(self) -> None:
        assert not rows_out(without(two_trains()))

    def test_a_train_is_found_in_a_metric_where_another_train_disturbs_it(self) -> None:
        saves = [327, 904, 1_476, 2_070, 2_658, 3_222, 3_790]
        checks = [32, 180, 323, 473, 618, 760, 903, 1_049, 1_191, 1_341, 1_487, 1_632, 1_779,
                  1_924, 2_070, 2_219, 2_361, 2_511, 2_658, 2_810, 2_954, 3_098, 3_247, 3_392,
                  3_541, 3_691, 3_836, 3_980]  # fmt: skip
        save, check = (events(each, rows=4_000, seed=1) for each in (saves, checks))
        assert rows_out(without(save + 0.3 * check))
        assert not rows_out(without(np.hstack([save, check, save + 0.3 * check])))

    def test_events_that_coincide_with_few_of_a_train_stay(self) -> None:
        onsets = list(range(90, 1_980, 170))
        other = events(onsets[:5], seed=1)
        left = without(np.hstack([events(onsets), other]))
        assert rows_out(left[:, 1:]) == rows_out(other)

    def test_a_table_without_such_events_is_returned_itself(self) -> None:
        values = events([500])
        assert without(values) is values


class TestKnownBefore:
    def left(self, onsets: list[int], row: int) -> list[int]:
        values = events(onsets, rows=4_000)
        ticks = clock(len(values))
        found = RecurringEvents.learn(values, ticks).known_before(row, ticks)
        return rows_out(found.removed(values, ticks))

    def test_events_that_recur_only_later_stay(self) -> None:
        onsets = list(range(1_050, 3_980, 150))
        assert len(self.left(onsets, 1_000)) == 6 * len(onsets)

    def test_events_that_recur_before_are_removed(self) -> None:
        assert not self.left(list(range(100, 3_980, 150)), 1_000)

    def test_events_that_the_rows_before_are_too_short_to_show_are_removed(self) -> None:
        assert not self.left(list(range(150, 3_980, 150)), 100)


class TestContinued:
    def learned(self, values: Values, first: int) -> Values:
        ticks = clock(len(values))
        learned = RecurringEvents.learn(values[:first], ticks.until(first))
        return learned.continued(values, ticks, first)[first:]

    def test_events_that_continue_a_train_are_removed(self) -> None:
        values = events(list(range(100, 1_980, 150)))
        assert not rows_out(self.learned(values, 1_000))

    def test_an_event_hidden_in_that_of_another_train_is_not_missing(self) -> None:
        assert self.learned(two_trains(), 2_000)[:, 0].min() > -10

    def test_later_samples_change_nothing(self) -> None:
        values = events([*range(100, 1_980, 150), 1_200])
        whole = self.learned(values, 1_000)
        for end in (1_203, 1_304, 1_400, 1_603):
            part = self.learned(values[:end], 1_000)
            assert part.tolist() == whole[: end - 1_000].tolist()

    def test_a_missing_event_shows_once_it_is_overdue(self) -> None:
        onsets = list(range(100, 1_980, 150))
        onsets.remove(1_450)
        left = rows_out(self.learned(events(onsets), 1_000))
        assert left and 450 <= left[0] < 480
