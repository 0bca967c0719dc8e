"""The heartbeat bench's own arithmetic: truth from a log, errors, what counts as seen or false."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from heartbeatbench import evaluation, recorder, schedule, step_log
from heartbeatbench.evaluation import Error, Job, Read, SlowdownUpdate
from heartbeatbench.schedule import Episode, JobPlan, Session
from heartbeatbench.step_log import Steps
from heartbeatbench.training_loop import longer
from reveal_analyzer.heartbeat.reference import WINDOWS

START_NS = 1_700_000_000 * 1_000_000_000


def steps(*lengths: float) -> Steps:
    begins, time = [], 0.0
    for length in lengths:
        begins.append(time)
        time += length
    return Steps(tuple(begins), lengths)


def test_the_mean_step_excludes_stalls_and_partial_steps() -> None:
    logged = steps(*[1.0] * 10, 5.0, *[1.0] * 10)
    assert logged.mean(0, 25) == 1.0
    assert logged.mean(0.5, 9.5) == 1.0
    assert logged.mean(0, 3.5) is None


def test_a_truncated_log_line_is_ignored(tmp_path: Path) -> None:
    log = tmp_path / "steps.jsonl"
    rows = [
        {"event": "step", "begun": START_NS / 1e9 + 2, "seconds": 0.5},
        {"event": "checkpoint", "seconds": 3.0},
    ]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"event": "st')
    assert step_log.read(log, START_NS) == Steps((2.0,), (0.5,))


def test_a_saved_session_can_be_read(tmp_path: Path) -> None:
    jobs = recorder.jobs(8)
    session = Session(START_NS, START_NS + 1, jobs, schedule.hog_after(jobs), ["server"])
    session.save(tmp_path / "session.json")
    assert schedule.read(tmp_path / "session.json") == session


def test_a_host_of_few_cpus_runs_few_jobs() -> None:
    few, many = recorder.jobs(2), recorder.jobs(8)
    assert {job.name for job in few} < {job.name for job in many}
    assert {job.ranks for job in few} == {1, 2}


def test_every_job_has_all_slowdowns_in_its_own_order() -> None:
    first, second = schedule.episodes(0), schedule.episodes(1)
    assert (
        {item.percent for item in first} == {item.percent for item in second} == {2, 3, 6, 10, 30}
    )
    assert first[0].begin >= schedule.LEARNED_S
    assert first != second
    assert all(match.end < following.begin for match, following in pairwise(first))
    hog = schedule.hog_after([JobPlan("a", 1.0, episodes=first)])
    assert hog.begin > first[-1].end


@pytest.mark.parametrize("offset", [0.0, 0.5, 0.99])
def test_the_smallest_slowdowns_last_for_a_reading_of_the_longest_window(offset: float) -> None:
    small = [episode for episode in schedule.episodes(0) if episode.percent <= 3]
    longest = max(WINDOWS)
    steady = steps(*[1.0] * 1000)
    for item in small:
        job = Job(20.0, [Read(index + offset, longest, 3.0, 2.0) for index in range(400)])
        found = evaluation.errors(job, steady, (item.begin, item.end))
        detected = evaluation.detected("a", found, item)
        assert detected is not None
        assert longest in detected.by


def test_a_step_is_longer_in_its_episode_only() -> None:
    plan = JobPlan("a", 1.0, episodes=(Episode(10, 20, 6.0),))
    assert [longer(plan, moment) for moment in (9.9, 10, 19.9, 20)] == [1.0, 1.06, 1.06, 1.0]


def test_errors_exclude_windows_that_span_an_edge() -> None:
    logged = steps(*[1.0] * 200, *[1.1] * 200)
    job = Job(20.0, [Read(end, 10, 9.0, 2.0) for end in (150.0, 205.0, 260.0)])
    found = list(evaluation.errors(job, logged, [200.0]))
    assert [error.end for error in found] == [150.0, 260.0]
    assert [error.true for error in found] == pytest.approx([0.0, 10.0])


def test_a_job_that_was_never_locked_has_no_errors() -> None:
    assert list(evaluation.errors(Job(), steps(*[1.0] * 300), [])) == []


def test_an_episode_is_detected_by_the_first_window_within_it() -> None:
    found = [Error(end, 10, read, 6.0, 3.0) for end, read in ((15, 1.0), (22, 5.0), (40, 1.0))]
    item = evaluation.detected("a", found, Episode(10, 60, 6.0))
    assert item is not None
    assert item.by == {10: True}
    assert item.percent == 6.0
    assert evaluation.detected("a", found, Episode(100, 160, 6.0)) is None


def test_the_spread_is_by_window() -> None:
    found = [Error(0, 30, read, 0.0, 3.0) for read in (1.0, -1.0, 2.0)]
    middle, high, count = evaluation.spread(found)[30]
    assert (middle, count) == (1.0, 3)
    assert 1.0 < high <= 2.0
    assert set(evaluation.spread(found)) == {30}


def test_a_slowdown_is_false_where_the_log_has_less_than_half_of_it() -> None:
    logged = steps(*[1.0] * 100, *[1.1] * 100)
    updates = [
        SlowdownUpdate(90.0, "Opened", "/a", 10.0, ""),
        SlowdownUpdate(140.0, "Opened", "/a", 10.0, ""),
        SlowdownUpdate(112.0, "Opened", "/a", 10.0, ""),  # after ten seconds of it
        SlowdownUpdate(140.0, "Changed", "/a", 10.0, ""),
        SlowdownUpdate(90.0, "Opened", "/b", 10.0, ""),
    ]
    assert evaluation.false_slowdowns(updates, "/a", logged, 1.0) == updates[:1]
    assert evaluation.false_slowdowns(updates, "/b", None, None) == updates[4:]
