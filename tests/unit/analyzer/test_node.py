"""The analysis of a node, from synthetic slices to findings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reveal_analyzer.node import NodeAnalyzer
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import FindingChange, FindingUpdate, State
from reveal_contract.metric import Kind, Lane, Subsystem
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_SECOND
from support.synthetic_node import OTHER, TABLE, WORK, Node

QUIET_S, WARMUP_S = 90, 60
RETRANSMISSION = {"network.tcp.retrans_segs": 60.0, "network.tcp.out_segs": 3000.0}
FAINT_RETRANSMISSION = {"network.tcp.retrans_segs": 6.0, "network.tcp.out_segs": 3000.0}


@pytest.fixture
def node() -> Node:
    return Node()


def analyzer(**settings: object) -> NodeAnalyzer:
    return NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=WARMUP_S, **settings))  # type: ignore[arg-type]


def run(
    judge: NodeAnalyzer, node: Node, seconds: int, changed: dict[str, float] | None = None
) -> list[FindingUpdate]:
    updates = []
    for _ in range(seconds):
        updates += judge.analyze(node.slice(changed), node.table)
    return updates


def changes(updates: list[FindingUpdate]) -> list[str]:
    return [update.change.value for update in updates]


def causes(updates: list[FindingUpdate]) -> set[str]:
    return {update.finding.hypothesis.name for update in updates if update.finding.hypothesis}


def test_a_quiet_node_yields_nothing(node: Node) -> None:
    assert run(analyzer(), node, 240) == []


def test_retransmissions_are_suspected_found_and_resolved_once(node: Node) -> None:
    judge = analyzer()
    run(judge, node, QUIET_S)
    during = run(judge, node, 14, RETRANSMISSION)
    after = run(judge, node, 30)
    assert changes(during)[:2] == ["Suspected", "Opened"]
    assert changes(after)[-1] == "Resolved"
    opened, resolved = during[1].finding, after[-1].finding
    assert opened.id == resolved.id
    assert opened.subsystem is Subsystem.NETWORK
    assert resolved.state is State.RESOLVED
    assert resolved.hypothesis is not None
    assert resolved.hypothesis.name == "PacketLoss"
    assert "network.tcp.retransmit_share" in {e.metric for e in resolved.evidence}
    assert {m.name for m in resolved.methods} and len(resolved.methods) == 3


def test_what_pods_lose_in_network_namespaces_of_their_own_is_packet_loss() -> None:
    pods = [
        Channel(f"network.subject.{name}", pod, Kind.COUNTER, 1.0, Lane.SLOW)
        for pod in ("ml/rank-0", "ml/rank-1") for name in ("out_segs", "retrans_segs")
    ]  # fmt: skip
    # loss patterns are known only for the host's own connections, not for those of pods
    recoveries = Channel("network.tcp_ext.tcp_sack_recovery", "", Kind.COUNTER)
    table = ChannelTable((*TABLE.fast, recoveries), (*TABLE.slow, *pods))
    node, judge = Node(table), analyzer()
    steady = {channel.label: 4000.0 for channel in pods if channel.metric.endswith("out_segs")}
    run(judge, node, QUIET_S, steady)
    updates = run(judge, node, 14, {**steady, "network.subject.retrans_segs{ml/rank-1}": 40.0})
    found = updates[-1].finding
    assert found.subsystem is Subsystem.NETWORK
    assert found.hypothesis is not None and found.hypothesis.name == "PacketLoss"
    assert found.claim.startswith("0.47")  # 40 of all 8,500 that the node's namespaces sent
    assert (found.pods, found.subjects, found.victims) == ((), (), ("ml/rank-1",))


def test_activity_alone_is_context_and_no_finding(node: Node) -> None:
    judge = analyzer()
    run(judge, node, QUIET_S)
    loud = {"network.nic.rx_bytes{eth0}": 5e8, "cpu.context_switches": 9000.0}
    assert run(judge, node, 10, loud) == []
    assert any("network.nic.rx_bytes" in line for line in judge.status().changed)
    assert run(judge, node, 30, loud) == []


def test_harm_that_falls_is_no_finding(node: Node) -> None:
    judge = analyzer()
    run(judge, node, QUIET_S, RETRANSMISSION)
    assert run(judge, node, 30) == []


def test_an_oom_kill_needs_no_baseline(node: Node) -> None:
    updates = run(analyzer(), node, 3) + run(analyzer(), node, 1, {"memory.vm.oom_kill": 10.0})
    assert changes(updates) == ["Opened"]
    assert updates[0].finding.subsystem is Subsystem.MEMORY
    assert updates[0].finding.severity.value == "Critical"


def test_throttling_names_the_throttled_subject(node: Node) -> None:
    judge = analyzer()
    run(judge, node, 30)
    throttled = {f"cpu.subject.throttled_time{{{WORK}}}": 5e8}
    updates = run(judge, node, 6, throttled)
    assert updates[-1].finding.hypothesis is not None
    assert updates[-1].finding.hypothesis.name == "CPUQuotaThrottling"
    assert updates[-1].finding.subjects[0].name == WORK


def test_a_new_subject_that_takes_the_cpus_is_named() -> None:
    crowd = ChannelTable(
        (*TABLE.fast, Channel("cpu.subject.usage", OTHER, Kind.COUNTER)), TABLE.slow
    )
    node, judge = Node(), analyzer()
    run(judge, node, QUIET_S)
    node.table = crowd
    waiting = {
        "cpu.pressure.some": 9.5e5, "cpu.procs_running": 9.0, "cpu.user": 200.0,
        "cpu.user{0}": 100.0, "cpu.user{1}": 100.0, f"cpu.subject.usage{{{OTHER}}}": 1.7e9,
    }  # fmt: skip
    updates = run(judge, node, 10, waiting)
    assert updates[-1].finding.subsystem is Subsystem.CPU
    assert updates[-1].finding.subjects[0].name == OTHER


def test_evidence_stays_with_its_column_when_the_table_changes_in_an_episode() -> None:
    node, judge = Node(), analyzer()
    run(judge, node, 20)
    throttled = {f"cpu.subject.throttled_time{{{WORK}}}": 5e8}
    run(judge, node, 6, throttled)
    node.table = ChannelTable(TABLE.fast[::-1], TABLE.slow)
    (resolved,) = run(judge, node, 6, throttled) + run(judge, node, 12)
    assert resolved.finding.evidence[0].metric == "cpu.subject.throttled_time"
    assert resolved.finding.claim.startswith("A CPU quota throttled tasks for 498 ms a second")


def test_left_out_channels_cannot_raise_a_finding_but_are_named(node: Node) -> None:
    judge = NodeAnalyzer(
        "n1", AnalyzerSettings(), leave_out=lambda channel: channel.instance == WORK
    )
    assert run(judge, node, 20, {f"cpu.subject.throttled_time{{{WORK}}}": 5e8}) == []


def test_silent_steps_learn_and_report_nothing(node: Node) -> None:
    judge = analyzer()
    assert judge.analyze(node.slice({"memory.vm.oom_kill": 10.0}), node.table, silent=True) == []
    assert judge.status().seconds == 1


@pytest.mark.parametrize("hours", [-2, 5])
def test_a_clock_step_is_survived(node: Node, hours: int) -> None:
    judge = analyzer()
    run(judge, node, QUIET_S)
    for _ in range(20):
        message = node.slice()
        moved = replace(message, start_ns=message.start_ns + hours * 3600 * NS_PER_SECOND)
        assert judge.analyze(moved, node.table) == []


@pytest.mark.parametrize("seconds", [-7200, -30, 30, 18000])
def test_a_clock_that_is_set_during_a_fault_leaves_a_single_finding(
    node: Node, seconds: int
) -> None:
    judge = analyzer()
    run(judge, node, QUIET_S)
    updates = run(judge, node, 14, RETRANSMISSION)
    for changed in [RETRANSMISSION] * 12 + [None] * 30:
        message = node.slice(changed)
        moved = replace(message, start_ns=message.start_ns + seconds * NS_PER_SECOND)
        updates += judge.analyze(moved, node.table)
    reported = [update for update in updates if update.change is not FindingChange.SUSPECTED]
    assert len({update.finding.id for update in reported}) == 1
    over = reported[-1].finding
    assert over.state is State.RESOLVED
    assert 24 <= (over.last_observed_ns - over.first_observed_ns) / NS_PER_SECOND <= 40


def test_missing_values_are_no_news(node: Node) -> None:
    judge = analyzer()
    run(judge, node, QUIET_S)
    for _ in range(15):
        message = node.slice(RETRANSMISSION)
        gone = replace(message, fast_missing=np.ones(message.fast.shape, bool))
        assert judge.analyze(gone, node.table) == []


def test_a_lasting_level_is_a_single_finding_until_earlier_levels_return(node: Node) -> None:
    judge = analyzer()
    run(judge, node, QUIET_S)
    during = run(judge, node, 400, RETRANSMISSION)
    assert [change for change in changes(during) if change != "Changed"] == ["Suspected", "Opened"]
    (resolved,) = [u for u in run(judge, node, 40) if u.change is FindingChange.RESOLVED]
    assert any("new normal" in note for note in resolved.finding.notes)
    lasted = resolved.finding.last_observed_ns - resolved.finding.first_observed_ns
    assert 398 <= lasted / NS_PER_SECOND <= 412


@pytest.mark.parametrize("lasts", [90, 400])
@pytest.mark.parametrize("fault", [RETRANSMISSION, {"cpu.pressure.some": 9.5e5}])
def test_a_learned_level_that_ended_is_reported_when_it_returns(
    node: Node, fault: dict[str, float], lasts: int
) -> None:
    """Between the two the node gets another channel table."""
    judge = analyzer()
    run(judge, node, QUIET_S)
    assert "Opened" in changes(run(judge, node, lasts, fault))
    assert changes(run(judge, node, 20)) == ["Resolved"]
    node.table = ChannelTable(TABLE.fast[::-1], TABLE.slow)
    assert changes(run(judge, node, 20)) == []
    assert "Opened" in changes(run(judge, node, 12, fault))


def test_what_lasts_keeps_its_severity_and_hides_no_other_fault(node: Node) -> None:
    judge = analyzer()
    run(judge, node, QUIET_S)
    waiting = {"cpu.pressure.some": 9.5e5, "cpu.procs_running": 9.0}
    during = run(judge, node, 700, waiting)
    (opened,) = [u.finding for u in during if u.change is FindingChange.OPENED]
    (open_now,) = [u.finding for u in judge.finish()]
    assert open_now.severity.rank >= opened.severity.rank
    others = run(judge, node, 10, waiting | {"memory.vm.oom_kill": 10.0})
    assert [u.finding.subsystem for u in others if u.change is FindingChange.OPENED] == [
        Subsystem.MEMORY
    ]


def test_the_same_slices_give_the_same_findings() -> None:
    def all_updates() -> list[FindingUpdate]:
        judge, node = analyzer(), Node(seed=4)
        return run(judge, node, QUIET_S) + run(judge, node, 14, RETRANSMISSION)

    assert all_updates() == all_updates()


def test_paper_mode_decides_by_agreement(node: Node) -> None:
    judge = analyzer(mode="paper")
    run(judge, node, QUIET_S)
    updates = run(judge, node, 10, RETRANSMISSION | {"network.nic.rx_bytes{eth0}": 9e7})
    assert updates
    assert sum(m.agrees for m in updates[0].finding.methods) >= 2


def test_a_finding_does_not_go_on_over_a_time_that_nobody_saw(node: Node) -> None:
    judge = analyzer()
    run(judge, node, QUIET_S)
    throttled = {f"cpu.subject.throttled_time{{{WORK}}}": 5e8}
    (before,) = [u for u in run(judge, node, 6, throttled) if u.change is FindingChange.OPENED]
    node.second += 300
    after = run(judge, node, 6, throttled)
    assert [u.finding.id for u in after if u.change is FindingChange.RESOLVED] == [
        before.finding.id
    ]
    (opened,) = [u for u in after if u.change is FindingChange.OPENED]
    assert opened.finding.id != before.finding.id


def test_a_collector_that_starts_again_in_half_a_minute_makes_no_second_finding(node: Node) -> None:
    judge = analyzer()
    run(judge, node, QUIET_S)
    throttled = {f"cpu.subject.throttled_time{{{WORK}}}": 5e8}
    run(judge, node, 6, throttled)
    node.second += 30
    after = run(judge, node, 6, throttled) + run(judge, node, 16)
    assert changes(after) == ["Resolved"]


@pytest.mark.parametrize(("normal", "now"), [(2.0, 5.0), (45.0, 60.0)])
def test_loss_above_its_history_is_reported_although_some_loss_is_normal(
    node: Node, normal: float, now: float
) -> None:
    judge = analyzer()
    sent = {"network.tcp.out_segs": 8000.0}
    run(judge, node, QUIET_S, {**sent, "network.tcp.retrans_segs": normal})
    updates = run(judge, node, 14, {**sent, "network.tcp.retrans_segs": now})
    assert "Opened" in changes(updates)
    hypothesis = updates[-1].finding.hypothesis
    assert hypothesis is not None and hypothesis.name == "PacketLoss"


def test_an_intermittent_fault_is_found_again(node: Node) -> None:
    """Each burst is as short as normal behavior of a node, but a reported fault is not normal."""
    judge = analyzer()
    run(judge, node, QUIET_S)
    for _ in range(2):
        updates = [u for _ in range(6) for u in fits(judge, node)] + run(judge, node, 40)
        assert [name for name in changes(updates) if name in ("Opened", "Resolved")] == [
            "Opened", "Resolved",
        ]  # fmt: skip


def fits(judge: NodeAnalyzer, node: Node) -> list[FindingUpdate]:
    return run(judge, node, 4, FAINT_RETRANSMISSION) + run(judge, node, 2)


def with_more(*fast: Channel) -> ChannelTable:
    return ChannelTable((*TABLE.fast, *fast), TABLE.slow)


def test_softirq_time_by_ticks_needs_the_packets_to_be_believed() -> None:
    """Packets in step with the tick looked like ten times their cost: 2 % became 18 %."""
    assert causes_of_softirqs(packets=12e3, waited=2e5) == set()
    assert causes_of_softirqs(packets=60e3, waited=2e5) == {"SoftirqPressure"}


def test_softirq_time_of_a_job_that_begins_to_talk_is_no_fault_where_nobody_waits() -> None:
    """Two ranks that exchange gradients on a host that was idle: 13 % of its two CPUs."""
    assert causes_of_softirqs(packets=60e3, waited=6e4) == set()


def causes_of_softirqs(packets: float, waited: float) -> set[str]:
    """Return the causes of 18 % of softirq time and ``waited`` microseconds of delay a second."""
    table = with_more(
        Channel("cpu.softirq", "", Kind.COUNTER, 1e7),
        Channel("network.softnet.processed", "", Kind.COUNTER),
        Channel("cpu.pressure.some", "", Kind.COUNTER, 1e3),
    )
    quiet = {"cpu.softirq": 2.0, "network.softnet.processed": 12e3, "cpu.pressure.some": 4e4}
    node, judge = Node(table), analyzer()
    run(judge, node, QUIET_S, quiet)
    loud = {
        "cpu.softirq": 18.0, "network.softnet.processed": packets, "cpu.pressure.some": waited,
    }  # fmt: skip
    return causes(run(judge, node, 6, loud))


def test_a_first_reader_that_keeps_the_disk_busy_a_few_percent_is_no_finding() -> None:
    """Ten requests a second that a device takes at its second try are no harm."""
    table = with_more(
        Channel("storage.disk.read_time", "vda", Kind.COUNTER, 1e6),
        Channel("storage.disk.queue_time", "vda", Kind.COUNTER, 1e6),
        Channel("storage.trace.block_rq_requeue", "", Kind.COUNTER),
        Channel("storage.pressure.some", "", Kind.COUNTER, 1e3),
        Channel("storage.pressure.full", "", Kind.COUNTER, 1e3),
        Channel("cpu.iowait", "", Kind.COUNTER, 1e7),
    )
    node, judge = Node(table), analyzer()
    run(judge, node, QUIET_S)
    reading = {
        "storage.disk.read_time{vda}": 50.0, "storage.disk.queue_time{vda}": 51.0,
        "storage.trace.block_rq_requeue": 10.0, "storage.pressure.some": 9e3,
        "storage.pressure.full": 8e3, "cpu.iowait": 2.0,
    }  # fmt: skip
    assert run(judge, node, 40, reading) == []


def test_a_job_that_comes_to_an_idle_node_and_waits_a_little_is_no_finding() -> None:
    """Two ranks that start a thread for each exchange waited 4.5 % of the time."""
    pressure = Channel("cpu.subject.pressure", "ml/rank-0", Kind.COUNTER, 1e3, Lane.SLOW)
    node, judge = Node(TABLE), analyzer()
    run(judge, node, QUIET_S)
    node.table = ChannelTable(TABLE.fast, (*TABLE.slow, pressure))
    assert run(judge, node, 40, {pressure.label: 45e3}) == []


FORKING = with_more(
    Channel("cpu.forks", "", Kind.COUNTER), Channel("memory.vm.pgfault", "", Kind.COUNTER)
)


def forking(forks: float, faults: float) -> dict[str, float]:
    return {"cpu.forks": forks, "memory.vm.pgfault": faults}


@pytest.mark.parametrize(("faults", "names"), [(5e3, set()), (60e3, {"ForkStorm"})])
def test_threads_are_no_storm_of_processes(faults: float, names: set[str]) -> None:
    """The kernel counts both as forks; a process faults its pages in, a thread has its parent's."""
    node, judge = Node(FORKING), analyzer()
    run(judge, node, QUIET_S, forking(2.0, 500.0))
    assert causes(run(judge, node, 8, forking(320.0, faults))) == names


@pytest.mark.parametrize(("burst_s", "names"), [(1, {"ForkStorm"}), (3, set())])
def test_bursts_of_a_second_hide_no_storm(burst_s: int, names: set[str]) -> None:
    """A job's start forks for a moment; a node that did so for seconds is known to do that."""
    node, judge = Node(FORKING), analyzer()
    for _ in range(4):
        run(judge, node, burst_s, forking(110.0, 25e3))
        run(judge, node, 8, forking(2.0, 500.0))
    run(judge, node, QUIET_S, forking(2.0, 500.0))
    assert causes(run(judge, node, 8, forking(100.0, 22e3))) == names
