"""Which subjects a finding names: pods by their share of the host's counter, by uid."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.derive.columns import column_plan
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.subjects.culprits import CulpritQuery
from reveal_analyzer.subjects.finding_subjects import NamedSubjects
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import Confidence
from reveal_contract.metric import Kind, Subsystem
from reveal_contract.subjects import Identity, SubjectKind
from reveal_contract.time_units import NS_PER_SECOND

USAGE = "cpu.subject.usage"
POD, CONTAINER = SubjectKind.POD, SubjectKind.CONTAINER
Used = dict[str, tuple[float, float]]  # CPUs by instance, before and from second 60 on


def changed(
    used: Used, identities: list[Identity], subsystem: Subsystem = Subsystem.CPU, host: float = 2.0,
    metric: str = "",
) -> NamedSubjects:  # fmt: skip
    """Return who is named after two minutes of CPU use, the second of which is the episode."""
    channels = [Channel(metric or USAGE, name, Kind.COUNTER) for name in used]
    table = ChannelTable((*channels, Channel("cpu.run_time", "0", Kind.COUNTER)), ())
    history = SubjectHistory(lambda: identities)
    columns = column_plan(table)
    for second in range(120):
        values = [each[second >= 60] * 1e9 for each in used.values()]
        observed = np.array([*values, host * 1e9])
        history.push(Second(columns, second * NS_PER_SECOND, observed[:0], observed))
    named = history.culprits(
        CulpritQuery((metric,) if metric else (), subsystem),
        history.before(60 * NS_PER_SECOND),
        history.seconds(60 * NS_PER_SECOND, 120 * NS_PER_SECOND),
    )
    assert named is not None
    return named


def pod(name: str, uid: str = "u1", **more: object) -> Identity:
    return Identity(f"ml/{name}", POD, uid, "ml", name, **more)  # type: ignore[arg-type]


def test_a_pod_that_grew_is_named_with_its_share_of_the_host() -> None:
    named = changed(
        {"ml/a": (0.2, 1.2), "ml/b": (0.5, 0.5)}, [pod("a", container="main"), pod("b", "u2")]
    )
    (first,) = named.pods
    assert (first.namespace, first.name, first.uid, first.container) == ("ml", "a", "u1", "main")
    assert (first.share_percent, first.change_percent) == (60, 50)
    assert first.confidence is Confidence.MEASURED
    assert (named.subjects, named.first) == ((), "ml/a")


def test_a_pod_throttled_only_in_the_minute_before_is_not_named() -> None:
    throttled = {"ml/now": (0.0, 0.9), "ml/before": (0.8, 0.0)}
    named = changed(
        throttled, [pod("now"), pod("before", "u2")], metric="cpu.subject.throttled_time"
    )
    assert [each.name for each in named.pods] == ["now"]


def test_what_a_subject_inside_used_is_not_its_parents() -> None:
    inner = Identity("/docker/c/pod", SubjectKind.CGROUP, "7", parent="/docker/c")
    outer = Identity("/docker/c", CONTAINER, "c")
    named = changed({"/docker/c": (0.2, 1.2), "/docker/c/pod": (0.1, 1.1)}, [outer, inner])
    assert [(each.name, each.kind, each.share_percent) for each in named.subjects] == [
        ("/docker/c/pod", "Cgroup", 55)
    ]


FAULTS = "memory.subject.page_faults"


def test_a_process_group_in_a_memory_cgroup_has_its_use_once() -> None:
    """As on hosts with cgroup v1, where a session has a cgroup of memory and none of the CPU."""
    session = Identity("/session", SubjectKind.CGROUP, "7", inner=("pgrp:find[9]", "pgrp:job[8]"))
    used = {"/session": (1.0, 4.0), "pgrp:find[9]": (0.0, 3.0), "pgrp:job[8]": (1.0, 1.0)}
    named = changed(used, [session], Subsystem.MEMORY, metric=FAULTS)
    assert [(each.name, each.share_percent) for each in named.subjects] == [("pgrp:find[9]", 75)]


def test_a_pod_is_preferred_to_its_process_groups() -> None:
    trainer = pod("a", inner=("pgrp:python[9]",))
    used = {"ml/a": (1.0, 4.0), "pgrp:python[9]": (0.9, 3.8)}
    assert changed(used, [trainer], Subsystem.MEMORY, metric=FAULTS).first == "ml/a"


def test_a_recreated_pod_is_not_compared_with_its_predecessor() -> None:
    old = pod("a", "old", until_ns=60 * NS_PER_SECOND)
    new = pod("a", "new", since_ns=60 * NS_PER_SECOND)
    named = changed({"ml/a": (1.0, 1.1)}, [new, old])
    assert [(each.uid, each.share_percent, each.change_percent) for each in named.pods] == [
        ("new", 55, 55)  # the new pod, compared with its own values
    ]  # fmt: skip


def test_a_removed_pod_is_named_unless_it_was_replaced() -> None:
    gone = pod("a", "old", until_ns=60 * NS_PER_SECOND)
    named = changed({"ml/a": (1.0, 0.0), "ml/b": (0.3, 0.3)}, [gone, pod("b", "u2")])
    assert [(each.uid, each.share_percent) for each in named.pods] == [("old", 0)]


def test_a_pod_that_was_gone_before_it_began_has_no_part_in_it() -> None:
    gone = pod("a", "old", until_ns=50 * NS_PER_SECOND)
    named = changed({"ml/a": (1.0, 0.0), "ml/b": (0.3, 1.3)}, [gone, pod("b", "u2")])
    assert [each.name for each in named.pods] == ["b"]


def test_a_container_carries_its_pods_uid() -> None:
    worker = Identity("ml/a/w", CONTAINER, "c1", "ml", "a", "w", parent="ml/a")
    named = changed({"ml/a": (0.3, 1.3), "ml/a/w": (0.2, 1.2)}, [pod("a"), worker])
    assert [(each.uid, each.container) for each in named.pods] == [("u1", "w")]


@pytest.mark.parametrize("subsystem", [Subsystem.NETWORK, Subsystem.GPU])
def test_a_subject_named_by_cpu_time_alone_is_inferred(subsystem: Subsystem) -> None:
    named = changed({"ml/a": (0.2, 1.2)}, [pod("a", host_network=True)], subsystem)
    assert named.pods[0].confidence is Confidence.INFERRED


def test_without_a_change_the_present_pods_are_co_located() -> None:
    used = {"ml/a": (0.5, 0.5), "ml/idle": (0.0, 0.0), "/system.slice/x.service": (0.4, 0.4)}
    named = changed(used, [pod("a"), pod("idle", "u2")])
    assert [(each.name, each.confidence) for each in named.pods] == [("a", Confidence.CO_LOCATED)]
    assert named.subjects == ()


def test_without_a_subject_table_names_are_those_of_the_channels() -> None:
    named = changed({"/system.slice/x.service": (0.1, 1.0), "pgrp:job[7]": (0.1, 0.9)}, [])
    assert [(each.kind, each.confidence) for each in named.subjects] == [
        ("Unit", Confidence.MEASURED), ("ProcessGroup", Confidence.INFERRED)
    ]  # fmt: skip


def test_a_pod_stays_named_by_a_finding_that_outlasts_its_collector() -> None:
    announced = [pod("job")]
    channels = (Channel("cpu.subject.throttled_time", "ml/job", Kind.COUNTER),)
    history, columns = SubjectHistory(lambda: announced), column_plan(ChannelTable(channels, ()))
    for second in range(100):
        observed = np.array([9e8 if second >= 70 else 0.0])
        history.push(Second(columns, second * NS_PER_SECOND, observed[:0], observed))
    query = CulpritQuery(("cpu.subject.throttled_time",), Subsystem.CPU)
    before = history.before(70 * NS_PER_SECOND)
    opened = history.culprits(query, before, history.latest(30)[:10])
    announced.clear()
    over = history.culprits(query, before, history.latest(30))
    assert opened is not None
    assert over is not None
    assert over.names == opened.names == ("ml/job",)
    assert [each.uid for each in over.pods] == ["u1"]


WAITING, RETRANS = "cpu.subject.pressure", "network.subject.retrans_segs"


def victims(
    metrics: list[str], used: dict[str, tuple[str, float, float]], known: tuple[Identity, ...] = ()
) -> tuple[str, ...]:
    """Two minutes; from the second one on the values are others (before, during)."""
    channels = [Channel(metric, name, Kind.COUNTER) for name, (metric, *_) in used.items()]
    history = SubjectHistory(lambda: known)
    plan = column_plan(ChannelTable((), tuple(channels)))
    for second in range(120):
        values_now = np.array([values[1 + (second >= 60)] for values in used.values()], float)
        history.push(Second(plan, second * NS_PER_SECOND, values_now[:0], values_now))
    before = history.before(60 * NS_PER_SECOND)
    found = history.victims(metrics, before, history.latest(60))
    assert found is not None
    return found


def test_victims_are_those_to_whom_harm_was_done_most_first() -> None:
    used = {
        "/a.service": (WAITING, 1e6, 5e8), "/b.service": (WAITING, 1e6, 9e8),
        "/calm.service": (WAITING, 1e6, 1e6), "/freed.service": (WAITING, 9e8, 1e6),
    }  # fmt: skip
    assert victims([WAITING], used) == ("/b.service", "/a.service")


def test_of_cpu_time_who_lost_it_is_the_victim() -> None:
    used = {"/loser.service": (USAGE, 9e8, 1e8), "/winner.service": (USAGE, 1e8, 9e8)}
    assert victims([USAGE], used) == ("/loser.service",)


def test_a_pod_is_called_by_its_name() -> None:
    pod = Identity("ml/a", SubjectKind.POD, "u1", "ml", "a")
    assert victims([RETRANS], {"ml/a": (RETRANS, 0.0, 50.0)}, (pod,)) == ("ml/a",)


@pytest.mark.parametrize("metric", [RETRANS, USAGE])
def test_where_nothing_changed_nobody_suffers(metric: str) -> None:
    assert victims([metric], {"/a.service": (metric, 1e8, 1e8)}) == ()
