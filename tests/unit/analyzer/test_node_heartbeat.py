"""A node's analysis with the heartbeats of jobs: slowdown findings, impacts, status lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reveal_analyzer.ledger.gpu_time import GpuHours
from reveal_analyzer.node import Announced, NodeAnalyzer
from reveal_analyzer.state.codec import Position, SavedState, decode, encode
from reveal_contract.finding import FindingChange, FindingUpdate, State
from reveal_contract.metric import Subsystem
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.subjects import Identity, SubjectKind
from reveal_contract.time_units import NS_PER_HOUR, NS_PER_SECOND
from reveal_contract.verification import Verdict
from support.heartbeat_nodes import JOB, HeartbeatNode, Job
from support.synthetic_node import FAST

ONSET, OVER, END = 200, 270, 310
OTHERS = tuple(channel for channel in FAST if "subject" not in channel.metric)
QUIET = {
    "cpu.user{0}": 2.0, "cpu.user{1}": 1.0, "cpu.user": 3.0, "cpu.pressure.some": 200.0,
    "cpu.procs_running": 1.0, "cpu.context_switches": 30.0, "memory.mem_total": 16 << 20,
    "memory.mem_available": 12 << 20, "network.tcp.out_segs": 50.0,
}  # fmt: skip


def node(percent: float, end: int = END) -> HeartbeatNode:
    job = Job(0.45, 0.2, 0.02, slower=lambda second: 1 + percent / 100 * (ONSET <= second < OVER))
    return HeartbeatNode({JOB: job}, end, others=OTHERS)


def analyzer(**settings: object) -> NodeAnalyzer:
    return NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60, **settings))  # type: ignore[arg-type]


def run(
    judge: NodeAnalyzer, watched: HeartbeatNode, fault: dict[str, float] | None = None
) -> list[FindingUpdate]:
    """``fault`` is the values of other channels while the job is slower."""

    def values(second: int) -> dict[str, float]:
        return QUIET | (fault or {}) if ONSET <= second < OVER else QUIET

    return [
        update
        for message in watched.slices(values)
        for update in judge.analyze(message, watched.table)
    ]


def test_a_slowdown_alone_is_a_finding_of_the_node() -> None:
    updates = run(analyzer(), node(12))
    changes = [update.change.value for update in updates]
    assert (changes[0], changes[-1]) == ("Opened", "Resolved")
    last = updates[-1].finding
    assert last.node_name == "n1"
    assert last.impact is not None
    assert abs(last.impact.slowdown_percent - 12) < 1


def test_a_slowdown_costs_the_gpus_of_its_job_for_as_long_as_it_lasts() -> None:
    pod = Identity(JOB, SubjectKind.POD, "u", "ml", "train-0", gpus=8)
    settings = AnalyzerSettings(warmup_seconds=60)
    judge = NodeAnalyzer("n1", settings, announced=Announced(lambda: [pod]))
    last = run(judge, node(12))[-1].finding
    assert last.state is State.RESOLVED
    assert last.cost is not None
    assert last.cost.gpus == 8
    hours = (last.last_observed_ns - last.first_observed_ns) / NS_PER_HOUR
    assert last.cost.lost_gpu_hours == pytest.approx(8 * 12 / 112 * hours, rel=0.3)
    assert last.cost.low <= last.cost.lost_gpu_hours <= last.cost.high
    assert [each.name for each in last.pod_costs] == ["ml/train-0"]


def test_the_gpu_time_of_pods_is_counted_with_what_they_lose_of_it() -> None:
    pod = Identity(JOB, SubjectKind.POD, "u", "ml", "train-0", gpus=8)
    settings = AnalyzerSettings(warmup_seconds=60)
    judge = NodeAnalyzer("n1", settings, announced=Announced(lambda: [pod]))
    counted: list[GpuHours] = []
    judge.on_gpu_hours = lambda by_namespace: counted.append(by_namespace["ml"])
    last = run(judge, node(12))[-1].finding
    assert [each.allocated for each in counted] == pytest.approx([8 * 10 / 3600] * len(counted))
    assert last.cost is not None
    # what was lost before the finding opened is not in it
    assert sum(each.lost for each in counted) == pytest.approx(last.cost.lost_gpu_hours, rel=0.3)
    assert counted[0].lost == counted[-1].lost == 0.0


@pytest.mark.parametrize("percent", [5, 12, 30])
def test_the_end_of_a_slowdown_is_verified_by_the_steps_before_and_after(percent: float) -> None:
    updates = run(analyzer(), node(percent, OVER + 120))
    (update,) = (each for each in updates if each.change is FindingChange.VERIFIED)
    assert update is updates[-1]
    assert update.finding.state is State.RESOLVED
    found = update.finding.verification
    assert found is not None
    assert (found.verdict, found.subject, found.change) == (
        Verdict.IMPROVED, JOB, "the cause ended",
    )  # fmt: skip
    assert found.effect is not None
    assert found.effect.percent == pytest.approx(100 * percent / (100 + percent), abs=1)
    assert found.effect.low <= 100 * percent / (100 + percent) <= found.effect.high


@pytest.mark.parametrize(
    ("helps", "verdict"), [(True, Verdict.IMPROVED), (False, Verdict.NO_EFFECT)]
)
def test_a_change_of_facts_is_verified_while_the_finding_is_open(
    helps: bool, verdict: Verdict
) -> None:
    """Half of the slowdown is gone 100 s before the change is noticed, or all of it stays."""
    changed, noticed, end = 400, 500, 600

    def slower(second: int) -> float:
        return 1 + (0.12 if helps and second >= changed else 0.24) * (second >= ONSET)

    job = Job(0.45, 0.2, 0.02, slower=slower)
    watched, judge = HeartbeatNode({JOB: job}, end, others=OTHERS), analyzer()
    updates: list[FindingUpdate] = []
    for message in watched.slices(lambda _: QUIET):
        if message.sequence == noticed:
            judge.note_changes(["cpu smt: on -> off"])
        updates += judge.analyze(message, watched.table)
    (update,) = (each for each in updates if each.change is FindingChange.VERIFIED)
    found = update.finding.verification
    assert found is not None
    assert update.finding.state is State.OPEN
    assert (found.verdict, found.change) == (verdict, "cpu smt: on -> off")


def test_a_healthy_job_has_no_finding_and_is_in_the_status() -> None:
    judge = analyzer()
    assert run(judge, node(0)) == []
    (line,) = judge.status().heartbeats
    assert line.startswith(f"{JOB}: steps of 4")


def test_a_fault_carries_what_it_cost_the_job() -> None:
    lost = {"network.tcp.retrans_segs": 6.0, "network.tcp.out_segs": 300.0}
    updates = run(analyzer(), node(12), lost)
    found = {update.finding.id: update.finding for update in updates if update.finding.impact}
    assert {finding.subsystem for finding in found.values()} == {Subsystem.NETWORK}
    (last,) = found.values()
    assert last.hypothesis is not None and last.hypothesis.name == "PacketLoss"
    assert last.impact is not None
    assert abs(last.impact.slowdown_percent - 12) < 1.5


def test_a_job_that_is_slower_for_good_hides_no_later_fault() -> None:
    job = Job(0.45, 0.2, 0.02, slower=lambda second: 1 + 0.15 * (second >= ONSET))
    watched = HeartbeatNode({JOB: job}, 470, others=OTHERS, fine=False)
    losses, judge = ((265, 335), (410, 440)), analyzer()
    lost = {"network.tcp.retrans_segs": 60.0, "network.tcp.out_segs": 3000.0}

    def values(second: int) -> dict[str, float]:
        return QUIET | (lost if any(begin <= second < end for begin, end in losses) else {})

    changes: dict[FindingChange, list[int]] = {}
    for message in watched.slices(values):
        for update in judge.analyze(message, watched.table):
            if update.finding.subsystem is Subsystem.NETWORK:
                changes.setdefault(update.change, []).append(message.sequence)
                assert update.finding.impact is None
    opened, resolved = changes[FindingChange.OPENED], changes[FindingChange.RESOLVED]
    for (begin, end), first, last in zip(losses, opened, resolved, strict=True):
        assert begin < first <= begin + 6
        assert end <= last <= end + 30


def test_an_open_finding_has_its_impact_when_the_analysis_ends() -> None:
    judge = analyzer()
    run(judge, node(12, OVER))
    assert all(update.finding.impact is not None for update in judge.finish())


@pytest.mark.parametrize("step", [-7200, 7200])
def test_a_clock_that_is_set_during_a_slowdown_changes_none_of_its_times(step: int) -> None:
    judge, watched, updates = analyzer(), node(12), []
    for message in watched.slices(lambda _: QUIET):
        set_ns = step * NS_PER_SECOND if message.sequence >= 240 else 0
        updates += judge.analyze(
            replace(message, start_ns=message.start_ns + set_ns), watched.table
        )
    assert len({update.finding.id for update in updates}) == 1
    last = updates[-1].finding
    assert last.state is State.RESOLVED
    assert last.resolved_ns is not None
    assert last.first_observed_ns <= last.last_observed_ns <= last.resolved_ns
    lasted = (last.resolved_ns - last.first_observed_ns) / NS_PER_SECOND
    assert OVER - ONSET - 5 <= lasted <= OVER - ONSET + 25


def test_an_analyzer_that_restarts_goes_on_with_the_same_slowdown() -> None:
    judge, watched, updates = analyzer(), node(12), []
    for message in watched.slices(lambda _: QUIET):
        if message.sequence == 240:
            position = Position("n1", message.boot, 239, message.start_ns)
            data = encode(SavedState(position, 1, judge.save()))
            judge = analyzer()
            judge.restore(decode(data).tree)
        updates += judge.analyze(message, watched.table)
    changes = [update.change.value for update in updates]
    assert (changes[0], changes[-1]) == ("Opened", "Resolved")
    assert set(changes[1:-1]) <= {"Changed"}
    assert len({update.finding.id for update in updates}) == 1


def test_the_papers_mode_has_no_heartbeats() -> None:
    updates = run(analyzer(mode="paper"), node(12))
    assert all(update.finding.impact is None for update in updates)


def test_the_same_slices_give_the_same_findings() -> None:
    first, second = (
        [update.finding.to_dict() for update in run(analyzer(), node(8))] for _ in range(2)
    )
    assert first == second
    assert first
