"""What is left out of the baseline, and for how long."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.live.gate import CALM_S, ColumnGate, ScoreGate
from reveal_analyzer.live.settings import LiveSettings
from reveal_contract.metric import Subsystem

SETTINGS = LiveSettings()
CPU, MEMORY = 0, 1


def gate(columns: int = 2) -> ColumnGate:
    result = ColumnGate(SETTINGS)
    result.start(columns)
    return result


def run(
    gate: ColumnGate,
    seconds: int,
    *out: int,
    missing: tuple[int, ...] = (),
    faulty: tuple[int, ...] = (0, 1, 2),
) -> None:
    columns = np.arange(gate.seconds.size)
    for _ in range(seconds):
        gate.update(*(np.isin(columns, which) for which in (out, missing, faulty)))


def test_a_column_is_left_out_for_a_minute_and_then_learned() -> None:
    columns = gate()
    run(columns, SETTINGS.give_up, 0)
    assert columns.young.tolist() == [True, True]
    assert not columns.given_up.any()
    run(columns, 1, 0)
    assert columns.young.tolist() == [False, True]
    assert columns.given_up.tolist() == [True, False]
    run(columns, 1, 0)
    assert not columns.given_up.any()


def test_a_change_without_a_fault_of_its_subsystem_replaces_no_level() -> None:
    columns = gate()
    run(columns, SETTINGS.give_up + 1, 0, faulty=(1,))
    assert not columns.young[0]
    assert not columns.given_up.any()


def test_a_column_in_order_does_not_count_those_of_others() -> None:
    columns = gate()
    run(columns, 100, 0)
    assert columns.seconds.tolist() == [100, 0]


def test_a_level_that_flickers_goes_on_counting() -> None:
    """Otherwise a column that swings around its range would never be learned."""
    columns = gate()
    for _ in range(10):
        run(columns, 1, 0)
        run(columns, CALM_S - 1)
    assert columns.seconds.tolist() == [10 * CALM_S, 0]
    run(columns, 1)
    assert columns.seconds.tolist() == [0, 0]
    assert columns.idle


def test_a_missing_column_neither_counts_nor_returns() -> None:
    columns = gate()
    run(columns, 5, 0)
    run(columns, 300, missing=(0,))
    assert columns.seconds.tolist() == [5, 0]
    run(columns, CALM_S)
    assert columns.seconds.tolist() == [0, 0]


def test_what_is_out_for_longer_than_noise_shows_once() -> None:
    columns, noted = gate(), []
    for second in range(1, 30):
        run(columns, 1, 0)
        noted += [second] if columns.begins_to_last[0] else []
        assert bool(columns.lasting[0]) == (second > SETTINGS.transient)
    assert noted == [SETTINGS.transient + 1]
    run(columns, 1)
    assert not columns.lasting.any()


def test_counters_move_with_their_table() -> None:
    columns = gate(3)
    run(columns, 7, 2)
    columns.remap(np.array([2, -1, 0, 1]))
    assert columns.seconds.tolist() == [7, 0, 0, 0]


def scores(*subsystems: int) -> np.ndarray:
    return np.isin(np.arange(len(Subsystem)), subsystems)


def test_scores_of_a_long_run_are_not_learned_and_affect_no_others() -> None:
    counted = ScoreGate(SETTINGS)
    for _ in range(SETTINGS.transient):
        counted.update(scores(CPU), scores())
    assert not counted.lasting.any()
    counted.update(scores(CPU), scores())
    assert counted.lasting.tolist() == scores(CPU).tolist()
    assert counted.begins_to_last.tolist() == scores(CPU).tolist()


def test_a_high_score_below_its_threshold_is_learned_after_a_minute() -> None:
    """An alarm that never ends must not keep a threshold from following its subsystem."""
    counted = ScoreGate(SETTINGS)
    for second in range(1, 200):
        counted.update(scores(CPU), scores(MEMORY))
        assert bool(counted.lasting[MEMORY]) == (SETTINGS.transient < second <= SETTINGS.give_up)
        assert bool(counted.lasting[CPU]) == (SETTINGS.transient < second)
