"""Paper mode: the times of its findings, and why each is resolved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reveal_analyzer.detectors.paper_detectors import MethodScore
from reveal_analyzer.paper.detector import EvidencePair, PaperVerdict
from reveal_analyzer.paper.mode import PaperMode
from reveal_analyzer.state.codec import Position, SavedState, decode, encode
from reveal_analyzer.state.tree import StateError, StateTree, section
from reveal_contract.finding import Finding, FindingChange, Resolution
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND

START_NS = 1_700_000_000 * NS_PER_SECOND
MARKED = PaperVerdict(
    tuple(MethodScore(name, 9.0, 1.0, True, 90) for name in ("a", "b", "c")),
    True,
    (),
    (Subsystem.CPU,),
)
CALM = PaperVerdict((), False)
UNKNOWN = None


class Watching:
    """A node in paper mode, second by second."""

    def __init__(self) -> None:
        self.mode = PaperMode("n")
        self.now_ns = START_NS
        self.changes: list[FindingChange] = []
        self.findings: list[Finding] = []

    def see(self, verdict: PaperVerdict | None, seconds: int) -> None:
        for _ in range(seconds):
            for update in self.mode.update(self.now_ns, verdict):
                self.changes.append(update.change)
                self.findings.append(update.finding)
            self.now_ns += NS_PER_SECOND

    @property
    def last(self) -> Finding:
        return self.findings[-1]


def test_an_episode_ends_with_the_first_window_that_is_not_marked() -> None:
    node = Watching()
    node.see(CALM, 5)
    assert not node.mode.any_open
    node.see(MARKED, 5)
    assert node.mode.any_open
    node.see(CALM, 5)
    assert node.changes == [FindingChange.OPENED, FindingChange.RESOLVED]
    assert node.last.resolution is Resolution.ENDED
    assert node.last.resolved_ns == START_NS + 10 * NS_PER_SECOND


def test_a_clock_that_is_set_back_resolves_nothing_before_it_began() -> None:
    node = Watching()
    node.see(MARKED, 5)
    node.now_ns -= 7200 * NS_PER_SECOND
    node.see(MARKED, 3)
    node.see(CALM, 1)
    assert node.changes == [FindingChange.OPENED, FindingChange.RESOLVED]
    assert node.last.resolved_ns is not None
    assert node.last.first_observed_ns <= node.last.last_observed_ns <= node.last.resolved_ns


def test_windows_that_were_not_judged_end_no_episode() -> None:
    node = Watching()
    node.see(MARKED, 5)
    node.see(UNKNOWN, 50)
    node.see(MARKED, 5)
    assert node.changes == [FindingChange.OPENED]
    node.see(CALM, 1)
    assert node.last.resolution is Resolution.ENDED
    assert node.last.last_observed_ns == START_NS + 60 * NS_PER_SECOND


def test_an_episode_that_is_not_judged_for_a_minute_is_unobserved() -> None:
    node = Watching()
    node.see(MARKED, 5)
    node.see(UNKNOWN, 70)
    assert node.changes == [FindingChange.OPENED, FindingChange.RESOLVED]
    assert node.last.resolution is Resolution.UNOBSERVED
    assert node.last.notes == (
        "its evidence has not been read since 22:13:25Z; whether it lasts is unknown",
    )
    assert not node.mode.any_open


def test_a_gap_of_the_stream_closes_it_too_and_what_follows_is_another_episode() -> None:
    node = Watching()
    node.see(MARKED, 5)
    node.now_ns += 90 * NS_PER_SECOND
    node.see(MARKED, 1)
    opened, closed, again = node.changes
    assert (opened, closed, again) == (
        FindingChange.OPENED,
        FindingChange.RESOLVED,
        FindingChange.OPENED,
    )
    first, over, second = node.findings
    assert over.resolution is Resolution.UNOBSERVED
    assert first.id == over.id != second.id


def in_another_process(node: Watching) -> Watching:
    """Return the same node after a restart of its analyzer."""
    other = Watching()
    data = encode(SavedState(Position("n", b"", 0, 0), 0, {"paper": node.mode.save()}))
    other.mode.restore(section(decode(data).tree, "paper"))
    other.now_ns = node.now_ns
    return other


def test_an_episode_goes_on_in_another_process_once_its_detectors_have_learned() -> None:
    node = Watching()
    node.see(MARKED, 5)
    after = in_another_process(node)
    (waiting,) = after.mode.finish()
    assert waiting.finding.id == node.last.id
    assert "not observed since 22:13:25Z" in waiting.finding.notes[0]
    after.see(UNKNOWN, 62)
    assert after.mode.any_open and not after.changes
    after.see(MARKED, 5)
    (now,) = after.mode.finish()
    assert now.finding.id == node.last.id and now.finding.notes == ()
    assert now.finding.first_observed_ns == node.last.first_observed_ns
    after.see(CALM, 1)
    assert after.last.id == node.last.id
    assert after.last.resolution is Resolution.ENDED


def test_what_new_detectors_do_not_mark_is_unobserved_and_not_over() -> None:
    """They may have learned it: their reference is the time since the restart."""
    node = Watching()
    node.see(MARKED, 5)
    after = in_another_process(node)
    after.see(UNKNOWN, 62)
    after.see(CALM, 5)
    assert after.changes == [FindingChange.RESOLVED]
    assert after.last.id == node.last.id
    assert after.last.resolution is Resolution.UNOBSERVED
    assert "the detectors were learned again" in after.last.notes[0]
    assert after.last.last_observed_ns == node.now_ns
    after.see(MARKED, 1)
    assert after.last.id != node.last.id and after.last.notes == ()


def test_an_episode_waits_no_longer_than_its_detectors_learn() -> None:
    node = Watching()
    node.see(MARKED, 5)
    after = in_another_process(node)
    after.see(UNKNOWN, 130)
    assert after.changes == [FindingChange.RESOLVED]
    assert after.last.resolution is Resolution.UNOBSERVED


def test_without_an_episode_there_is_nothing_to_save() -> None:
    node = Watching()
    node.see(CALM, 5)
    assert node.mode.save() == {}
    after = in_another_process(node)
    assert not after.mode.any_open


PAIR = EvidencePair("cpu.busy", "mean", 0.5, 2.0, 1.0, Subsystem.CPU, "cpu.busy is higher")


def test_the_evidence_survives_and_a_number_that_is_none_does_not() -> None:
    node = Watching()
    verdict = replace(MARKED, pairs=(PAIR, replace(PAIR, baseline=float("nan"))))
    node.see(verdict, 5)
    after = in_another_process(node)
    (found,) = after.mode.finish()
    assert [each.metric for each in found.finding.evidence] == ["cpu.busy"]
    assert found.finding.claim == node.last.claim
    assert found.finding.methods == node.last.methods


@pytest.mark.parametrize(
    "damage", [{"subsystem": "Sun"}, {"subsystem": 3}, {"episode": {"first_ns": "x"}}]
)
def test_a_damaged_state_is_refused(damage: StateTree) -> None:
    node = Watching()
    node.see(MARKED, 5)
    with pytest.raises(StateError):
        PaperMode("n").restore({**node.mode.save(), **damage})
