"""Faults that last, overlap, return or are no longer read, from slices to findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from reveal_analyzer.episodes.case import LONGEST_S
from reveal_analyzer.node import NodeAnalyzer
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import FindingChange, FindingUpdate, Resolution
from reveal_contract.metric import Kind
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message
from support.synthetic_node import OTHER, TABLE, WORK, Node

QUIET_S = 120
START_NS = 1_700_000_000 * NS_PER_SECOND
THROTTLED = {f"cpu.subject.throttled_time{{{WORK}}}": 2e8}
OTHER_THROTTLED = {f"cpu.subject.throttled_time{{{OTHER}}}": 6e8}
LOSS = {"network.tcp.retrans_segs": 300.0, "network.tcp.out_segs": 3000.0}
FAINT_LOSS = {"network.tcp.retrans_segs": 60.0, "network.tcp.out_segs": 3000.0}
BACKLOG = {"network.softnet.dropped": 5000.0}
CONTENTION = {
    "cpu.pressure.some": 990_000.0, "cpu.procs_running": 30.0, "cpu.user": 195.0,
    "cpu.user{0}": 99.0, "cpu.user{1}": 96.0,
}  # fmt: skip
NOTHING: Mapping[str, float] = {}
OTHER_CHANNEL = Channel("cpu.subject.throttled_time", OTHER, Kind.COUNTER)
TWO_SUBJECTS = ChannelTable((*TABLE.fast, OTHER_CHANNEL), TABLE.slow)


class Story:
    """A node whose slices are judged one after the other; ``updates`` are by second."""

    def __init__(self, table: ChannelTable = TABLE, **settings: object) -> None:
        self.node = Node(table)
        self.judge = NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60, **settings))  # type: ignore[arg-type]
        self.updates: list[tuple[int, FindingUpdate]] = []

    def run(self, seconds: int, *changed: Mapping[str, float]) -> None:
        for _ in range(seconds):
            self.push(self.node.slice({k: v for each in changed for k, v in each.items()}))

    def push(self, message: Message) -> None:
        second = self.node.second - 1
        found = self.judge.analyze(message, self.node.table)
        self.updates += [(second, u) for u in found if u.change is not FindingChange.SUSPECTED]

    def of(self, change: FindingChange) -> list[tuple[int, str]]:
        return [(second, cause(u)) for second, u in self.updates if u.change is change]

    @property
    def opened(self) -> list[tuple[int, str]]:
        return self.of(FindingChange.OPENED)

    @property
    def resolved(self) -> list[tuple[int, str]]:
        return self.of(FindingChange.RESOLVED)


def cause(update: FindingUpdate) -> str:
    hypothesis = update.finding.hypothesis
    return hypothesis.name if hypothesis else update.finding.subsystem.value


def lasting(fault: Mapping[str, float], second: Mapping[str, float], lasts: int) -> Story:
    """``fault`` goes on all the time; ``second`` twice for ``lasts`` seconds."""
    story = Story()
    story.run(QUIET_S)
    story.run(300, fault)
    for _ in range(2):
        story.run(lasts, fault, second)
        story.run(60, fault)
    return story


@pytest.mark.parametrize(
    ("fault", "second", "name"),
    [
        (THROTTLED, LOSS, "PacketLoss"),
        (THROTTLED, CONTENTION, "CPUContention"),
        (CONTENTION, LOSS, "PacketLoss"),
        (FAINT_LOSS, BACKLOG, "ReceiveBacklogOverflow"),
    ],
)
def test_a_fault_beside_a_lasting_fault_is_found_each_time_and_ends(
    fault: Mapping[str, float], second: Mapping[str, float], name: str
) -> None:
    story = lasting(fault, second, 100)
    begins = QUIET_S + 300, QUIET_S + 460
    found = [(time, which) for time, which in story.opened if time >= begins[0]]
    assert [which for _, which in found] == [name, name]
    delays = [time - begin for (time, _), begin in zip(found, begins, strict=True)]
    assert all(0 <= delay <= 10 for delay in delays), delays
    ended = [time for time, which in story.resolved if which == name]
    delays = [time - begin - 100 for time, begin in zip(ended, begins, strict=True)]
    assert all(0 <= delay <= 30 for delay in delays), delays
    # the lasting fault is as it was
    (open_now,) = story.judge.finish()
    assert cause(open_now) == story.opened[0][1]


def test_a_later_fault_has_its_own_values() -> None:
    story = Story()
    story.run(QUIET_S)
    story.run(400, FAINT_LOSS)
    story.run(60, FAINT_LOSS, BACKLOG)
    overflow = [u.finding for _, u in story.updates if cause(u) == "ReceiveBacklogOverflow"][-1]
    assert overflow.claim.startswith("5 k")
    assert any("open on this node at the same time" in note for note in overflow.notes)


def test_a_second_throttled_subject_is_a_finding_of_its_own() -> None:
    story = Story(TWO_SUBJECTS)
    story.run(QUIET_S)
    story.run(60, THROTTLED)
    story.run(60, THROTTLED, OTHER_THROTTLED)
    story.run(40, OTHER_THROTTLED)
    assert story.opened == [
        (QUIET_S + 2, "CPUQuotaThrottling"), (QUIET_S + 62, "CPUQuotaThrottling")
    ]  # fmt: skip
    assert [time for time, _ in story.resolved] == [QUIET_S + 129]
    first, second = (u.finding for _, u in story.updates if u.change is FindingChange.OPENED)
    assert (first.subjects[0].name, second.subjects[0].name) == (WORK, OTHER)
    (ended,) = (u.finding for _, u in story.updates if u.change is FindingChange.RESOLVED)
    assert ended.id == first.id
    (open_now,) = story.judge.finish()
    assert "for 600 ms a second" in open_now.finding.claim
    last = {update.finding.id: update.finding for _, update in story.updates}
    named = [[subject.name for subject in finding.subjects] for finding in last.values()]
    assert named == [[WORK], [OTHER]]
    assert {finding.share_metric for finding in last.values()} == {"cpu.subject.throttled_time"}


def test_two_certain_causes_of_different_subsystems_that_begin_together_are_two_findings() -> None:
    story = Story()
    story.run(QUIET_S)
    story.run(60, BACKLOG, CONTENTION)
    story.run(60, BACKLOG)
    assert sorted(name for _, name in story.opened) == ["CPUContention", "ReceiveBacklogOverflow"]
    assert [name for _, name in story.resolved] == ["CPUContention"]


def test_a_finding_that_grows_states_its_present_value() -> None:
    story = Story()
    story.run(QUIET_S)
    story.run(5, {**CONTENTION, "cpu.pressure.some": 650_000.0})
    story.run(70, CONTENTION)
    claims = [update.finding.claim for _, update in story.updates]
    opened, *_, last = [float(claim.split(" %")[0].split()[-1]) for claim in claims]
    assert opened == 65
    assert last >= 90


def test_contention_goes_on_while_the_hypervisor_takes_time() -> None:
    stolen = {**CONTENTION, "cpu.user": 150.0, "cpu.steal": 50.0, "cpu.idle": 0.0}
    story = Story(
        ChannelTable((*TABLE.fast, Channel("cpu.steal", "", Kind.COUNTER, 1e7)), TABLE.slow)
    )
    story.run(QUIET_S)
    story.run(60, CONTENTION)
    story.run(60, stolen)
    story.run(60, CONTENTION)
    assert "CPUContention" in [which for _, which in story.opened]
    assert "CPUContention" not in [which for _, which in story.resolved]


def test_the_same_harm_by_the_same_culprit_stays_a_single_finding() -> None:
    kinds = ("nice", "system", "irq", "softirq")
    added = [Channel(f"cpu.{kind}", cpu, Kind.COUNTER, 1e7) for kind in kinds for cpu in "01"]
    added.append(Channel("cpu.subject.usage", OTHER, Kind.COUNTER, 1.0))
    story = Story(ChannelTable((*TABLE.fast, *added), TABLE.slow))
    hog = {f"cpu.subject.usage{{{OTHER}}}": 1.5e9}
    pinned = {
        "cpu.pressure.some": 600_000.0, "cpu.user": 129.0, "cpu.user{0}": 99.0, "cpu.user{1}": 30.0,
    }  # fmt: skip
    story.run(QUIET_S)
    story.run(40, CONTENTION, hog)
    story.run(20, pinned, hog)
    story.run(40, CONTENTION, hog)
    story.run(40)
    assert [which for _, which in story.opened] == ["CPUContention"]
    (resolved,) = story.resolved
    assert QUIET_S + 100 <= resolved[0] <= QUIET_S + 130


@pytest.mark.parametrize("pause_s", [30, 120])
def test_the_same_fault_again_is_found_again(pause_s: int) -> None:
    story = Story()
    story.run(QUIET_S)
    for _ in range(3):
        story.run(20, LOSS)
        story.run(pause_s)
    assert [which for _, which in story.opened] == ["PacketLoss"] * 3
    assert len(story.resolved) == 3


@pytest.mark.parametrize("fault", [LOSS, CONTENTION])
def test_a_long_fault_has_a_single_finding_that_ends_with_it(fault: Mapping[str, float]) -> None:
    story = Story()
    story.run(QUIET_S)
    story.run(900, fault)
    story.run(40)
    assert len(story.opened) == 1
    ((resolved_s, _),) = story.resolved
    assert 0 < resolved_s - QUIET_S - 900 <= 30
    (resolved,) = (u.finding for _, u in story.updates if u.change is FindingChange.RESOLVED)
    (opened,) = (u.finding for _, u in story.updates if u.change is FindingChange.OPENED)
    assert resolved.resolution is Resolution.ENDED
    assert resolved.severity.rank >= opened.severity.rank


def test_a_fault_that_is_not_read_any_more_is_closed_as_unobserved() -> None:
    story = Story()
    story.run(QUIET_S)
    story.run(30, FAINT_LOSS)
    columns = [index for index, c in enumerate(TABLE.fast) if c.metric.startswith("network.tcp.")]
    for _ in range(120):
        message = story.node.slice(FAINT_LOSS)
        missing = message.fast_missing.copy()
        missing[:, columns] = True
        story.push(replace(message, fast_missing=missing))
    ((time, _),) = story.resolved
    assert 60 <= time - QUIET_S - 30 <= 75
    (closed,) = (u.finding for _, u in story.updates if u.change is FindingChange.RESOLVED)
    assert closed.resolution is Resolution.UNOBSERVED
    assert closed.resolved_ns == closed.last_observed_ns
    assert any("has not been read since" in note for note in closed.notes)


def test_evidence_stays_when_its_device_disappears() -> None:
    metrics = (
        ("storage.disk.await", Kind.GAUGE), ("storage.disk.busy_time", Kind.COUNTER),
        ("storage.disk.in_flight", Kind.GAUGE),
    )  # fmt: skip
    disks = [Channel(name, disk, kind) for disk in ("nvme0n1", "nvme1n1") for name, kind in metrics]
    both = ChannelTable((*TABLE.fast, *disks), TABLE.slow)
    without = ChannelTable((*TABLE.fast, *disks[:3]), TABLE.slow)
    healthy = {channel.label: 2e4 for channel in disks}
    slow = healthy | {
        "storage.disk.await{nvme1n1}": 4e8, "storage.disk.busy_time{nvme1n1}": 9e8,
        "storage.disk.in_flight{nvme1n1}": 60.0,
    }  # fmt: skip
    story = Story(both)
    story.run(QUIET_S, healthy)
    story.run(20, slow)
    story.node.table = without
    story.run(90, healthy)
    (closed,) = (u.finding for _, u in story.updates if u.change is FindingChange.RESOLVED)
    assert closed.resolution is Resolution.UNOBSERVED
    assert {line.instance for line in closed.evidence[:2]} == {"nvme1n1"}
    assert "400 ms" in closed.claim


def test_a_device_that_disappears_with_its_fault_ends_it_if_the_host_is_calm() -> None:
    disk = [
        Channel("storage.disk.await", "loop0", Kind.GAUGE),
        Channel("storage.disk.busy_time", "loop0", Kind.COUNTER),
    ]
    pressure = Channel("storage.pressure.some", "", Kind.COUNTER)
    without = ChannelTable((*TABLE.fast, pressure), TABLE.slow)
    story = Story(ChannelTable((*without.fast, *disk), TABLE.slow))
    healthy = {"storage.pressure.some": 1e7, "storage.disk.await{loop0}": 2e4}
    slow = {
        "storage.pressure.some": 6e8, "storage.disk.await{loop0}": 4e8,
        "storage.disk.busy_time{loop0}": 9e8,
    }  # fmt: skip
    story.run(QUIET_S, healthy)
    story.run(20, slow)
    story.node.table = without
    story.run(40, healthy)
    (ended,) = (u.finding for _, u in story.updates if u.change is FindingChange.RESOLVED)
    assert ended.resolution is Resolution.ENDED
    assert "399 ms" in ended.claim


def set_clock(message: Message, ahead_s: int) -> Message:
    return replace(message, start_ns=message.start_ns + ahead_s * NS_PER_SECOND)


@pytest.mark.parametrize("mode", ["live", "paper"])
@pytest.mark.parametrize("ahead_s", [-7200, 7200])
def test_a_clock_that_is_set_changes_no_time_of_a_finding(mode: str, ahead_s: int) -> None:
    settings = {"mode": "paper"} if mode == "paper" else {}
    story = Story(**settings)
    fault = LOSS | {"network.nic.rx_bytes{eth0}": 9e7}
    story.run(QUIET_S)
    story.run(20, fault)
    assert story.opened
    for second in range(60):
        story.push(set_clock(story.node.slice(dict(fault) if second < 10 else None), ahead_s))
    resolved = [u.finding for _, u in story.updates if u.change is FindingChange.RESOLVED]
    assert resolved
    for finding in resolved:
        assert finding.resolved_ns is not None
        assert finding.first_observed_ns <= finding.last_observed_ns <= finding.resolved_ns
        assert finding.resolved_ns < START_NS + 400 * NS_PER_SECOND


def test_a_clock_set_back_before_a_fault_is_found_gives_no_finding_that_ends_before_it_began() -> (
    None
):
    story = Story()
    story.run(QUIET_S)
    story.run(4, LOSS)
    for _ in range(20):
        story.push(set_clock(story.node.slice(dict(LOSS)), -3600))
    assert story.opened
    for _, update in story.updates:
        assert update.finding.first_observed_ns <= update.finding.last_observed_ns


def test_open_cases_go_on_in_another_analyzer() -> None:
    story = Story()
    story.run(QUIET_S)
    story.run(120, LOSS)
    (opened,) = story.opened
    state = story.judge.save()
    story.judge = NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60))
    story.judge.restore(state)
    before = {u.finding.id for _, u in story.updates}
    story.run(30, LOSS)
    (open_now,) = story.judge.finish()
    assert {open_now.finding.id} == before
    story.run(40)
    assert story.opened == [opened]
    ((time, which),) = story.resolved
    assert which == "PacketLoss"
    assert 0 <= time - QUIET_S - 150 <= 30


def test_values_that_are_not_numbers_end_no_analysis() -> None:
    story = Story()
    story.run(QUIET_S)
    message = story.node.slice(dict(LOSS))
    story.push(replace(message, fast_missing=np.ones(message.fast.shape, bool)))
    story.run(20, LOSS)
    assert [which for _, which in story.opened] == ["PacketLoss"]


def test_a_case_opens_while_the_channel_table_changes() -> None:
    story = Story()
    story.run(QUIET_S)
    story.run(3, CONTENTION)  # over the threshold, and not yet open
    veth = Channel("network.nic.rx_bytes", "veth9", Kind.COUNTER)
    story.node.table = ChannelTable((*TABLE.fast, veth), TABLE.slow)  # a pod starts
    story.run(10, CONTENTION, LOSS)
    assert "CPUContention" in {name for _, name in story.opened}


def test_a_score_that_lasts_for_a_day_ends_as_accepted() -> None:
    waits = {"cpu.pressure.some": 600_000.0, "cpu.context_switches": 3000.0, "cpu.user": 60.0}
    story = Story()
    story.run(QUIET_S)
    story.run(300, waits)
    (case,) = story.judge._findings._cases.open
    assert not story.resolved
    case.episode.opened_ns -= LONGEST_S * NS_PER_SECOND
    story.run(20, waits)
    (ended,) = (u.finding for _, u in story.updates if u.change is FindingChange.RESOLVED)
    assert ended.resolution is Resolution.ACCEPTED


def test_a_symptom_long_after_the_onset_is_no_evidence_of_the_first_fault() -> None:
    story = Story()
    story.run(QUIET_S)
    story.run(120, THROTTLED)
    story.run(3, THROTTLED, LOSS)  # a fault that has no case of its own yet
    (case,) = story.judge._findings._cases.open
    labels = [column.label for column in case.trace.stats.columns]
    loss = labels.index("network.tcp.retrans_segs__mean")
    assert not case.trace.stats.values[loss] > 50
    (latest,) = story.judge.finish()
    assert "network.tcp.retrans_segs" not in {each.metric for each in latest.finding.evidence}
