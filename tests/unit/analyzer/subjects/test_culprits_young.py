"""Who is named in the first seconds of a case: nobody, until it is clear."""

from __future__ import annotations

import pytest

from reveal_analyzer.subjects.culprits import CulpritQuery
from reveal_analyzer.subjects.finding_subjects import NamedSubjects
from reveal_contract.finding import Confidence
from reveal_contract.metric import Subsystem
from support.subject_timeline import CPU, USAGE, SubjectTimeline, Values, cpus, ns, pod

CPU_TIME = CulpritQuery((USAGE,), Subsystem.CPU)
UNDECIDED = NamedSubjects(undecided=True)
KILLS, FAULTS, HOST_KILLS = (
    "memory.subject.oom_kills", "memory.subject.page_faults", "memory.vm.oom_kill",
)  # fmt: skip
OOM = CulpritQuery((KILLS, FAULTS), Subsystem.MEMORY, levels=frozenset({KILLS}))


def host(used: float) -> dict[tuple[str, str], float]:
    """Return CPU time of the host, in CPUs."""
    return {("cpu.run_time", ""): used * CPU}


def bursts(node: SubjectTimeline) -> None:
    """Play a minute and more of a job that computes for two seconds of ten."""
    for _ in range(10):
        node.play(8, cpus(trainer=1.0, hog=0.0))
        node.play(2, cpus(trainer=8.0, hog=0.0))


@pytest.mark.parametrize("seconds", [1, 2, 3])
def test_a_burst_of_a_job_is_no_growth_however_short_the_case(seconds: int) -> None:
    node = SubjectTimeline(pod("trainer"), pod("hog"))
    bursts(node)
    node.play(min(seconds, 2), cpus(trainer=8.0, hog=0.0))
    node.play(max(seconds - 2, 0), cpus(trainer=1.0, hog=0.0))
    assert node.look(node.case(100), CPU_TIME) == UNDECIDED


def test_who_grew_is_named_beside_a_burst() -> None:
    node = SubjectTimeline(pod("trainer"), pod("hog"))
    bursts(node)
    node.play(2, cpus(trainer=8.0, hog=1.0))
    assert node.look(node.case(100), CPU_TIME).names == ("ml/hog",)


def test_a_job_that_computes_for_longer_than_in_any_burst_is_named() -> None:
    node = SubjectTimeline(pod("trainer"), pod("hog"))
    bursts(node)
    case = node.case(100)
    node.play(25, cpus(trainer=8.0, hog=0.0))
    assert node.look(case, CPU_TIME).first == "ml/trainer"


def test_nobody_is_named_before_those_that_began_with_the_case_are_read() -> None:
    node = SubjectTimeline(pod("trainer"))
    node.play(100, cpus(trainer=2.0))
    node.announced.append(pod("hog", since_ns=ns(100)))
    node.play(2, cpus(trainer=4.0) | host(8.0))  # its channels follow two seconds later
    case = node.case(100)
    assert node.look(case, CPU_TIME) == UNDECIDED
    node.play(1, cpus(trainer=4.0, hog=4.0))
    found = node.look(case, CPU_TIME)
    assert found.first == "ml/hog"
    assert found.pods[0].confidence is Confidence.MEASURED


def test_pods_that_are_only_there_are_listed_when_the_first_seconds_are_over() -> None:
    node = SubjectTimeline(pod("trainer"))
    node.play(100, cpus(trainer=6.0))
    case = node.case(100)
    for _ in range(4):
        node.play(1, cpus(trainer=6.0))
        assert node.look(case, CPU_TIME) == UNDECIDED
    node.play(1, cpus(trainer=6.0))
    found = node.look(case, CPU_TIME)
    assert not found.undecided
    assert [each.confidence for each in found.pods] == [Confidence.CO_LOCATED]


def test_where_no_subject_is_read_nothing_becomes_known() -> None:
    node = SubjectTimeline()
    node.play(100, host(1.0))
    node.play(2, host(2.0))
    assert node.look(node.case(100), CPU_TIME) == NamedSubjects()


def kills(of_host: float, small: float, service: float) -> Values:
    """Return kills and page faults of a node with a pod and a service that starts."""
    return {
        (HOST_KILLS, ""): of_host, (KILLS, "ml/small"): small, (KILLS, "ml/service"): 0.0,
        (FAULTS, "ml/small"): 10.0, (FAULTS, "ml/service"): service,
    }  # fmt: skip


def test_another_metric_than_the_fault_itself_names_nobody_in_the_first_seconds() -> None:
    node = SubjectTimeline(pod("small"), pod("service"))
    node.play(100, kills(0.0, 0.0, 10.0))
    node.play(1, kills(1.0, 0.0, 9e4))  # the pod is read a second later
    case = node.case(100)
    assert node.look(case, OOM) == UNDECIDED
    node.play(1, kills(1.0, 2.0, 9e4))
    assert node.look(case, OOM).first == "ml/small"


def test_another_metric_than_the_fault_itself_is_only_inferred() -> None:
    node = SubjectTimeline(pod("small"), pod("service"))
    node.play(100, kills(0.0, 0.0, 10.0))
    node.play(8, kills(1.0, 0.0, 9e4))
    found = node.look(node.case(100), OOM)
    assert [(each.name, each.confidence) for each in found.pods] == [
        ("service", Confidence.INFERRED)
    ]


def test_a_process_group_that_is_read_late_is_not_named_in_the_first_seconds() -> None:
    node = SubjectTimeline(pod("hog"))
    idle, busy = "pgrp:agent[7]", cpus(hog=1.0)
    node.play(100, cpus(hog=0.0) | {(USAGE, idle): 0.01 * CPU})
    case = node.case(100)
    # what it used in seconds before comes in a single step
    node.play(1, cpus(hog=0.5) | {(USAGE, idle): 2.0 * CPU} | host(0.7))
    assert node.look(case, CPU_TIME) == UNDECIDED
    node.play(3, busy | {(USAGE, idle): 0.01 * CPU} | host(1.0))
    assert node.look(case, CPU_TIME).first == "ml/hog"
