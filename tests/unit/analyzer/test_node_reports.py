"""What becomes of lasting faults in the Kubernetes API: from slices to reports and Events."""

from __future__ import annotations

from collections.abc import Mapping

from reveal_analyzer.node import Announced, NodeAnalyzer
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import Finding, FindingChange, State
from reveal_contract.kube.anomaly_report import Report
from reveal_contract.metric import Kind
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.subjects import Identity, SubjectKind
from support.report_store_harness import StoreHarness
from support.synthetic_node import TABLE, WORK, Node

QUIET_S = 120
USAGE = "cpu.subject.usage"
PODS = tuple(
    Identity(f"ml/{name}", SubjectKind.POD, f"u-{name}", "ml", name) for name in ("trainer", "hog")
)
WITH_PODS = ChannelTable(
    (
        *(channel for channel in TABLE.fast if ".subject." not in channel.metric),
        *(Channel(USAGE, each.instance, Kind.COUNTER) for each in PODS),
        Channel("cpu.run_time", "", Kind.COUNTER),
    ),
    TABLE.slow,
)
WAITING = {"cpu.pressure.some": 700_000.0, "cpu.procs_running": 9.0, "cpu.user": 180.0}
THROTTLED = {f"cpu.subject.throttled_time{{{WORK}}}": 2e8}
CONTENTION = {
    "cpu.pressure.some": 990_000.0, "cpu.procs_running": 30.0, "cpu.user": 195.0,
    "cpu.user{0}": 99.0, "cpu.user{1}": 96.0,
}  # fmt: skip


def cpus(trainer: float, hog: float) -> dict[str, float]:
    """Return the CPU time of both pods and of the host, in CPUs."""
    used = {f"{USAGE}{{ml/trainer}}": trainer, f"{USAGE}{{ml/hog}}": hog}
    return {name: each * 1e9 for name, each in {**used, "cpu.run_time": trainer + hog}.items()}


class ReportedNode:
    """A node, its analysis, and the reports of its findings on the clock of the node."""

    def __init__(self, table: ChannelTable = TABLE, pods: tuple[Identity, ...] = ()) -> None:
        self.node = Node(table)
        self.analysis = NodeAnalyzer(
            "n1", AnalyzerSettings(warmup_seconds=60), announced=Announced(lambda: pods)
        )
        self.api = StoreHarness()
        self.api.now = 0.0
        self.findings: list[Finding] = []

    def run(self, seconds: int, *changed: Mapping[str, float]) -> None:
        values = {name: value for each in changed for name, value in each.items()}
        for _ in range(seconds):
            updates = self.analysis.analyze(self.node.slice(values), self.node.table)
            self.findings += [u.finding for u in updates if u.change is not FindingChange.SUSPECTED]
            self.api.now += 1
            self.api.update(*updates)
            self.api.observe()
            self.api.deliver()

    @property
    def reports(self) -> dict[str, Report]:
        """The reports as they were written last, by cause."""
        return {
            report.finding.hypothesis.name: report
            for report in {each.name: each for each in self.api.written}.values()
            if report.finding.hypothesis
        }


def test_only_the_culprit_is_named_and_notified_however_long_its_fault_lasts() -> None:
    node = ReportedNode(WITH_PODS, PODS)
    node.run(QUIET_S, cpus(1.5, 0.0))
    node.run(660, WAITING, cpus(1.2, 0.6))
    node.run(40, cpus(1.5, 0.0))
    assert node.findings[-1].state is State.RESOLVED
    assert {finding.pods[0].name for finding in node.findings} == {"hog"}
    assert {report.finding.pods[0].name for report in node.api.written} == {"hog"}
    assert "trainer" not in node.api.notified


def test_a_report_keeps_its_cause_when_another_fault_of_its_subsystem_ends() -> None:
    node = ReportedNode()
    node.run(QUIET_S)
    node.run(300, THROTTLED)
    alone = node.reports["CPUQuotaThrottling"]
    node.run(100, THROTTLED, CONTENTION)
    assert {cause: report.open for cause, report in node.reports.items()} == {
        "CPUQuotaThrottling": True, "CPUContention": True,
    }  # fmt: skip
    node.run(60, THROTTLED)
    assert {cause: report.open for cause, report in node.reports.items()} == {
        "CPUQuotaThrottling": True, "CPUContention": False,
    }  # fmt: skip
    kept = node.reports["CPUQuotaThrottling"]
    assert kept.name == alone.name
    assert kept.severity == alone.severity
    assert kept.finding.claim.startswith("A CPU quota throttled tasks for ")
    assert node.api.reasons.count("AnomalyDetected") == 2
