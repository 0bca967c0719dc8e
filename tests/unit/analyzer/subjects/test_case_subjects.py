"""A case keeps who was there before it: no later look replaces its culprit by an innocent one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reveal_analyzer.state.codec import Position, SavedState, decode, encode
from reveal_analyzer.state.tree import StateError, StateTree, StateValue, section
from reveal_analyzer.subjects.case_subjects import CaseSubjects
from reveal_analyzer.subjects.culprits import CulpritQuery
from reveal_analyzer.subjects.finding_subjects import NamedSubjects
from reveal_analyzer.subjects.reference import SubjectReference
from reveal_contract import catalogue
from reveal_contract.finding import Confidence
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND
from support.subject_timeline import USAGE, SubjectTimeline, cpus, ns, pod

CPU_TIME = CulpritQuery((USAGE,), Subsystem.CPU)
BEFORE = cpus(trainer=6.0, hog=0.0)
DURING = cpus(trainer=5.0, hog=2.5)


def shares(named: NamedSubjects) -> list[tuple[str, int, int]]:
    return [(each.name, each.share_percent, each.change_percent) for each in named.pods]


def saved_and_loaded(case: CaseSubjects) -> StateTree:
    """Return the state of a case as another process reads it."""
    position = Position("n1", b"boot", 7, 0)
    return section(decode(encode(SavedState(position, 0, {"case": case.save()}))).tree, "case")


def started() -> tuple[SubjectTimeline, CaseSubjects]:
    """A job of 6 CPUs loses one to a hog that begins at second 100."""
    node = SubjectTimeline(pod("trainer"), pod("hog"))
    node.play(100, BEFORE)
    node.play(5, DURING)
    return node, node.case(100)


@pytest.mark.parametrize("query", [CPU_TIME, CulpritQuery((), Subsystem.CPU)])
def test_a_culprit_stays_named_however_long_the_case_lasts(query: CulpritQuery) -> None:
    node, case = started()
    for seconds in (0, 100, 100, 400, 3000):
        node.play(seconds, DURING)
        assert shares(node.look(case, query)) == [("hog", 33, 33)]
        assert case.victims(node.history, (USAGE,), [ns(node.now - 1)]) == ()
    assert case.notes == ()


def test_victims_stay_known_however_long_the_case_lasts() -> None:
    node, case = started()
    node.play(1, cpus(trainer=2.0, hog=2.5))
    for seconds in (10, 600):
        node.play(seconds, cpus(trainer=2.0, hog=2.5))
        active = [ns(node.now - 1)]
        assert node.look(case, CPU_TIME).first == "ml/hog"
        assert case.victims(node.history, (USAGE,), active) == ("ml/trainer",)


def test_without_an_active_second_in_memory_the_last_answer_stays() -> None:
    node, case = started()
    opened = node.look(case, CPU_TIME)
    hurt = case.victims(node.history, (USAGE,), [ns(104)])
    node.play(300, BEFORE)
    assert case.culprits(node.history, CPU_TIME, [ns(103), ns(104)]) == opened
    assert case.victims(node.history, (USAGE,), [ns(103), ns(104)]) == hurt


def test_a_neighbor_that_grows_later_does_not_replace_the_culprit() -> None:
    node, case = started()
    node.look(case, CPU_TIME)
    node.play(100, DURING)
    node.play(100, cpus(trainer=12.0, hog=2.5))
    named = node.look(case, CPU_TIME)
    assert named.first == "ml/hog"
    assert named.pods[0].name == "hog"
    assert case.notes == ()


def test_a_note_names_the_culprit_that_is_back_and_its_successor() -> None:
    node = SubjectTimeline(pod("first"), pod("second"))
    node.play(100, cpus(first=0.1, second=0.1))
    node.play(20, cpus(first=4.0, second=0.1))
    case = node.case(100)
    assert node.look(case, CPU_TIME).first == "ml/first"
    node.play(50, cpus(first=4.0, second=4.0))
    assert node.look(case, CPU_TIME).first == "ml/first"
    node.play(5, cpus(first=0.1, second=4.0))
    assert node.look(case, CPU_TIME).first == "ml/first"  # not for long enough
    node.play(6, cpus(first=0.1, second=4.0))
    assert node.look(case, CPU_TIME).first == "ml/second"
    (note,) = case.notes
    assert "ml/first is back at its level from before, and ml/second is not" in note


def test_a_culprit_that_restarts_under_another_uid_stays_the_culprit() -> None:
    node = SubjectTimeline(pod("trainer"), pod("hog", "u1"))
    node.play(100, BEFORE)
    node.play(60, DURING)
    case = node.case(100)
    assert node.look(case, CPU_TIME).pods[0].uid == "u1"
    node.play(50, DURING)
    node.announced = [
        pod("trainer"), pod("hog", "u1", until_ns=ns(node.now)),
        pod("hog", "u2", since_ns=ns(node.now)),
    ]  # fmt: skip
    node.play(70, DURING)
    named = node.look(case, CPU_TIME)
    assert [(each.name, each.uid) for each in named.pods] == [("hog", "u2")]
    assert case.notes == ()


def test_a_culprit_that_was_replaced_by_a_pod_of_another_name_is_followed() -> None:
    node = SubjectTimeline(pod("trainer"), pod("hog-a"))
    node.play(100, cpus(trainer=6.0, **{"hog-a": 0.0}))
    node.play(100, cpus(trainer=5.0, **{"hog-a": 2.5}))
    case = node.case(100)
    assert node.look(case, CPU_TIME).first == "ml/hog-a"
    node.announced = [
        pod("trainer"), pod("hog-a", until_ns=ns(node.now)),
        pod("hog-b", since_ns=ns(node.now)),
    ]  # fmt: skip
    node.play(15, cpus(trainer=5.0, **{"hog-b": 2.5}))
    assert node.look(case, CPU_TIME).first == "ml/hog-b"
    assert len(case.notes) == 1


def test_a_case_that_is_restored_goes_on_with_its_reference() -> None:
    node, case = started()
    opened = node.look(case, CPU_TIME)
    after = SubjectTimeline(pod("trainer"), pod("hog"))
    after.now = 1000  # the analyzer that takes over has seen nothing of the time before
    restored = CaseSubjects.restore(saved_and_loaded(case))
    assert restored.culprits(after.history, CPU_TIME, []) == opened
    after.play(30, DURING)
    assert shares(after.look(restored, CPU_TIME)) == [("hog", 33, 33)]
    assert restored.victims(after.history, (USAGE,), [ns(after.now - 1)]) == ()
    after.play(30, cpus(trainer=2.0, hog=2.5))
    assert restored.victims(after.history, (USAGE,), [ns(after.now - 1)]) == ("ml/trainer",)


def test_a_culprit_is_back_after_ten_seconds_on_its_level_from_before() -> None:
    node, case = started()
    assert not case.is_culprit_back(node.history)
    node.look(case, CPU_TIME)
    node.play(9, BEFORE)
    assert not case.is_culprit_back(node.history)
    node.play(1, BEFORE)
    assert case.is_culprit_back(node.history)


def test_a_culprit_that_is_not_read_is_not_back() -> None:
    node, case = started()
    node.look(case, CPU_TIME)
    node.play(30, cpus(trainer=5.0) | {(USAGE, "ml/hog"): float("nan")})
    assert not case.is_culprit_back(node.history)


def test_the_same_fault_again_is_not_compared_with_its_first_time() -> None:
    node = SubjectTimeline(pod("trainer"), pod("hog"))
    node.play(100, BEFORE)
    node.play(40, DURING)
    first = frozenset(range(ns(100), ns(140), NS_PER_SECOND))
    node.play(30, BEFORE)
    node.play(10, DURING)
    case = node.case(170, first)
    assert shares(node.look(case, CPU_TIME)) == [("hog", 33, 33)]


def test_of_a_young_case_the_culprit_may_still_become_another() -> None:
    node = SubjectTimeline(pod("a"), pod("b"))
    node.play(100, cpus(a=0.0, b=0.0))
    node.play(5, cpus(a=0.5) | {(USAGE, "ml/b"): float("nan")})  # not read for some seconds
    case = node.case(100)
    assert node.look(case, CPU_TIME).first == "ml/a"
    node.play(30, cpus(a=0.5, b=6.0))
    named = node.look(case, CPU_TIME)
    assert named.first == "ml/b"
    assert all(each.confidence is Confidence.MEASURED for each in named.pods)


def test_a_saved_case_of_a_full_node_is_small() -> None:
    rng = np.random.default_rng(1)
    names = [f"job-{number}" for number in range(64)]
    metrics = [row.name for row in catalogue.rows() if row.source == "subjects"]
    node = SubjectTimeline(*map(pod, names))
    for _ in range(70):
        used = rng.gamma(1.0, 1e6, (len(metrics), len(names)))
        node.play(1, {(m, f"ml/{n}"): v for m, row in zip(metrics, used, strict=True)
                      for n, v in zip(names, row, strict=True)})  # fmt: skip
    case = node.case(60)
    node.look(case, CPU_TIME)
    assert case.onset is not None
    assert len(encode(SavedState(Position("n1", b"", 7, 0), 0, case.save()))) < 12 * 1024


@pytest.mark.parametrize("damage", [
    {"first_ns": "soon"}, {"reference": {}}, {"hurt": [1]}, {"named": {"metric": "x"}},
    {"onset": 3}, {"fell": 1},
])  # fmt: skip
def test_a_damaged_state_is_refused(damage: dict[str, StateValue]) -> None:
    node, case = started()
    node.look(case, CPU_TIME)
    with pytest.raises(StateError):
        CaseSubjects.restore(case.save() | damage)


def test_levels_of_another_shape_or_without_bounds_are_refused() -> None:
    _, case = started()
    tree = case.reference.save()
    means = section(tree, "means")
    for damage in ({"mean": np.zeros((1, 1))}, {"high": np.full((1, 2), np.inf)}, {"uids": []}):
        with pytest.raises(StateError):
            SubjectReference.restore(tree | {"means": dict(means) | damage})


def test_the_culprit_of_another_case_succeeds_no_other_culprit() -> None:
    node = SubjectTimeline(pod("first"), pod("second"))
    node.play(100, cpus(first=0.1, second=0.1))
    node.play(70, cpus(first=4.0, second=0.1))
    case = node.case(100)
    assert node.look(case, CPU_TIME).first == "ml/first"
    node.play(30, cpus(first=0.1, second=4.0))
    others = replace(CPU_TIME, others=frozenset({"ml/second"}))
    assert node.look(case, others).first == "ml/first"
    assert case.notes == ()
    assert node.look(case, CPU_TIME).first == "ml/second"


def test_what_a_subject_used_before_a_long_gap_is_no_reference() -> None:
    node = SubjectTimeline(pod("trainer"), pod("hog"))
    node.play(60, cpus(trainer=3.0, hog=3.0))
    node.now += 600
    node.play(20, cpus(trainer=3.0, hog=0.1))
    node.play(10, cpus(trainer=3.0, hog=2.5))
    case = node.case(680)
    assert node.look(case, CPU_TIME).first == "ml/hog"
    assert [each.confidence for each in node.look(case, CPU_TIME).pods] == [Confidence.MEASURED]
