"""The history keeps the distribution of what was accepted."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.arrays import Floats32
from reveal_analyzer.live.history import History
from reveal_analyzer.live.ranges import selected_ranks
from reveal_analyzer.live.settings import LiveSettings

KEEP = 40
SETTINGS = LiveSettings(keep=KEEP)
STEADY, CONSTANT, FAULTY = range(3)
LEFT_OUT = np.array([False, False, True])


def views(rng: np.random.Generator, faulty: float = 0.0) -> Floats32:
    row = np.array([rng.integers(0, 5), 7.0, faulty or rng.integers(0, 5)], np.float32)
    return np.broadcast_to(row, (3, 2, 3)).copy()


def filled(rng: np.random.Generator, seconds: int) -> History:
    history = History(SETTINGS)
    for _ in range(seconds):
        history.append(views(rng))
    return history


@pytest.mark.parametrize("known", [3, 30, 40, 75])
@pytest.mark.parametrize("left_out", [1, 9, 100])
def test_values_that_are_left_out_change_nothing_of_their_column(known: int, left_out: int) -> None:
    rng = np.random.default_rng(known)
    history = filled(rng, known)
    before = history.ranges()
    for _ in range(left_out):
        history.append(views(rng, 99.0), LEFT_OUT)
    after = history.ranges()
    assert after.high[0, FAULTY] <= before.high[0, FAULTY] <= 4
    assert after.low[0, FAULTY] >= before.low[0, FAULTY]
    if known >= KEEP:
        np.testing.assert_array_equal(after.bounds[..., FAULTY], before.bounds[..., FAULTY])
    assert after.bounds[0, :2, CONSTANT].tolist() == [7.0, 7.0]


def test_other_columns_of_such_a_second_are_learned() -> None:
    rng = np.random.default_rng(0)
    history = filled(rng, KEEP)
    for _ in range(KEEP):
        second = views(rng, 99.0)
        second[..., STEADY] = 20.0
        history.append(second, LEFT_OUT)
    assert history.ranges().middle[STEADY] == 20.0


def test_a_constant_column_that_is_left_out_stays_constant() -> None:
    history, mark = filled(np.random.default_rng(0), KEEP), np.array([False, True, False])
    second = views(np.random.default_rng(1))
    second[..., CONSTANT] = 50.0
    history.append(second, mark)
    levels, constant = history.constant_levels()
    assert (levels[CONSTANT], constant[CONSTANT]) == (7.0, True)


def test_a_history_is_restored_column_by_column() -> None:
    rng = np.random.default_rng(3)
    history, columns = filled(rng, 2 * KEEP), np.array([FAULTY, CONSTANT])
    before, quantiles = history.ranges(), history.quantiles(columns)
    for _ in range(KEEP):
        second = views(rng, 30.0)
        second[..., CONSTANT] = 9.0
        history.append(second)
    learned = history.ranges()
    assert learned.low[0, FAULTY] == 30.0
    history.restore(columns, quantiles)
    restored = history.ranges()
    np.testing.assert_array_equal(restored.bounds[..., columns], before.bounds[..., columns])
    np.testing.assert_array_equal(restored.bounds[..., STEADY], learned.bounds[..., STEADY])


@pytest.mark.parametrize("seconds", [3, 30, 40, 75])
def test_a_loaded_history_has_known_ranks(seconds: int) -> None:
    """So the first ranges after a takeover need no sorting."""
    history, loaded = filled(np.random.default_rng(4), seconds), History(SETTINGS)
    before = history.ranges()
    loaded.load(history.save(), 3)
    assert not loaded._ranked.stale.any()
    ranks = selected_ranks(len(loaded))
    kept = np.sort(loaded._kept[..., : len(loaded)], axis=-1)
    np.testing.assert_array_equal(loaded._ranked.selected, kept[..., ranks])
    np.testing.assert_allclose(loaded.ranges().bounds, before.bounds, atol=1 / 256)
