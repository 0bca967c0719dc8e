"""Paper mode: the times of its findings, and why each is resolved."""

from __future__ import annotations

from reveal_analyzer.detectors.paper_detectors import MethodScore
from reveal_analyzer.paper.detector import PaperVerdict
from reveal_analyzer.paper.mode import PaperMode
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
