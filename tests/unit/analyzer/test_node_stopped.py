"""Findings about subjects that are stopped again and again while they work."""

from __future__ import annotations

import pytest

from reveal_analyzer.hypotheses import loader
from reveal_contract import ledger
from reveal_contract.finding import Finding, FindingChange
from support.ledger_node import Times
from support.ledger_story import BUILD, HOG, JOB, LedgerStory, names

CAUSE = "StoppedSubject"


def beside(job: Times) -> dict[str, Times]:
    return {JOB: job, HOG: Times(), BUILD: Times(run=0.05, threads=6)}


def stopped(seconds: float, threads: int = 1, run: float = 0.9) -> dict[str, Times]:
    """Return a second in which all threads of the job, of which one works, were stopped so long."""
    others = {ledger.STOPPED: seconds * threads}
    return beside(Times(run=run * (1 - seconds), threads=threads, others=others))


QUIET = stopped(0.0)


def findings(story: LedgerStory, change: FindingChange) -> list[tuple[int, Finding]]:
    return [
        (time, f) for time, f in story.of(change) if f.hypothesis and f.hypothesis.name == CAUSE
    ]


@pytest.mark.parametrize("threads", [1, 20])
def test_a_job_that_is_stopped_in_each_second_is_found_with_what_it_loses(threads: int) -> None:
    story = LedgerStory()
    story.run(90, stopped(0.0, threads))
    story.run(40, stopped(0.4, threads))
    story.run(40, stopped(0.0, threads))
    assert names(story.of(FindingChange.OPENED)) == [CAUSE]
    ((opened, first),) = findings(story, FindingChange.OPENED)
    assert 92 <= opened <= 97
    assert [each.name for each in first.subjects] == [JOB]
    assert first.victims == ()
    ((ended, last),) = findings(story, FindingChange.RESOLVED)
    assert 130 <= ended <= 150
    (loss,) = last.lost_time
    assert loss.subject == JOB
    assert loss.lost_percent == pytest.approx(40, abs=1)
    assert last.claim.startswith("A subject that works was stopped again and again, 40 % of")


def test_short_stops_every_three_seconds_are_found_from_the_start() -> None:
    story = LedgerStory()
    for _ in range(10):
        story.run(1, stopped(0.3))
        story.run(2, QUIET)
    ((opened, _),) = findings(story, FindingChange.OPENED)
    assert opened <= 10


def test_a_single_stop_is_no_finding() -> None:
    story = LedgerStory()
    story.run(90, QUIET)
    story.run(1, stopped(0.5))
    story.run(2, stopped(1.0))
    story.run(1, stopped(0.5))
    story.run(60, QUIET)
    assert not findings(story, FindingChange.OPENED)


@pytest.mark.parametrize("before", [0, 90])
def test_a_suspended_program_beside_a_job_is_no_finding(before: int) -> None:
    story = LedgerStory()
    story.run(before, beside(Times(run=0.9, threads=2)))
    for run in (0.9, 0.7, 0.9, 0.3, 0.9, 0.8) * 10:
        story.run(1, beside(Times(run=run, threads=2, others={ledger.STOPPED: 1.0})))
    assert not findings(story, FindingChange.OPENED)


def test_a_worker_that_stays_stopped_while_others_work_is_found() -> None:
    story = LedgerStory()
    story.run(90, beside(Times(run=1.8, threads=2)))
    story.run(60, beside(Times(run=0.9, threads=2, others={ledger.STOPPED: 1.0})))
    assert len(findings(story, FindingChange.OPENED)) == 1
    assert not findings(story, FindingChange.RESOLVED)


@pytest.mark.parametrize("name", [CAUSE, "StalledSubject"])
def test_who_stops_working_is_named_and_not_who_works_more_meanwhile(name: str) -> None:
    (rule,) = (rule for rule in loader.load() if rule.name == name)
    assert rule.subjects_fell
    assert rule.lost_part == ledger.STOPPED
