"""When the samples of each finding are due."""

from __future__ import annotations

from reveal_analyzer.evidence.follows import (
    FIRST_S,
    MOST_FOLLOWED,
    SILENT_S,
    STEP_S,
    YOUNG_S,
    Follow,
    Follows,
)
from reveal_contract.finding import (
    FindingChange,
    FindingKind,
    FindingScope,
    FindingUpdate,
    State,
)
from reveal_contract.time_units import NS_PER_SECOND
from support import finding_factory
from support.finding_factory import changed, opened, resolved


def due(follows: Follows, now_s: float) -> Follow:
    follow = follows.due(now_s)
    assert follow is not None
    return follow


def test_a_finding_is_due_soon_after_it_opened_and_then_again_and_again() -> None:
    follows = Follows()
    follows.update(opened(), 100.0)
    assert follows.due(100.0 + FIRST_S - 0.1) is None
    follow = due(follows, 100.0 + FIRST_S)
    assert follow.young(100.0 + YOUNG_S)
    assert not follow.young(100.1 + YOUNG_S)
    follow.stepped(104.0)
    assert follows.due(104.0 + STEP_S - 0.1) is None
    assert due(follows, 104.0 + STEP_S) is follow


def test_its_end_is_read_immediately_and_again_when_the_minute_after_it_is_over() -> None:
    follows = Follows()
    follows.update(opened(), 0.0)
    due(follows, 10.0).stepped(10.0)
    follows.update(resolved(), 15.0)
    follow = due(follows, 15.0)
    assert follow.finding.state is State.RESOLVED
    follow.stepped(15.0)
    assert follows.due(74.0) is None
    assert due(follows, 75.0) is follow
    assert not follow.late(74.9 + SILENT_S)
    assert follow.late(75.0 + SILENT_S)
    follows.complete("cpu-1")
    assert follows.due(1e9) is None


def test_what_was_open_before_is_never_young() -> None:
    follows = Follows()
    follows.update(changed(), 0.0)
    assert not due(follows, FIRST_S).young(FIRST_S)


def test_suspicions_configurations_and_unknown_ends_are_not_followed() -> None:
    follows = Follows()
    follows.update(FindingUpdate(FindingChange.SUSPECTED, finding_factory.finding()), 0.0)
    follows.update(opened(kind=FindingKind.CONFIGURATION), 0.0)
    follows.update(resolved(), 0.0)
    assert follows.due(1e9) is None


def test_over_the_limit_findings_are_refused_and_counted() -> None:
    follows = Follows()
    for number in range(MOST_FOLLOWED + 3):
        follows.update(opened(f"cpu-{number}"), 0.0)
    assert follows.refused == 3
    assert follows.get(f"cpu-{MOST_FOLLOWED}") is None


def test_a_lost_node_ends_its_findings_and_another_owner_takes_them_along() -> None:
    follows = Follows()
    follows.update(opened("cpu-1", node_name="a"), 0.0)
    follows.update(opened("cpu-2", node_name="b"), 0.0)
    follows.lose("a", 5.0)
    states = {
        name: follow.finding.state for name in ("cpu-1", "cpu-2") if (follow := follows.get(name))
    }
    assert states == {"cpu-1": State.RESOLVED, "cpu-2": State.OPEN}
    follows.forget("a")
    assert follows.get("cpu-1") is None
    assert follows.get("cpu-2") is not None


def test_a_finding_is_reported_as_kept_once_and_only_while_it_is_open() -> None:
    follows = Follows()
    for name in ("cpu-1", "cpu-2"):
        follows.update(opened(name), 0.0)
        due(follows, 10.0).kept = True
        follow = follows.get(name)
        assert follow is not None
        follow.kept = True
    follows.update(resolved("cpu-2"), 1.0)
    assert [finding.id for finding in follows.newly_kept(1.0)] == ["cpu-1"]
    assert follows.newly_kept(1.0) == []


def test_a_finding_that_is_kept_late_was_observed_until_then() -> None:
    follows = Follows()
    follows.update(opened(), 100.0)
    follow = due(follows, 104.0)
    follow.kept = True
    [kept] = follows.newly_kept(400.0)
    assert kept.last_observed_ns == follow.finding.last_observed_ns + 300 * NS_PER_SECOND


def test_a_finding_without_samples_is_due_before_others() -> None:
    follows = Follows()
    follows.update(opened("cpu-1"), 0.0)
    due(follows, 10.0).kept = True
    follows.update(opened("cpu-2"), 5.0)
    assert due(follows, 10.0).finding.id == "cpu-2"


def test_findings_across_nodes_are_those_of_who_compares_them() -> None:
    follows = Follows()
    follows.update(opened("cpu-1", node_name="a", scope=FindingScope.CROSS_NODE), 0.0)
    follows.update(opened("cpu-2", node_name="a"), 0.0)
    follows.lose("a", 5.0)
    follows.forget("a")
    across = follows.get("cpu-1")
    assert across is not None
    assert across.finding.state is State.OPEN
    assert follows.get("cpu-2") is None
    follows.forget_cross_node()
    assert follows.get("cpu-1") is None


def test_what_another_analyzer_left_is_resumed_unless_it_is_followed() -> None:
    follows = Follows()
    follows.resume(resolved("cpu-1").finding, 0.0)
    follows.resume(resolved("cpu-1").finding, 50.0)
    assert due(follows, 0.0).complete_s == 60.0
    assert follows.newly_kept(50.0) == []
