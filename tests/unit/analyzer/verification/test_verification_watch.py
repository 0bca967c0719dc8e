"""Changes of a node: when they are noticed, what they are called, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_analyzer.heartbeat.reference import WindowReading
from reveal_analyzer.heartbeat.tracker import StepTime
from reveal_analyzer.state.tree import StateError
from reveal_analyzer.verification.watch import (
    FACTS_AGE_S,
    MEASURED_S,
    MOST_S,
    SETTLED_S,
    VerificationWatch,
)
from reveal_contract.finding import (
    Confidence,
    Finding,
    FindingChange,
    FindingUpdate,
    Impact,
    Pod,
    Resolution,
    State,
    Subject,
)
from reveal_contract.subjects import Identity, SubjectKind
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.verification import Verdict, Verification
from support.finding_factory import finding

BEGIN = 1_700_000_000
JOB, REFERENCE_S = "ml/train-0", 0.2
DONE_S = SETTLED_S + MEASURED_S
CULPRIT = Pod("ml", "hog", "u-hog", "", 90, 80, Confidence.MEASURED)


def time_ns(second: float) -> int:
    return round((BEGIN + second) * NS_PER_SECOND)


def step(percent: float, windows: tuple[int, ...] = (10, 30, 60)) -> StepTime:
    readings = tuple(WindowReading(window, percent, 0.5, 2.0) for window in windows)
    return StepTime(REFERENCE_S, REFERENCE_S, "c", 1.0, readings)


def impact(percent: float, since_s: float = 0) -> Impact:
    period_ms = 1000 * REFERENCE_S * (1 + percent / 100)
    return Impact(
        JOB, percent, percent - 1, percent + 1, period_ms, 1000 * REFERENCE_S, time_ns(since_s), 30,
        "c", 90,
    )  # fmt: skip


class Node:
    """A node with a job that is ``percent`` slower, whose seconds are played one by one."""

    def __init__(self, *listed: Identity, recovered: bool = False) -> None:
        self.watch = VerificationWatch(lambda: listed, lambda _: recovered)
        self.second = 0
        self.found: list[FindingUpdate] = []

    def play(
        self,
        seconds: int,
        percent: float | None,
        *updates: FindingUpdate,
        windows: tuple[int, ...] = (10, 30, 60),
    ) -> None:
        """Let time pass; the updates come with the first of these seconds."""
        for number in range(seconds):
            self.second += 1
            steps = {} if percent is None else {JOB: step(percent, windows)}
            given = updates if number == 0 else ()
            self.found += self.watch.update(given, steps, time_ns(self.second))

    def update(self, change: FindingChange, **parts: Any) -> FindingUpdate:
        given: dict[str, Any] = {
            "first_observed_ns": time_ns(0), "last_observed_ns": time_ns(self.second),
            "impact": impact(25.0),
        }  # fmt: skip
        return FindingUpdate(change, finding(**(given | parts)))

    def open(self, **parts: Any) -> None:
        """Play two minutes of a job that is a quarter slower."""
        self.play(120, 25.0, self.update(FindingChange.OPENED, **parts))

    def end(self, seconds: int, percent: float | None, **parts: Any) -> None:
        over = {"state": State.RESOLVED, "resolution": Resolution.ENDED} | parts
        self.play(seconds, percent, self.update(FindingChange.RESOLVED, **over))

    @property
    def verified(self) -> tuple[Finding, Verification]:
        (update,) = self.found
        assert update.change is FindingChange.VERIFIED
        assert update.finding.verification is not None
        return update.finding, update.finding.verification


def test_a_finding_that_ends_is_verified_after_a_minute() -> None:
    node = Node()
    node.open()
    node.end(DONE_S - 1, 0.0)
    assert node.found == []
    node.play(2, 0.0)
    found, verification = node.verified
    assert found.state is State.RESOLVED
    assert (verification.verdict, verification.subject) == (Verdict.IMPROVED, JOB)
    assert verification.change == "the cause ended"
    assert verification.effect is not None
    assert verification.effect.percent == pytest.approx(20.0)
    assert verification.effect.low < 20.0 < verification.effect.high
    node.play(2 * MOST_S, 0.0)
    assert len(node.found) == 1


def test_what_is_measured_begins_after_the_change() -> None:
    """The window of a minute holds the change for a while: it is not read before that is over."""
    node = Node()
    node.open()
    node.end(DONE_S - 1, 12.0)
    node.play(2, 0.0)
    effect = node.verified[1].effect
    assert effect is not None
    assert effect.percent == pytest.approx(20.0)


def test_the_culprit_that_ended_is_named() -> None:
    gone = Identity("ml/hog", SubjectKind.POD, "u-hog", "ml", "hog", until_ns=time_ns(121))
    node = Node(gone)
    node.open(pods=(CULPRIT,))
    node.end(DONE_S + 1, 0.0, pods=(CULPRIT,))
    assert node.verified[1].change == "ml/hog ended"


@pytest.mark.parametrize("listed", [(), (Identity("/hog.service", SubjectKind.UNIT),)])
def test_a_culprit_that_lives_or_is_not_known_did_not_end(listed: tuple[Identity, ...]) -> None:
    culprit = Subject("Unit", "/hog.service", 90, 80, Confidence.MEASURED)
    node = Node(*listed)
    node.open(subjects=(culprit,))
    node.end(DONE_S + 1, 0.0, subjects=(culprit,))
    assert node.verified[1].change == "the cause ended"


def test_facts_that_changed_then_are_named() -> None:
    node = Node()
    node.open()
    node.end(30, 0.0)
    node.watch.note(["cpu smt: on -> off", "kernel release: 1 -> 2"], time_ns(node.second))
    node.play(DONE_S, 0.0)
    assert node.verified[1].change == "cpu smt: on -> off; kernel release: 1 -> 2"


@pytest.mark.parametrize(("after", "expected"), [(5.0, Verdict.IMPROVED), (25.0, Verdict.NO_EFFECT),
                                                 (60.0, Verdict.WORSE)])  # fmt: skip
def test_facts_that_change_while_a_finding_is_open_are_verified(
    after: float, expected: Verdict
) -> None:
    node = Node()
    node.open()
    node.play(120, 25.0)
    node.play(FACTS_AGE_S - 1, after)
    node.watch.note(["cpu smt: on -> off"], time_ns(node.second))
    node.play(DONE_S + 1, after)
    found, verification = node.verified
    assert found.state is State.OPEN
    assert (verification.verdict, verification.change) == (expected, "cpu smt: on -> off")


def test_facts_that_change_before_the_job_was_slow_for_long_enough_are_not_verified() -> None:
    node = Node()
    node.open()
    node.watch.note(["cpu smt: on -> off"], time_ns(node.second))
    node.play(2 * MOST_S, 25.0)
    assert node.found == []


def test_no_change_is_noted_where_nothing_changed() -> None:
    node = Node()
    node.open()
    node.play(150, 25.0)
    node.watch.note([], time_ns(node.second))
    node.play(2 * MOST_S, 25.0)
    assert node.found == []


def test_changes_that_overlap_count_together() -> None:
    node = Node()
    node.open()
    node.play(150, 25.0)
    node.watch.note(["first"], time_ns(node.second))
    node.play(20, 25.0)
    node.watch.note(["second"], time_ns(node.second))
    node.play(DONE_S + 1, 0.0)
    assert node.verified[1].change == "first; second"


def test_a_step_time_that_is_not_read_leaves_the_effect_unknown() -> None:
    node = Node()
    node.open()
    node.end(MOST_S - 1, None)
    assert node.found == []
    node.play(2, None)
    _, verification = node.verified
    assert (verification.verdict, verification.effect) == (Verdict.UNKNOWN, None)


def test_a_step_time_that_comes_late_is_read() -> None:
    node = Node()
    node.open()
    node.end(DONE_S + 20, None)
    node.play(5, 0.0, windows=(10,))
    assert node.verified[1].verdict is Verdict.IMPROVED


def test_another_finding_of_the_same_job_leaves_the_effect_unknown() -> None:
    node = Node()
    node.open()
    node.end(20, 0.0)
    other = finding("memory-1", impact=impact(40.0, node.second))
    node.play(DONE_S, 40.0, FindingUpdate(FindingChange.OPENED, other))
    _, verification = node.verified
    assert (verification.verdict, verification.effect) == (Verdict.UNKNOWN, None)


@pytest.mark.parametrize(
    "parts",
    [
        {"resolution": Resolution.UNOBSERVED},
        {"resolution": Resolution.ACCEPTED},
        {"impact": None},
    ],
)
def test_an_end_without_a_measured_job_is_not_verified(parts: dict[str, Any]) -> None:
    node = Node()
    node.open()
    node.end(2 * MOST_S, 0.0, **parts)
    assert node.found == []


def test_a_job_that_had_recovered_before_gains_nothing_by_the_end() -> None:
    node = Node(recovered=True)
    node.open()
    node.end(2 * MOST_S, 0.0)
    assert node.found == []


def test_the_next_analyzer_verifies_what_is_awaited() -> None:
    node = Node()
    node.open()
    node.end(20, 0.0)
    saved = node.watch.save()
    following = Node()
    following.second = node.second
    following.watch.restore(saved)
    following.play(DONE_S, 0.0)
    assert following.verified[1].verdict is Verdict.IMPROVED


def test_a_state_that_is_unfit_is_refused() -> None:
    with pytest.raises(StateError):
        VerificationWatch(tuple, lambda _: False).restore({"awaited": {"cpu-1": {"finding": 1}}})
