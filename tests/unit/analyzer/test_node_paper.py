"""Paper mode on a node: windows, units, sensitivity, known causes and severities."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from reveal_analyzer.node import NodeAnalyzer
from reveal_analyzer.paper.methods import sample_units
from reveal_contract.catalogue import find
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Severity
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message
from support.synthetic_node import TABLE, WORK, Node

QUIET_S = 70
BUSY = {"network.nic.rx_bytes{eth0}": 9e7, "network.tcp.out_segs": 9e4}
SLIGHTLY_BUSY = {"network.nic.rx_bytes{eth0}": 1e5, "network.tcp.out_segs": 500.0}
DROPS = {"network.tcp.retrans_segs": 60.0}
OOM = {"memory.vm.oom_kill": 10.0}
THROTTLED = {f"cpu.subject.throttled_time{{{WORK}}}": 5e8}


@dataclass
class Watched:
    """A node in Paper mode that was quiet for ``quiet_s``."""

    settings: dict[str, Any] = field(default_factory=dict)
    quiet_s: int = QUIET_S
    updates: list[FindingUpdate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.node = Node()
        self.analyzer = NodeAnalyzer("n1", AnalyzerSettings(mode="paper", **self.settings))
        self.run(self.quiet_s)
        assert not self.updates

    def run(self, seconds: int, fault: dict[str, float] | None = None) -> None:
        for _ in range(seconds):
            self.push(self.node.slice(fault))

    def push(self, message: Message) -> None:
        self.updates += self.analyzer.analyze(message, TABLE)

    @property
    def opened(self) -> list[Finding]:
        return [u.finding for u in self.updates if u.change is FindingChange.OPENED]

    @property
    def last(self) -> Finding:
        return self.analyzer.finish()[0].finding


def second_of(finding: Finding) -> int:
    return (finding.first_observed_ns - 1_700_000_000 * NS_PER_SECOND) // NS_PER_SECOND


@pytest.mark.parametrize(("window", "stride"), [(3, 1), (6, 1), (6, 3)])
def test_windows_are_as_long_and_as_far_apart_as_they_are_set(window: int, stride: int) -> None:
    quiet_s = max(QUIET_S, window + 31 * stride)
    node = Watched({"window_seconds": window, "stride_seconds": stride}, quiet_s)
    node.run(3 * window, BUSY)
    [finding] = node.opened
    ends = second_of(finding) + window
    assert (ends - window) % stride == 0  # the first window ends with second number ``window``
    assert quiet_s < ends <= quiet_s + window + stride


def test_a_metric_that_stood_still_counts_once_it_moves() -> None:
    node = Watched()
    node.run(5, DROPS)
    [finding] = node.opened
    assert {m.name for m in finding.methods if m.agrees} >= {"ZScore", "Mahalanobis"}
    assert any(line.metric == "network.tcp.retrans_segs" for line in finding.evidence)


def test_evidence_has_its_unit_whatever_the_sample_period() -> None:
    def lines(period_ms: int) -> dict[tuple[str, str], tuple[float, str]]:
        node, analyzer = Node(), NodeAnalyzer("n1", AnalyzerSettings(mode="paper"))
        found: list[Finding] = []
        for second in range(80):
            message = sampled_every(node.slice(DROPS if second >= QUIET_S else None), period_ms)
            found += [u.finding for u in analyzer.analyze(message, TABLE)]
        return {
            (line.metric, line.feature): (float(line.value), line.unit)
            for finding in [*found, analyzer.finish()[0].finding]
            for line in finding.evidence
        }

    fine, coarse = lines(100), lines(200)
    same = {"mean", "maximum", "sum_values", "median", "minimum"}
    compared = [key for key in fine.keys() & coarse.keys() if key[1] in same]
    assert compared
    for key in compared:
        assert fine[key][1] == coarse[key][1]
        assert fine[key][0] == pytest.approx(coarse[key][0], rel=0.1)
    units = {
        feature: unit for (metric, feature), (_, unit) in fine.items() if "retrans_segs" in metric
    }
    known = {"mean": "events/s", "sum_values": "events", "variance": "events^2/s^2"}
    assert units["mean"] == "events/s"
    assert all(unit == known.get(feature, unit) for feature, unit in units.items())


def sampled_every(message: Message, period_ms: int) -> Message:
    """Return a slice as if it had been sampled less often."""
    step = period_ms * 1000 // message.tick_us
    gauges = np.array([c.kind == "gauge" for c in TABLE.fast])
    grouped = message.fast.reshape(-1, step, message.fast.shape[1])
    fast = np.where(gauges, grouped[:, -1], grouped.sum(1))
    return replace(
        message, tick_us=period_ms * 1000, fast=fast, fast_missing=np.zeros(fast.shape, bool)
    )


def test_another_sample_period_is_learned_and_no_anomaly() -> None:
    node = Watched()
    for _ in range(QUIET_S):
        node.push(sampled_every(node.node.slice(), 200))
    assert not node.opened
    assert not node.analyzer.learning


def test_sensitivity_lowers_the_thresholds_of_the_detectors() -> None:
    def marked(sensitivity: str) -> int:
        node = Watched({"sensitivity": sensitivity}, quiet_s=60)
        seconds = 0
        for index in range(40):
            node.run(1, {name: value * (1 + index / 400) for name, value in SLIGHTLY_BUSY.items()})
            seconds += bool(node.analyzer.finish())
        return seconds

    low, medium, high = map(marked, ("Low", "Medium", "High"))
    assert low < medium <= high


def test_a_known_cause_names_severity_remedy_and_claim() -> None:
    node = Watched()
    node.run(3, OOM)
    finding = node.opened[0]
    assert finding.hypothesis is not None
    assert finding.hypothesis.name == "OOMKill"
    assert finding.hypothesis.remediation
    assert finding.severity is Severity.CRITICAL
    assert finding.claim == "The kernel killed processes because memory ran out"
    assert second_of(finding) >= QUIET_S - 2


def test_a_signature_opens_a_finding_by_itself_names_the_subject_and_ends_with_it() -> None:
    node = Watched()
    node.run(6, THROTTLED)
    [finding] = node.opened
    assert finding.hypothesis is not None
    assert finding.hypothesis.name == "CPUQuotaThrottling"
    assert [subject.name for subject in finding.subjects] == [WORK]
    assert "ms a second" in finding.claim
    node.run(20)
    assert [u.change for u in node.updates][-1] is FindingChange.RESOLVED


def test_a_signature_still_compares_with_what_was_before_the_episode() -> None:
    """The live score learns what lasts for a minute; the fault is the same."""
    node = Watched()
    node.run(150, DROPS)
    assert len(node.opened) == 1
    assert node.last.hypothesis is not None


def test_of_activity_that_stood_still_no_amount_matters() -> None:
    """Most of what is still for a minute on a healthy host moves later."""
    window = np.full((30, len(TABLE.fast)), 1.0)
    amounts = sample_units(TABLE.fast, window, 0.1).amounts
    known = dict(zip([channel.label for channel in TABLE.fast], amounts.tolist(), strict=True))
    assert np.isinf(known["network.nic.rx_bytes{eth0}"])
    assert known["network.tcp.retrans_segs"] == 0.1 * find("network.tcp.retrans_segs").quantum


def test_the_claim_of_the_detectors_alone_has_units() -> None:
    node = Watched()
    node.run(6, BUSY)
    claim = node.last.claim
    assert "relative to baseline" in claim
    assert "bytes" in claim or "packets" in claim
