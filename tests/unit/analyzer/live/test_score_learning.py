"""What the live score learns while something is wrong, and what it goes back to."""

from __future__ import annotations

import pytest

from reveal_analyzer.live.gate import CALM_S
from reveal_analyzer.live.settings import LiveSettings
from reveal_contract.metric import Subsystem
from support.scored_node import LOSS, PRESSURE, SHARE, WAITING, ScoredNode

SETTINGS = LiveSettings()
QUIET_S = 200


@pytest.fixture
def watched() -> ScoredNode:
    result = ScoredNode()
    result.run(QUIET_S)
    return result


def test_a_lasting_fault_becomes_the_level_of_its_columns_and_of_no_others(
    watched: ScoredNode,
) -> None:
    before = watched.highest(SHARE), watched.highest(WAITING)
    during = watched.run(130, LOSS)
    assert during[20].over[Subsystem.NETWORK] > 1
    assert during[-1].over[Subsystem.NETWORK] < 1
    assert watched.highest(SHARE) > 1e3 + before[0]
    assert watched.highest(WAITING) < 2 * before[1]
    assert 125 <= watched.live.gated_seconds[watched.index(SHARE)] <= 131
    assert watched.live.gated_seconds[watched.index(WAITING)] == 0


def test_the_earlier_level_of_a_column_is_restored_when_it_returns(watched: ScoredNode) -> None:
    before = watched.highest(SHARE)
    watched.run(300, LOSS)
    assert watched.highest(SHARE) > 10 * before + 1e3
    watched.run(9 + CALM_S)
    assert watched.highest(SHARE) == before
    assert watched.live.gated_seconds[watched.index(SHARE)] == 0
    again = watched.run(8, LOSS)
    assert again[-1].over[Subsystem.NETWORK] > 1


def test_another_fault_on_top_of_a_learned_level_is_scored(watched: ScoredNode) -> None:
    watched.run(300, LOSS)
    both = watched.run(10, LOSS | PRESSURE)
    assert both[-1].over[Subsystem.CPU] > 1
    assert both[-1].over[Subsystem.NETWORK] < 1


def test_each_of_two_lasting_faults_is_restored_when_it_ends(watched: ScoredNode) -> None:
    share, waiting = watched.highest(SHARE), watched.highest(WAITING)
    watched.run(100, LOSS)
    watched.run(200, LOSS | PRESSURE)
    watched.run(20, PRESSURE)
    assert watched.highest(SHARE) == share
    assert watched.highest(WAITING) > 10 * waiting
    watched.run(20)
    assert watched.highest(WAITING) < 2 * waiting


@pytest.mark.parametrize("alarm", [False, True])
def test_an_alarm_delays_the_learning_of_what_deviates_by_a_minute(
    watched: ScoredNode, alarm: bool
) -> None:
    """Of what does not deviate, it delays nothing."""
    busier = {"network.nic.rx_bytes{eth0}": 4e7}  # activity, which never alarms by itself
    watched.run(200, alarm=alarm)
    watched.run(55, busier, alarm=alarm)
    rate = "network.nic.rx_bytes{eth0}__mean"
    assert (watched.highest(rate) > 1e7) != alarm
    watched.run(60, busier, alarm=alarm)
    assert watched.highest(rate) > 1e7


def test_noise_is_learned_under_an_alarm_that_never_ends() -> None:
    """Short excursions become the column's own excess, as on a node in order."""
    scores = []
    for alarm in (False, True):
        watched = ScoredNode()
        watched.run(QUIET_S, alarm=alarm)
        for _ in range(20):
            watched.run(3, {"cpu.pressure.some": 3e5}, alarm=alarm)
            watched.run(15, alarm=alarm)
        scores.append(watched.run(3, {"cpu.pressure.some": 3e5}, alarm=alarm)[-1])
    quiet, alarmed = (scored.over[Subsystem.CPU] for scored in scores)
    assert quiet < 1
    assert alarmed < 1


def test_seconds_before_an_opening_are_not_learned(watched: ScoredNode) -> None:
    """A faint fault was visible for a while before another detector found it."""
    faint = {"network.tcp.retrans_segs": 1.2}
    before = watched.highest(SHARE)
    watched.run(9, faint)
    watched.run(45, faint, alarm=True)
    watched.run(SETTINGS.quarantine + SETTINGS.refit, alarm=False)
    assert watched.highest(SHARE) == before


@pytest.mark.parametrize("alarm", [False, True])
def test_phases_of_a_job_stay_normal_beside_an_alarm_of_another_subsystem(alarm: bool) -> None:
    """Both phases last for longer than a new level takes; neither replaces the other."""
    watched, busy = ScoredNode(), {"network.nic.rx_bytes{eth0}": 4e7}
    rate = "network.nic.rx_bytes{eth0}__mean"
    watched.run(QUIET_S, alarm=alarm)
    watched.run(110, busy, alarm=alarm)
    watched.run(60, alarm=alarm)
    assert watched.highest(rate) > 1e7
    assert watched.live.gated_seconds[watched.index(rate)] == 0
