"""Findings of the ledger: who takes time from whom, with or without a past."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reveal_analyzer.node import NodeAnalyzer
from reveal_contract import ledger
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.cpu_shares import CpuGroup, CpuMember, CpuShares
from reveal_contract.finding import (
    Confidence,
    FindingChange,
    Resolution,
    Severity,
)
from reveal_contract.metric import Kind
from reveal_contract.settings import AnalyzerSettings
from support.ledger_node import Times, ledger_table
from support.ledger_story import BUILD, HOG, JOB, LedgerStory, names
from support.synthetic_node import TABLE

QUIET = {JOB: Times(run=0.9), HOG: Times(), BUILD: Times(run=0.05, threads=6)}
TAKEN = {**QUIET, JOB: Times(run=0.4, cpu={HOG: 0.5}), HOG: Times(run=1.5, threads=2)}
BUSY = {"cpu.pressure.some": 900_000.0, "cpu.procs_running": 8.0, "cpu.user": 198.0}


def test_a_subject_that_takes_cpu_time_is_found_with_its_victim() -> None:
    story = LedgerStory()
    story.run(120, QUIET)
    story.run(30, TAKEN, BUSY)
    story.run(30, QUIET)
    ((opened, first),) = story.of(FindingChange.OPENED)
    assert names(story.of(FindingChange.OPENED)) == ["CPUTakenByNeighbor"]
    assert 124 <= opened <= 126
    (culprit,) = first.subjects
    assert (culprit.name, culprit.confidence) == (HOG, Confidence.MEASURED)
    assert first.victims == (JOB,)
    assert first.severity is Severity.CRITICAL
    assert (
        first.claim == f"Others waited 500 ms a second for CPUs on which this subject ran ({HOG})"
    )
    note = f"{JOB} lost 56 % of the time that it wanted: 56 % to {HOG}"
    assert note in first.notes
    assert (culprit.share_percent, first.share_metric) == (100, "ledger.taken_cpu")
    (loss,) = first.lost_time
    assert (loss.subject, round(loss.lost_percent), round(loss.slowdown_percent)) == (JOB, 56, 125)
    ((ended, last),) = story.of(FindingChange.RESOLVED)
    assert 150 <= ended <= 165
    assert last.resolution is Resolution.ENDED
    assert last.subjects[0].name == HOG


def test_culprits_that_begin_together_share_a_finding() -> None:
    job = Times(run=0.3, cpu={HOG: 0.4, BUILD: 0.2})
    crowd = {JOB: job, HOG: Times(run=1), BUILD: Times(run=0.9, threads=6)}
    story = LedgerStory()
    story.run(20, crowd, BUSY)
    ((_, finding),) = story.of(FindingChange.OPENED)
    assert [(each.name, each.share_percent) for each in finding.subjects] == [
        (HOG, 67),
        (BUILD, 33),
    ]
    note = f"{JOB} lost 67 % of the time that it wanted: 44 % to {HOG}, 22 % to {BUILD}"
    assert note in finding.notes


def test_it_needs_no_history() -> None:
    story = LedgerStory()
    story.run(20, TAKEN, BUSY)
    assert names(story.of(FindingChange.OPENED)) == ["CPUTakenByNeighbor"]
    assert story.of(FindingChange.OPENED)[0][0] == 4


def test_who_got_what_its_weight_gives_it_is_no_victim() -> None:
    """A build of weight 1 beside a job of weight 4, on one CPU."""
    groups = CpuGroup(JOB, weight=4096), CpuGroup(BUILD, weight=1024)
    members = CpuMember(JOB, JOB, cpus="0"), CpuMember(BUILD, BUILD, cpus="0")
    times = {
        **QUIET,
        JOB: Times(run=0.8, cpu={BUILD: 0.2}),
        BUILD: Times(run=0.2, cpu={JOB: 0.8}, threads=6),
    }
    weighted, equal = LedgerStory(), LedgerStory()
    weighted.announce(CpuShares(groups, members))
    for story in (weighted, equal):
        story.run(30, times)
    assert weighted.updates == []
    assert names(equal.of(FindingChange.OPENED)) == ["CPUTakenByNeighbor"]


def test_a_build_that_waits_for_itself_is_no_fault() -> None:
    build = Times(run=1.1, others={ledger.WAIT_SELF: 4.9}, threads=6)
    story = LedgerStory()
    story.run(120, QUIET)
    story.run(60, {**QUIET, BUILD: build})
    assert story.updates == []


@pytest.mark.parametrize("share", [0.02, 0.04])
def test_a_little_wait_is_no_fault(share: float) -> None:
    story = LedgerStory()
    story.run(180, {**QUIET, JOB: Times(run=0.9 - share, cpu={HOG: share}), HOG: Times(run=1)})
    assert story.updates == []


def test_a_share_near_the_limit_stays_a_single_finding() -> None:
    story = LedgerStory()
    story.run(30, QUIET)
    for second in range(90):
        taken = 0.06 if second % 3 else 0.04
        job = Times(run=0.85, cpu={HOG: taken})
        story.run(1, {**QUIET, JOB: job, HOG: Times(run=1.2, threads=2)})
    assert names(story.of(FindingChange.OPENED)) == ["CPUTakenByNeighbor"]
    assert story.of(FindingChange.RESOLVED) == []


def test_a_loss_just_below_the_limits_does_not_end_a_finding() -> None:
    """Less than 50 ms a second and than 5 % of its share is no new loss, but not the end of it."""
    begins = {**QUIET, JOB: Times(run=0.8, cpu={HOG: 0.1}), HOG: Times(run=1.2, threads=2)}
    lasts = {**QUIET, JOB: Times(run=0.86, cpu={HOG: 0.04}), HOG: Times(run=1.1, threads=2)}
    story, never = LedgerStory(), LedgerStory()
    story.run(30, QUIET)
    story.run(20, begins)
    story.run(90, lasts)
    never.run(30, QUIET)
    never.run(90, lasts)
    assert names(story.of(FindingChange.OPENED)) == ["CPUTakenByNeighbor"]
    assert story.of(FindingChange.RESOLVED) == []
    story.run(60, QUIET)
    assert len(story.of(FindingChange.RESOLVED)) == 1
    assert never.updates == []


def test_two_culprits_in_turn_are_two_findings() -> None:
    other = {**QUIET, JOB: Times(run=0.4, cpu={BUILD: 0.5}), BUILD: Times(run=1.5, threads=6)}
    story = LedgerStory()
    story.run(120, QUIET)
    story.run(40, TAKEN, BUSY)
    story.run(40, other, BUSY)
    story.run(30, QUIET)
    culprits = [finding.subjects[0].name for _, finding in story.of(FindingChange.OPENED)]
    assert culprits == [HOG, BUILD]
    assert [finding.subjects[0].name for _, finding in story.of(FindingChange.RESOLVED)] == culprits


def test_storage_that_another_keeps_busy_is_found() -> None:
    slow = {**QUIET, JOB: Times(run=0.3, disk={HOG: 0.6}), HOG: Times(run=0.1)}
    story = LedgerStory()
    story.run(120, QUIET)
    story.run(30, slow)
    assert names(story.of(FindingChange.OPENED)) == ["DiskTakenByNeighbor"]
    assert story.latest.victims == (JOB,)


def test_an_open_finding_survives_a_restart_with_its_culprit() -> None:
    story = LedgerStory()
    story.run(120, QUIET)
    story.run(30, TAKEN, BUSY)
    tree = story.analyzer.save()
    story.analyzer = NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60))
    story.analyzer.restore(tree)
    story.run(30, TAKEN, BUSY)
    story.run(30, QUIET)
    assert len(story.of(FindingChange.OPENED)) == 1
    ((_, last),) = story.of(FindingChange.RESOLVED)
    assert last.id == story.of(FindingChange.OPENED)[0][1].id
    assert (last.subjects[0].name, last.victims) == (HOG, (JOB,))


def test_the_status_has_what_each_job_lost() -> None:
    story = LedgerStory()
    story.run(10, TAKEN, BUSY)
    job = next(each for each in story.analyzer.lost_time() if each.subject == JOB)
    assert job.share == pytest.approx(0.5 / 0.9, abs=0.01)
    assert job.losses[0].culprit == HOG


def test_a_ledger_that_is_not_read_any_more_is_no_end() -> None:
    story = LedgerStory()
    story.run(120, QUIET)
    story.run(30, TAKEN, BUSY)
    story.node.table = TABLE  # the programs were detached
    story.run(80, {}, BUSY)
    resolved = [f for _, f in story.of(FindingChange.RESOLVED) if f.victims == (JOB,)]
    assert [finding.resolution for finding in resolved] == [Resolution.UNOBSERVED]


def test_contention_that_was_reported_first_is_part_of_the_measured_cause() -> None:
    story = LedgerStory()
    story.run(120, QUIET)
    story.run(3, QUIET, BUSY)
    story.run(40, TAKEN, BUSY)
    story.run(30, QUIET, BUSY)  # still crowded, but nobody takes from anybody
    assert len(story.of(FindingChange.OPENED)) == 2  # the crowd is another finding then
    first = story.of(FindingChange.OPENED)[0][1]
    assert [f.id for _, f in story.of(FindingChange.RESOLVED)] == [first.id]
    assert names(story.of(FindingChange.OPENED)[1:]) == ["CPUContention"]


@pytest.mark.parametrize("delay", [10, 60])
def test_time_that_the_named_culprit_takes_later_is_part_of_its_contention(delay: int) -> None:
    """A loss near the limits counts only after a while: it is no second fault."""
    story = LedgerStory()
    story.run(120, QUIET)
    story.run(delay, {**QUIET, HOG: Times(run=1.5, threads=2)}, BUSY)
    story.run(40, TAKEN, BUSY)
    story.run(60, QUIET)
    assert names(story.of(FindingChange.OPENED)) == ["CPUContention"]
    assert len(story.of(FindingChange.RESOLVED)) == 1
    resolved = story.of(FindingChange.RESOLVED)[0][1]
    assert [each.name for each in resolved.subjects] == [HOG]


def test_little_time_taken_from_a_small_subject_is_no_fault() -> None:
    small = {**QUIET, BUILD: Times(run=0.06, cpu={HOG: 0.04}, threads=6), HOG: Times(run=1.5)}
    story = LedgerStory()
    story.run(120, {**QUIET, HOG: Times(run=1.5)})
    story.run(60, small)
    assert story.updates == []


def test_helpers_that_lose_much_of_very_little_are_no_fault() -> None:
    """As the Redis and the collector of a scan lose, while its analyzer starts."""
    helper = Times(run=0.06, cpu={HOG: 0.04})
    story = LedgerStory()
    story.run(60, {JOB: helper, BUILD: helper, HOG: Times(run=1.5, threads=2)})
    assert story.updates == []


def test_a_storm_of_processes_by_somebody_else_is_another_finding() -> None:
    node = ledger_table((JOB, HOG, BUILD))
    story = LedgerStory()
    forks = Channel("cpu.forks", "", Kind.COUNTER, 1.0)
    story.node.table = ChannelTable((*node.fast, forks), node.slow)
    story.run(120, QUIET, {"cpu.forks": 2.0})
    story.run(40, TAKEN, {**BUSY, "cpu.forks": 900.0})
    found = {f.hypothesis.name: f for _, f in story.of(FindingChange.OPENED) if f.hypothesis}
    assert found["CPUTakenByNeighbor"].subjects[0].name == HOG


SOFTIRQS = [
    Channel("cpu.softirq", "", Kind.COUNTER, 1e7),
    Channel("network.softnet.processed", "", Kind.COUNTER, 1.0),
]
PER_CPU = [
    Channel(f"cpu.{kind}", cpu, Kind.COUNTER, 1e7)
    for kind in ("user", "nice", "system", "irq", "softirq")
    for cpu in "01"
]
QUIET_HOST = {
    "cpu.softirq": 2.0, "network.softnet.processed": 12e3, "cpu.pressure.some": 4e4,
    "cpu.user": 30.0, "cpu.user{0}": 20.0, "cpu.user{1}": 10.0,
}  # fmt: skip
# threads that a CPU quota holds back for most of the time: pressure counts them as waiting
THROTTLED = {**QUIET_HOST, "cpu.pressure.some": 8e5}


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ({"cpu.softirq": 18.0, "network.softnet.processed": 60e3}, "SoftirqPressure"),
        ({"cpu.user": 120.0, "cpu.user{0}": 99.0}, "OneCPUOverloaded"),
    ],
)
@pytest.mark.parametrize(("waited", "is_found"), [(0.05, False), (0.35, True)])
def test_threads_that_a_quota_holds_back_are_no_victims_of_others(
    fault: Mapping[str, float], cause: str, waited: float, is_found: bool
) -> None:
    """Somebody else must wait for a CPU, as the ledger measures, for the cause to be certain."""
    story = LedgerStory()
    table = story.node.table
    story.node.table = ChannelTable((*table.fast, *SOFTIRQS, *PER_CPU), table.slow)
    story.run(120, QUIET, QUIET_HOST)
    waits = Times(run=0.6, others={ledger.WAIT_SELF: waited, ledger.IRQ: 0.1}, threads=2)
    story.run(30, {**QUIET, JOB: waits}, {**THROTTLED, **fault})
    assert (cause in certain_causes(story)) is is_found


@pytest.mark.parametrize(("interrupted", "is_found"), [(0.0, False), (0.1, True)])
def test_packets_that_interrupt_nobody_else_are_no_fault_on_a_busy_host(
    interrupted: float, is_found: bool
) -> None:
    """Ranks begin to communicate, while somebody waits for a CPU for other reasons."""
    story = LedgerStory()
    story.node.table = ChannelTable((*story.node.table.fast, *SOFTIRQS), story.node.table.slow)
    story.run(120, QUIET, QUIET_HOST)
    waits = Times(run=0.6, others={ledger.WAIT_SELF: 0.35, ledger.IRQ: interrupted}, threads=2)
    ranks = Times(run=0.4, others={ledger.IRQ: 0.2})
    packets = {"cpu.softirq": 18.0, "network.softnet.processed": 60e3}
    story.run(30, {JOB: waits, BUILD: ranks}, {**THROTTLED, **packets})
    assert ("SoftirqPressure" in certain_causes(story)) is is_found


def certain_causes(story: LedgerStory) -> list[str]:
    """Return the causes of findings that certain signatures opened."""
    opened = story.of(FindingChange.OPENED)
    return names([each for each in opened if each[1].severity is not Severity.LOW])
