"""The synthetic part of the heartbeat bench: its truth, and what counts as right."""

from __future__ import annotations

from dataclasses import replace

from heartbeatbench import crowded_node, synthetic
from heartbeatbench.synthetic import Outcome, Scenario
from reveal_analyzer.heartbeat.job_selection import MOST_JOBS
from reveal_analyzer.heartbeat.series import FINE, USAGE
from reveal_contract.finding import Impact
from support.heartbeat_nodes import JOB, Job

SLOWED = Scenario(
    "10 %", Job(0.5, evaluates=0, slower=lambda s: 1 + 0.1 * (s >= 100)), 200, 10, 100
)
READ = Impact(JOB, 10.0, 9.0, 11.0, 550.0, 500.0, 0, 60, "cpu.subject.usage", 90)


def test_an_outcome_is_compared_with_the_steps_of_the_job() -> None:
    right = Outcome(SLOWED, [110], [], READ)
    assert right.reported and right.open_to_the_end and right.right
    assert not Outcome(SLOWED, [110], [], replace(READ, slowdown_percent=13.0)).right
    assert not Outcome(SLOWED, [110], [150], READ).open_to_the_end
    assert not Outcome(SLOWED, [110, 160], [150], READ).open_to_the_end
    assert not Outcome(SLOWED, [90], [], READ).reported
    assert not Outcome(SLOWED).reported


def test_there_are_slowdowns_of_each_size_with_and_without_gaps() -> None:
    scenarios = list(synthetic.slowdowns(40))
    assert {scenario.percent for scenario in scenarios} == set(synthetic.SIZES)
    assert {bool(scenario.gap) for scenario in scenarios} == {True, False}


def test_a_restart_pauses_and_goes_on_with_longer_steps() -> None:
    (scenario,) = synthetic.restarts(1)
    stop, pause = scenario.job.pause
    assert all(not stop + 8 < begin < stop + pause for begin, _ in scenario.job.steps(400))


def test_healthy_jobs_last_as_long_as_asked() -> None:
    assert sum(scenario.seconds for scenario in synthetic.healthy(0.5)) == 1800
    assert {scenario.percent for scenario in synthetic.healthy(0.5)} == {0.0}


def test_rows_count_what_was_reported_right_and_open() -> None:
    (row,) = synthetic.rows([Outcome(SLOWED, [110], [], READ), Outcome(SLOWED)])
    assert (row["played"], row["reported"], row["all three"], row["median delay s"]) == (
        2,
        1,
        1,
        10,
    )


def test_a_job_starts_late_among_40_subjects_and_has_a_fine_clock() -> None:
    slices = list(crowded_node.slices(Job(0.5, evaluates=0), 3, 2))
    (before, first), (after, last) = slices[2], slices[3]
    clocks = [channel.instance for channel in last.fast if channel.metric == USAGE]
    assert (len(slices), len(clocks), before.sequence, after.sequence) == (5, 40, 2, 3)
    assert JOB not in [channel.instance for channel in first.fast]
    fine = {channel.instance.partition("#")[0] for channel in last.fast if channel.metric == FINE}
    assert JOB in fine and len(fine) == MOST_JOBS
    used = after.fast[:, [channel.instance for channel in last.fast].index(JOB)].sum() / 1e9
    assert 0.5 < used < 1.1


def test_slowdowns_of_other_subjects_are_counted_apart() -> None:
    (row,) = synthetic.rows([Outcome(SLOWED, [110], [], READ, others=2)])
    assert (row["all three"], row["of other subjects"]) == (1, 2)


def test_no_two_jobs_of_any_kind_or_seed_have_the_same_steps() -> None:
    jobs = [
        scenario.job
        for kind in synthetic.KINDS
        for seed in range(8)
        for scenario in synthetic.KINDS[kind](20, seed)
    ]
    assert len({job.seed for job in jobs}) == len(jobs)


def test_a_scenario_does_not_depend_on_how_many_there_are() -> None:
    few, many = (list(synthetic.among_subjects(count, 3)) for count in (2, 5))
    assert [each.job.seed for each in few] == [each.job.seed for each in many[:2]]


def test_scenarios_are_played_in_their_order_in_several_processes() -> None:
    scenarios = [replace(each, seconds=20) for each in synthetic.slowdowns(3)]
    outcomes = synthetic.all_played(scenarios)
    assert [outcome.scenario for outcome in outcomes] == scenarios
