"""Episodes of a node: suspected, opened, changed, merged, at a new normal, and resolved."""

from __future__ import annotations

from collections.abc import Iterable

from reveal_analyzer.episodes.tracker import EpisodeChange, EpisodeTracker, SecondVerdict
from reveal_analyzer.hypotheses.loader import load
from reveal_analyzer.hypotheses.signatures import SignatureMatch
from reveal_contract.finding import FindingChange
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND

CPU, MEMORY, GPU = Subsystem.CPU, Subsystem.MEMORY, Subsystem.GPU
OOM_KILL = SignatureMatch(next(rule for rule in load() if rule.name == "OOMKill"), ())
CALM: dict[Subsystem, float] = {}


class Clock:
    """Feeds a tracker second by second; ``log`` is (second, change, subsystem)."""

    def __init__(self) -> None:
        self.tracker = EpisodeTracker()
        self.second = 0
        self.log: list[tuple[int, str, Subsystem]] = []

    def run(
        self,
        seconds: int,
        ratios: dict[Subsystem, float] = CALM,
        sustained: Iterable[SignatureMatch] = (),
        new_normal: Iterable[Subsystem] = (),
    ) -> list[EpisodeChange]:
        changes: list[EpisodeChange] = []
        for _ in range(seconds):
            matches = list(sustained)
            verdict = SecondVerdict(
                self.second * NS_PER_SECOND, ratios, matches, matches, frozenset(new_normal)
            )
            found = self.tracker.update(verdict)
            self.log += [(self.second, change.value, e.subsystem) for change, e in found]
            changes += found
            self.second += 1
        return changes


def test_a_score_above_its_threshold_is_suspected_then_opened_then_resolved() -> None:
    clock = Clock()
    clock.run(6, {CPU: 2.0})
    clock.run(15)
    assert clock.log == [(1, "Suspected", CPU), (4, "Opened", CPU), (15, "Resolved", CPU)]


def test_a_score_equal_to_its_threshold_is_not_anomalous() -> None:
    clock = Clock()
    clock.run(30, {CPU: 1.0})
    assert clock.log == []


def test_seconds_need_not_be_adjacent() -> None:
    clock = Clock()
    for _ in range(5):
        clock.run(1, {CPU: 2.0})
        clock.run(1)
    assert (8, "Opened", CPU) in clock.log


def test_a_suspicion_is_reported_again_only_after_a_calm_second() -> None:
    clock = Clock()
    clock.run(2, {CPU: 2.0})
    clock.run(3)
    clock.run(2, {CPU: 2.0})
    assert [entry[:2] for entry in clock.log] == [(1, "Suspected"), (6, "Suspected")]


def test_a_sustained_signature_opens_immediately() -> None:
    clock = Clock()
    ((change, episode),) = clock.run(1, sustained=[OOM_KILL])
    assert (change, episode.subsystem) == (FindingChange.OPENED, MEMORY)
    assert list(episode.matches) == ["OOMKill"]


def test_a_subsystem_joins_soon_after_the_opening_and_opens_its_own_later() -> None:
    early, late = Clock(), Clock()
    early.run(6, {CPU: 2.0})
    early.run(10, {CPU: 2.0, GPU: 2.0})
    assert early.log[-1] == (6, "Changed", CPU)
    late.run(20, {CPU: 2.0})
    late.run(10, {CPU: 2.0, GPU: 2.0})
    assert late.log[-1] == (24, "Opened", GPU)


def test_the_subsystem_of_most_weight_is_primary() -> None:
    clock = Clock()
    clock.run(5, {CPU: 1.5, GPU: 3.0})
    assert clock.tracker.open[0].subsystem is GPU


def test_a_new_normal_stays_open_and_fades_until_the_level_returns() -> None:
    clock = Clock()
    clock.run(5, {CPU: 4.0})
    clock.run(600, new_normal=[CPU])
    assert clock.tracker.open[0].ranks_lost == 1
    assert [change for _, change, _ in clock.log] == ["Suspected", "Opened", "Changed"]
    assert clock.run(10)[-1][0] is FindingChange.RESOLVED


def test_a_new_normal_opens_nothing() -> None:
    clock = Clock()
    assert clock.run(20, new_normal=[CPU]) == []


def test_a_short_gap_is_not_calm_and_a_long_gap_resolves() -> None:
    clock = Clock()
    clock.run(6, {CPU: 2.0})
    clock.second += 30
    assert clock.run(1, {CPU: 2.0}) == []
    clock.second += 60
    ((change, _),) = clock.run(1)
    assert change is FindingChange.RESOLVED


def test_merging_takes_over_subsystems_weights_and_signatures() -> None:
    clock = Clock()
    clock.run(20, {CPU: 2.0})
    clock.run(1, {CPU: 2.0}, sustained=[OOM_KILL])
    first, second = clock.tracker.open
    clock.tracker.merge(second, into=first)
    assert clock.tracker.open == [first]
    assert first.subsystems == [CPU, MEMORY]
    assert list(first.matches) == ["OOMKill"]


def test_open_episodes_are_returned_when_watching_ends() -> None:
    clock = Clock()
    clock.run(5, {CPU: 2.0})
    ((change, episode),) = clock.tracker.finish()
    assert (change, episode.seconds) == (FindingChange.CHANGED, 5)
