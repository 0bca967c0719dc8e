"""Learning of references: who may learn while something is wrong on the node."""

from __future__ import annotations

from reveal_analyzer.heartbeat.learning import MOST_SUSPENDED_S, LearningGate

JOB, OTHER = "/train", "/eval"


def learned(faults: list[bool], slow: frozenset[str] = frozenset()) -> int:
    """Return in how many seconds a job may learn."""
    gate = LearningGate()
    return sum(JOB in gate.update({JOB, OTHER}, slow, fault=fault) for fault in faults)


def test_without_a_fault_a_job_learns_every_second() -> None:
    assert learned([False] * 50) == 50


def test_a_job_that_is_slower_itself_learns_nothing() -> None:
    assert learned([False] * 50, frozenset({JOB})) == 0


def test_another_job_that_is_slower_keeps_nobody_from_learning() -> None:
    assert learned([False] * 500, frozenset({OTHER})) == 500


def test_a_fault_suspends_learning_for_a_minute_and_no_longer() -> None:
    assert learned([True] * 40) == 0
    assert learned([True] * 300) == 300 - MOST_SUSPENDED_S


def test_faults_that_follow_each_other_suspend_it_for_a_minute_in_all() -> None:
    often = [*[True] * 20, *[False] * 10] * 20
    assert learned(often) == len(often) - MOST_SUSPENDED_S


def test_a_fault_after_a_calm_minute_suspends_it_again() -> None:
    assert learned([True] * 100 + [False] * 60 + [True] * 50) == 40 + 60


def test_a_job_that_is_new_during_a_fault_waits_for_a_minute_of_its_own() -> None:
    gate = LearningGate()
    for _ in range(200):
        gate.update({OTHER}, (), fault=True)
    may_learn = [gate.update({OTHER, JOB}, (), fault=True) for _ in range(100)]
    assert sum(JOB in subjects for subjects in may_learn) == 100 - MOST_SUSPENDED_S
    assert all(OTHER in subjects for subjects in may_learn)
