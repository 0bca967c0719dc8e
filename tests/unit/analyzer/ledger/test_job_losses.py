"""What jobs lost by the cause of a finding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.hypotheses import loader
from reveal_analyzer.ledger.accounts import AccountReader
from reveal_analyzer.ledger.job_losses import JobLosses
from reveal_analyzer.state.tree import StateError
from reveal_contract import ledger
from reveal_contract.finding import (
    Confidence,
    Finding,
    FindingChange,
    FindingUpdate,
    Hypothesis,
    JobLoss,
    Pod,
    Subject,
)
from reveal_contract.time_units import NS_PER_SECOND
from support.finding_factory import finding
from support.ledger_node import Times, ledger_node, ledger_values

JOB, OTHER_JOB, HOG, BUILD = "/job", "/other", "/hog", "/build"
LOST = {
    JOB: Times(run=0.4, cpu={HOG: 0.4, BUILD: 0.2}),
    OTHER_JOB: Times(run=0.9, others={ledger.MEMORY: 0.1, ledger.THROTTLED: 0.25}, threads=2),
    HOG: Times(run=1.0),
    BUILD: Times(run=0.5),
}


def named(instance: str, _: int) -> str:
    return {HOG: "team/hog"}.get(instance, instance)


class Played:
    """Seconds of a ledger, and the losses by a finding in them."""

    def __init__(self, times: Mapping[str, Times] = LOST, seconds: int = 10) -> None:
        node, deriver, reader = ledger_node(JOB, OTHER_JOB, HOG, BUILD), Deriver(), AccountReader()
        self.losses = JobLosses(loader.load(), named)
        starts = []
        for _ in range(seconds):
            second = deriver.second(node.slice(ledger_values(times)), node.table)
            accounts = reader.read(second)
            assert accounts is not None
            self.losses.push(second.start_ns, accounts)
            starts.append(second.start_ns)
        self.first_ns, self.last_ns = starts[1], starts[-1]

    def finding(self, cause: str = "", **parts: object) -> Finding:
        """Return a finding that was active from the second second on."""
        hypothesis = Hypothesis(cause, 90, "") if cause else None
        given = {"first_observed_ns": self.first_ns, "last_observed_ns": self.last_ns}
        return finding(hypothesis=hypothesis, **(given | parts))

    def of(self, found: Finding, change: FindingChange = FindingChange.CHANGED) -> list[JobLoss]:
        (update,) = self.losses.added([FindingUpdate(change, found)])
        return list(update.finding.lost_time)


def parts(losses: list[JobLoss]) -> list[tuple[str, float]]:
    return [(each.subject, round(each.lost_percent, 1)) for each in losses]


def culprit(name: str, confidence: Confidence = Confidence.MEASURED) -> Subject:
    return Subject("Cgroup", name, 100, 50, confidence)


def test_interrupts_of_its_own_packets_are_no_loss_of_a_culprit() -> None:
    interrupted = {ledger.IRQ: 0.2}
    times = {
        JOB: Times(run=0.4, cpu={BUILD: 0.2}, others=interrupted),
        BUILD: Times(run=0.6, others=interrupted),
    }
    played = Played(times)
    losses = played.of(played.finding("SoftirqPressure", subjects=(culprit(BUILD),)))
    assert parts(losses) == [(JOB, 50.0)]


def test_what_the_culprits_took_is_lost_by_the_finding() -> None:
    played = Played()
    losses = played.of(played.finding(subjects=(culprit(BUILD),)))
    assert parts(losses) == [(JOB, 20.0)]
    assert losses[0].slowdown_percent == pytest.approx(25.0, abs=0.1)
    assert losses[0].window_s == 9
    pod = Pod("team", "hog", "", "", 100, 50, Confidence.INFERRED)
    assert parts(played.of(played.finding(pods=(pod,), subjects=(culprit(BUILD),)))) == [
        (JOB, 60.0)
    ]


def test_who_is_only_there_took_nothing() -> None:
    played = Played()
    assert played.of(played.finding(subjects=(culprit(BUILD, Confidence.CO_LOCATED),))) == []


def test_a_cause_takes_its_part_from_everybody() -> None:
    played = Played()
    assert parts(played.of(played.finding("MemoryPressure"))) == [(OTHER_JOB, 8.0)]


def test_a_quota_takes_time_only_from_its_own_subject() -> None:
    played = Played()
    quota = played.finding("CPUQuotaThrottling", subjects=(culprit(OTHER_JOB),))
    assert parts(played.of(quota)) == [(OTHER_JOB, 20.0)]
    assert played.of(replace(quota, id="cpu-2", subjects=(culprit(HOG),))) == []


def test_seconds_outside_of_the_finding_do_not_count() -> None:
    played = Played()
    later = played.last_ns + 5 * NS_PER_SECOND
    before = played.finding(
        subjects=(culprit(BUILD),), first_observed_ns=later, last_observed_ns=later
    )
    assert played.of(before) == []


def test_little_and_those_that_want_little_are_not_named() -> None:
    times = {
        JOB: Times(run=0.995, cpu={HOG: 0.005}),
        OTHER_JOB: Times(run=0.02, cpu={HOG: 0.02}),
        HOG: Times(run=1.0),
        BUILD: Times(),
    }
    played = Played(times)
    assert played.of(played.finding(subjects=(culprit(HOG),))) == []


def test_losses_stay_with_a_finding_over_a_restart_until_its_end() -> None:
    played, empty = Played(), Played(seconds=2)
    found = played.finding(subjects=(culprit(BUILD),))
    losses = played.of(found)
    empty.losses.restore(played.losses.save())
    assert parts(empty.of(found, FindingChange.RESOLVED)) == parts(losses)
    assert empty.losses.save() == {"findings": {}}


def test_a_state_that_does_not_fit_is_refused() -> None:
    with pytest.raises(StateError):
        Played(seconds=2).losses.restore({"findings": {"cpu-1": {"losses": "all"}}})
