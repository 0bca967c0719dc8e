"""Who is named first: who grew by the amount that explains the case, from its onset on."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reveal_analyzer.subjects.culprits import CulpritQuery
from reveal_analyzer.subjects.finding_subjects import NamedSubjects
from reveal_contract.finding import Confidence
from reveal_contract.metric import Subsystem
from reveal_contract.subjects import Identity, SubjectKind
from support.subject_timeline import CPU, USAGE, SubjectTimeline, cpus, ns, pod

CPU_TIME = CulpritQuery((USAGE,), Subsystem.CPU)
READ, WRITTEN, WAITED, WRITES = (
    "storage.subject.read_bytes", "storage.subject.write_bytes", "storage.subject.pressure",
    "storage.subject.writes",
)  # fmt: skip
NAN = float("nan")


def usage(**used: float) -> dict[tuple[str, str], float]:
    """Return CPU time in CPUs by instance, without that of the host."""
    return {(USAGE, name): each * CPU for name, each in used.items()}


def named(
    node: SubjectTimeline, before: Mapping[tuple[str, str], float],
    during: Mapping[tuple[str, str], float], query: CulpritQuery = CPU_TIME, seconds: int = 20,
) -> NamedSubjects:  # fmt: skip
    """Return who is named after 100 s before a case and some seconds of it."""
    node.play(100, before)
    node.play(seconds, during)
    return node.look(node.case(100), query)


def confidences(found: NamedSubjects) -> dict[str, Confidence]:
    pods = {pod.name: pod.confidence for pod in found.pods}
    return pods | {each.name: each.confidence for each in found.subjects}


def test_shares_are_of_a_stated_metric_and_never_exceed_all() -> None:
    node = SubjectTimeline(pod("reader"), pod("writer"), pod("waiter"))
    metrics = (READ, WRITTEN, WAITED)
    before = {(m, f"ml/{name}"): 0.0 for m in metrics for name in ("reader", "writer", "waiter")}
    during = before | {
        (READ, "ml/reader"): 5e8, (WRITTEN, "ml/writer"): 4e8, (WAITED, "ml/waiter"): 9e8
    }  # fmt: skip
    found = named(node, before, during, CulpritQuery((), Subsystem.STORAGE))
    assert found.metric == READ
    assert [(each.name, each.share_percent) for each in found.pods] == [("reader", 100)]


def test_rounded_shares_never_exceed_all() -> None:
    node = SubjectTimeline(*map(pod, "abc"))
    found = named(node, cpus(a=0.0, b=0.0, c=0.0), cpus(a=3.35, b=3.35, c=3.30))
    assert sum(each.share_percent for each in found.pods) <= 100
    assert len(found.pods) == 3


def test_a_culprit_that_starts_exactly_with_the_case_is_compared_with_nothing() -> None:
    node = SubjectTimeline(pod("trainer"))
    node.play(100, cpus(trainer=6.0))
    node.announced.append(pod("hog", since_ns=ns(100)))
    node.play(1, cpus(trainer=5.0))  # its channels follow a second later
    node.play(9, cpus(trainer=5.0, hog=2.5))
    found = node.look(node.case(100), CPU_TIME)
    (hog,) = found.pods
    assert (hog.name, hog.confidence) == ("hog", Confidence.MEASURED)
    assert 25 <= hog.share_percent <= 34


def test_an_announced_pod_that_was_not_measured_before_is_no_culprit() -> None:
    node = SubjectTimeline(pod("old"), pod("hog"))
    other = {(USAGE, "ml/hog"): 0.0}
    node.play(100, other)
    node.play(10, {(USAGE, "ml/hog"): 0.0, (USAGE, "ml/old"): 3 * CPU})
    found = node.look(node.case(100), CPU_TIME)
    assert found.first == ""
    assert confidences(found) == {"old": Confidence.CO_LOCATED}


def test_without_any_second_before_nobody_grew() -> None:
    node = SubjectTimeline(pod("trainer"), pod("hog"))
    node.play(20, cpus(trainer=6.0, hog=2.5))
    found = node.look(node.case(0), CPU_TIME)
    assert found.first == ""
    assert set(confidences(found).values()) == {Confidence.CO_LOCATED}


def test_where_the_level_is_the_fault_it_needs_no_second_before() -> None:
    throttled = "cpu.subject.throttled_time"
    query = CulpritQuery((throttled,), Subsystem.CPU, levels=frozenset({throttled}))
    node = SubjectTimeline(pod("limited"), pod("other"))
    node.play(20, {(throttled, "ml/limited"): 9e8, (throttled, "ml/other"): 0.0})
    found = node.look(node.case(0), query)
    assert confidences(found) == {"limited": Confidence.MEASURED}
    # nor does it need growth: it has been throttled all the time
    node.play(100, {(throttled, "ml/limited"): 9e8, (throttled, "ml/other"): 0.0})
    assert node.look(node.case(100), query).first == "ml/limited"


def test_the_containers_of_a_pod_count_together() -> None:
    w1, w2 = (
        Identity(f"ml/a/{name}", SubjectKind.CONTAINER, f"c-{name}", "ml", "a", name, parent="ml/a")
        for name in ("w1", "w2")
    )
    node = SubjectTimeline(pod("a"), pod("b"), w1, w2)
    before = usage(**{"ml/a": 0.0, "ml/a/w1": 0.0, "ml/a/w2": 0.0, "ml/b": 0.0})
    during = usage(**{"ml/a": 2.0, "ml/a/w1": 1.0, "ml/a/w2": 1.0, "ml/b": 1.5})
    found = named(node, before, during)
    assert found.first == "ml/a"
    assert [(each.name, each.container, each.share_percent) for each in found.pods] == [
        ("a", "w1", 28), ("a", "w2", 28), ("b", "", 42)
    ]  # fmt: skip


def test_ten_equal_culprits_are_named_in_the_same_order_each_time() -> None:
    names = [f"job-{number}" for number in range(10)]
    node = SubjectTimeline(*map(pod, names))
    node.play(100, cpus(**dict.fromkeys(names, 0.0)))
    case, first = None, set()
    for second in range(30):
        # each is a little ahead of the others in its turn
        node.play(
            1, cpus(**{name: 1.0 + 0.01 * (n == second % 10) for n, name in enumerate(names)})
        )
        if second >= 5:
            case = case or node.case(100)
            found = node.look(case, CPU_TIME)
            first.add(found.first)
            assert sum(each.share_percent for each in found.pods) <= 100
            assert max(each.share_percent for each in found.pods) < 50
    assert len(first) == 1


def test_a_subject_table_that_arrives_late_does_not_hide_the_time_before() -> None:
    node = SubjectTimeline()
    node.play(100, cpus(trainer=6.0, hog=0.1))
    node.play(10, cpus(trainer=5.0, hog=2.5))
    case = node.case(100)
    opened = node.look(case, CPU_TIME)
    assert [each.name for each in opened.subjects] == ["ml/hog"]
    node.announced = [pod("trainer"), pod("hog")]
    node.play(10, cpus(trainer=5.0, hog=2.5))
    found = node.look(case, CPU_TIME)
    assert [(each.name, each.change_percent) for each in found.pods] == [("hog", 32)]


def test_a_pod_that_is_listed_late_keeps_the_time_under_its_uid() -> None:
    cgroup = "/kubepods/pod1"
    unlisted = Identity("pod:u1", SubjectKind.POD, "u1", cgroup=cgroup)
    node = SubjectTimeline(unlisted, pod("hog"))
    node.play(100, usage(**{"pod:u1": 6.0, "ml/hog": 0.0}))
    node.announced = [
        Identity("ml/trainer", SubjectKind.POD, "u1", "ml", "trainer", cgroup=cgroup,
                 since_ns=ns(100)),
        pod("hog"),
    ]  # fmt: skip
    node.play(20, usage(**{"ml/trainer": 6.0, "ml/hog": 2.0}))
    case = node.case(100)
    assert node.look(case, CPU_TIME).names == ("ml/hog",)


def test_seconds_without_a_value_count_for_nothing() -> None:
    node = SubjectTimeline(pod("trainer"), pod("hog"))
    for second in range(100):  # two of three values are missing
        node.play(
            1, cpus(trainer=6.0 if second % 3 == 0 else NAN, hog=0.0) | {("cpu.run_time", ""): 6e9}
        )
    for second in range(20):
        node.play(
            1, cpus(trainer=6.0 if second % 4 else NAN, hog=2.5) | {("cpu.run_time", ""): 8.5e9}
        )
    found = node.look(node.case(100), CPU_TIME)
    assert [(each.name, each.share_percent) for each in found.pods] == [("hog", 29)]


def test_who_only_reacted_is_not_the_culprit_though_it_uses_more() -> None:
    node = SubjectTimeline(pod("hog"), pod("analyzer"))
    node.play(100, cpus(hog=0.0, analyzer=0.05))
    node.play(5, cpus(hog=1.0, analyzer=0.05))
    node.play(30, cpus(hog=1.0, analyzer=3.0))
    found = node.look(node.case(100), CPU_TIME)
    assert found.first == "ml/hog"
    assert confidences(found) == {"hog": Confidence.MEASURED, "analyzer": Confidence.INFERRED}


def test_a_daemon_that_doubles_its_little_use_explains_nothing() -> None:
    node = SubjectTimeline(pod("trainer"), pod("hog"), pod("agent"))
    before = cpus(trainer=6.0, hog=1.0, agent=0.02)
    found = named(node, before, cpus(trainer=5.0, hog=3.0, agent=0.2))
    assert found.names == ("ml/hog",)


def test_growth_outside_of_all_subjects_belongs_to_none_of_them() -> None:
    node = SubjectTimeline(pod("analyzer"), pod("idle"))
    before = cpus(analyzer=0.1, idle=0.0)
    outside = cpus(analyzer=0.4, idle=0.0) | {("cpu.run_time", ""): 5.4 * CPU}
    found = named(node, before, outside)
    assert found.first == ""
    assert set(confidences(found).values()) <= {Confidence.CO_LOCATED}


def test_of_a_smaller_part_than_the_growth_outside_nothing_is_measured() -> None:
    node = SubjectTimeline(pod("sender"))
    before = cpus(sender=0.1)
    found = named(node, before, cpus(sender=0.6) | {("cpu.run_time", ""): 1.6 * CPU})
    assert confidences(found) == {"sender": Confidence.INFERRED}


def test_a_process_group_that_grew_more_than_a_pod_is_the_foremost() -> None:
    node = SubjectTimeline(pod("agent"))
    before = usage(**{"ml/agent": 0.5, "pgrp:sh[1]": 0.1, "pgrp:stress[7]": 0.0})
    during = usage(**{"ml/agent": 1.2, "pgrp:sh[1]": 0.1, "pgrp:stress[7]": 5.0})
    found = named(node, before, during)
    assert found.first == "pgrp:stress[7]"
    assert confidences(found)["pgrp:stress[7]"] is Confidence.INFERRED


def test_a_process_group_that_appears_in_the_case_is_compared_with_nothing() -> None:
    node = SubjectTimeline(pod("trainer"))
    node.play(100, usage(**{"ml/trainer": 6.0}))
    node.play(2, usage(**{"ml/trainer": 5.5}))
    node.play(10, usage(**{"ml/trainer": 5.5, "pgrp:stress[7]": 4.0}))
    assert node.look(node.case(100), CPU_TIME).first == "pgrp:stress[7]"


def test_an_idle_process_group_that_is_read_late_is_still_the_culprit() -> None:
    node = SubjectTimeline(pod("trainer"))
    calm = usage(**{"ml/trainer": 6.0, "pgrp:worker[7]": 0.0})
    node.play(107, calm)  # it has been busy for seven seconds, and was not read
    node.play(1, usage(**{"ml/trainer": 5.5, "pgrp:worker[7]": 16.0}))
    node.play(10, usage(**{"ml/trainer": 5.5, "pgrp:worker[7]": 2.0}))
    assert node.look(node.case(100), CPU_TIME).first == "pgrp:worker[7]"


def test_a_short_lived_process_group_stays_named_after_its_end() -> None:
    node = SubjectTimeline(pod("trainer"))
    node.play(100, usage(**{"ml/trainer": 6.0}))
    node.play(10, usage(**{"ml/trainer": 5.5, "pgrp:cc[7]": 4.0}))
    case = node.case(100)
    assert node.look(case, CPU_TIME).first == "pgrp:cc[7]"
    node.play(200, usage(**{"ml/trainer": 6.0}))
    assert node.look(case, CPU_TIME).first == "pgrp:cc[7]"


def test_what_is_inside_an_unannounced_cgroup_counts_once() -> None:
    node = SubjectTimeline()
    before = usage(**{"/docker/c": 0.1, "/docker/c/a/job": 0.1, "pgrp:x[7]": 1.0})
    during = usage(**{"/docker/c": 3.1, "/docker/c/a/job": 3.1, "pgrp:x[7]": 1.0})
    found = named(node, before, during)
    assert [(each.name, each.share_percent) for each in found.subjects] == [("/docker/c/a/job", 76)]


@pytest.mark.parametrize("steady", [2000.0, 20.0])
def test_steady_reads_are_no_culprit_of_a_flush_storm(steady: float) -> None:
    reads = "storage.subject.reads"
    query = CulpritQuery((reads, READ, WRITES), Subsystem.STORAGE)
    node = SubjectTimeline(pod("reader"), pod("database"))
    before = {(reads, "ml/reader"): steady, (WRITES, "ml/database"): 5.0}
    # flushes delay the reads of the other one
    during = {(reads, "ml/reader"): steady / 2, (WRITES, "ml/database"): 900.0}
    found = named(node, before, during, query)
    assert found.names == ("ml/database",)
    alone = named(SubjectTimeline(pod("reader")), {(reads, "ml/reader"): steady},
                  {(reads, "ml/reader"): steady / 2}, query)  # fmt: skip
    assert alone.first == ""


def test_a_phase_of_its_own_work_is_no_growth() -> None:
    node = SubjectTimeline(pod("trainer"), pod("hog"))
    for _ in range(10):  # five seconds of compute, five of exchange
        node.play(5, cpus(trainer=8.0, hog=0.0))
        node.play(5, cpus(trainer=1.0, hog=0.0))
    node.play(10, cpus(trainer=8.0, hog=1.0))
    assert node.look(node.case(100), CPU_TIME).names == ("ml/hog",)


def test_a_query_for_a_subject_names_no_other() -> None:
    throttled = "cpu.subject.throttled_time"
    before = {(throttled, "ml/a"): 0.0, (throttled, "ml/b"): 0.0}
    during = {(throttled, "ml/a"): 5e8, (throttled, "ml/b"): 9e8}
    for instance, first in (("ml/a", "ml/a"), ("nvme0n1", "ml/b")):
        query = CulpritQuery((throttled,), Subsystem.CPU, instance=instance)
        assert named(SubjectTimeline(pod("a"), pod("b")), before, during, query).first == first


def test_of_an_unknown_fault_who_suffers_is_no_culprit_beside_who_acts() -> None:
    node = SubjectTimeline(pod("writer"), pod("waiter"))
    before = {(WRITTEN, "ml/writer"): 0.0, (WAITED, "ml/waiter"): 0.0, (WAITED, "ml/writer"): 0.0}
    during = {(WRITTEN, "ml/writer"): 5e7, (WAITED, "ml/waiter"): 9e8, (WAITED, "ml/writer"): 1e8}
    found = named(node, before, during, CulpritQuery((), Subsystem.STORAGE))
    assert confidences(found) == {"writer": Confidence.MEASURED}
    assert found.metric == WRITTEN


def test_who_only_suffers_is_inferred() -> None:
    node = SubjectTimeline(pod("waiter"))
    query = CulpritQuery((), Subsystem.STORAGE)
    found = named(node, {(WAITED, "ml/waiter"): 0.0}, {(WAITED, "ml/waiter"): 9e8}, query)
    assert confidences(found) == {"waiter": Confidence.INFERRED}


def test_a_single_killed_process_names_its_pod() -> None:
    kills, faults = "memory.subject.oom_kills", "memory.subject.page_faults"
    query = CulpritQuery((kills, faults), Subsystem.MEMORY, levels=frozenset({kills}))
    node = SubjectTimeline(pod("small"), pod("starting"))
    calm = {(kills, "ml/small"): 0.0, (faults, "ml/small"): 10.0, (faults, "ml/starting"): 0.0}
    node.play(100, calm)
    node.play(1, calm | {(kills, "ml/small"): 1.0, (faults, "ml/starting"): 9e4})
    node.play(30, calm | {(faults, "ml/starting"): 9e4})
    assert node.look(node.case(100), query).first == "ml/small"
