"""What subjects used before a case: of whom that is known, and what is kept of it."""

from __future__ import annotations

import pytest

from reveal_analyzer.state.tree import section
from reveal_analyzer.subjects.culprits import CulpritQuery
from reveal_analyzer.subjects.means import Level
from reveal_analyzer.subjects.reference import SubjectReference
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND
from support.subject_timeline import USAGE, SubjectTimeline, cpus, ns, pod

CPU_TIME = CulpritQuery((USAGE,), Subsystem.CPU)


def test_who_was_there_only_in_seconds_of_other_cases_is_compared_with_nothing() -> None:
    node = SubjectTimeline(pod("trainer"))
    node.play(60, cpus(trainer=6.0))
    node.announced.append(pod("hog", since_ns=ns(60)))
    node.play(60, cpus(trainer=5.0, hog=2.5))
    first = frozenset(range(ns(60), ns(120), NS_PER_SECOND))  # active seconds of an earlier case
    node.now += 90  # no slice of the node arrives
    node.play(10, cpus(trainer=5.0, hog=2.5))
    assert node.look(node.case(210, first), CPU_TIME).first == "ml/hog"


@pytest.mark.parametrize(("count", "most"), [(1, 8.0), (2, 8.0), (4, 8.0), (10, 4.8), (60, 1.6)])
def test_the_busiest_seconds_of_a_level_have_no_more_than_its_busier_half(
    count: int, most: float
) -> None:
    assert Level(1.0, 1.6, 8.0).busiest(count, 60) == pytest.approx(most)


def test_a_reference_saved_without_peaks_is_restored() -> None:
    node = SubjectTimeline(pod("trainer"))
    node.play(100, cpus(trainer=6.0))
    tree = node.case(100).reference.save()
    means = dict(section(tree, "means"))
    del means["peak"]
    restored = SubjectReference.restore(tree | {"means": means})
    (level,) = restored.means.of(USAGE).values()
    assert tuple(level) == pytest.approx((6e9, 6e9, 6e9), rel=0.02)
