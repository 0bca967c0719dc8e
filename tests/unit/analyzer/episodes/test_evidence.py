"""Evidence explains the harm: activity that a cause does not describe is no evidence of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from reveal_analyzer.derive.columns import column_plan
from reveal_analyzer.episodes.evidence import evidence, evidence_columns
from reveal_analyzer.episodes.trace import ObservedSecond, Trace
from reveal_analyzer.hypotheses.loader import load
from reveal_analyzer.hypotheses.signature_matcher import SignatureMatch
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Harm, Subsystem

RULES = {rule.name: rule for rule in load()}
VETHS = [("network.nic.rx_bytes", f"veth{number}") for number in range(6)]
THROTTLED = ("cpu.subject.throttled_time", "ml/a")


def trace_of(weights: Mapping[tuple[str, str], float]) -> Trace:
    """Return one second in which these channels left their baseline by so much."""
    table = ChannelTable(
        (), tuple(Channel(name, where, catalogue.find(name).kind) for name, where in weights)
    )
    plan = column_plan(table)
    by_metric = {name: weight for (name, _), weight in weights.items()}
    weight = np.array([by_metric.get(c.metric.name, 0.0) for c in plan.columns])
    trace = Trace()
    excess = np.stack([weight, 0 * weight])
    trace.add(ObservedSecond(0, plan, 1e9 * (weight > 0), excess, weight, 0 * weight))
    return trace


def listed(trace: Trace, rule: str = "", subsystems: Collection[Subsystem] = ()) -> list[str]:
    matches = {}
    if rule:
        own = tuple(c for c in trace.stats.columns if c.metric.name == THROTTLED[0])
        matches = {rule: SignatureMatch(RULES[rule], own)}
    chosen = evidence_columns(trace, RULES.get(rule), matches, subsystems)
    return [evidence(trace, index).metric for index in chosen]


def test_bytes_of_interfaces_are_no_evidence_of_a_cpu_quota() -> None:
    weights = dict.fromkeys(VETHS, 30.0) | {THROTTLED: 10.0, ("cpu.steal", ""): 3.0}
    weights |= {("cpu.pressure.some", ""): 5.0}
    found = listed(trace_of(weights), "CPUQuotaThrottling")
    assert found == ["cpu.subject.throttled_time", "cpu.steal", "cpu.pressure.some"]


def test_harm_elsewhere_that_a_known_cause_does_not_describe_is_no_evidence_of_it() -> None:
    trace = trace_of({THROTTLED: 10.0, ("storage.disk.read_time", "vda"): 8.0})
    assert listed(trace, "CPUQuotaThrottling") == ["cpu.subject.throttled_time"]
    affected = listed(trace, "CPUQuotaThrottling", [Subsystem.STORAGE])
    assert affected == ["cpu.subject.throttled_time", "storage.disk.read_time"]


def test_without_a_known_cause_three_columns_of_activity_are_evidence() -> None:
    weights = {(name, where): 30.0 - n for n, (name, where) in enumerate(VETHS)}
    found = listed(trace_of(weights | {("cpu.steal", ""): 3.0}))
    assert found == [VETHS[0][0]] * 3 + ["cpu.steal"]
    assert catalogue.find(VETHS[0][0]).harm is Harm.NEITHER
