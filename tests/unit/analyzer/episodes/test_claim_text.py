"""Claims hold for many CPUs and tasks, and state the value of the device that they are about."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pytest

from reveal_analyzer.derive.columns import CHANGE, Column, column_plan
from reveal_analyzer.episodes.claim_text import column_claim, rule_claim
from reveal_analyzer.episodes.trace import ObservedSecond, Trace
from reveal_analyzer.hypotheses.loader import load
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.signature_matcher import SignatureMatch
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Harm, Metric, Scope
from reveal_contract.time_units import NS_PER_SECOND

RULES = {rule.name: rule for rule in load()}


def trace_of(channels: list[tuple[str, str]], values: Mapping[str, float]) -> Trace:
    """Return five seconds of these channels; ``values`` are by the label of the column."""
    table = ChannelTable(
        (), tuple(Channel(name, where, catalogue.find(name).kind) for name, where in channels)
    )
    plan = column_plan(table)
    observed = np.array([values.get(column.label, 0.0) for column in plan.columns])
    weight = np.array([20.0 * (column.label in values) for column in plan.columns])
    excess = np.stack([weight * (observed >= 0), weight * (observed < 0)])
    trace = Trace()
    for second in range(5):
        trace.add(
            ObservedSecond(second * NS_PER_SECOND, plan, observed, excess, weight, 0 * weight)
        )
    return trace


def match(trace: Trace, name: str, label: str) -> SignatureMatch:
    columns = tuple(column for column in trace.stats.columns if column.label == label)
    assert columns
    return SignatureMatch(RULES[name], columns)


@pytest.mark.parametrize(
    ("rule", "label", "value", "sentence"),
    [
        ("CPUQuotaThrottling", "cpu.subject.throttled_time__sum_values", 24.5e9,
         "A CPU quota throttled tasks for 24.5 s a second, all of their CPUs together"),
        ("CPUContention", "cpu.pressure.some__mean", 9.9e8,
         "Tasks waited for a CPU 99 % of the time: more work is runnable than there are CPUs"),
        ("ContextSwitchStorm", "cpu.context_switches__mean", 54e3,
         "54 k context switches a second, far above this host's baseline"),
        ("ForkStorm", "cpu.forks__mean", 700, "700 processes were started every second"),
        ("SoftirqPressure", "cpu.softirq__mean", 2.5e9,
         "Softirqs took 2.5 s of CPU time every second"),
        ("MemoryLeak", "memory.mem_available__mean_change", -3.2e7,
         "Available memory keeps falling (-30.5 MiB a second)"),
    ],
)  # fmt: skip
def test_the_sentence_of_a_known_cause(rule: str, label: str, value: float, sentence: str) -> None:
    metric, _, _ = label.partition("__")
    subject = "ml/a" if catalogue.find(metric).scope is Scope.SUBJECT else ""
    trace = trace_of([(metric, subject)], {label: value})
    assert rule_claim(trace, RULES[rule], match(trace, rule, label)) == sentence


def test_the_value_is_that_of_the_device_that_met_the_condition() -> None:
    disks = [("storage.disk.await", "nvme0n1"), ("storage.disk.await", "nvme1n1")]
    slow = "storage.disk.await{nvme1n1}__mean"
    both = {"storage.disk.await{nvme0n1}__mean": 9e8, slow: 4e8}
    trace = trace_of(disks, both)
    assert rule_claim(trace, RULES["SlowDevice"], match(trace, "SlowDevice", slow)) == (
        "Requests to a disk took 400 ms each"
    )


def test_a_value_that_is_gone_is_not_taken_from_another_device() -> None:
    disks = [("storage.disk.await", "nvme0n1"), ("storage.disk.await", "nvme1n1")]
    trace = trace_of(disks, {})
    gone = match(trace, "SlowDevice", "storage.disk.await{nvme1n1}__mean")
    rest = trace_of(disks[:1], {"storage.disk.await{nvme0n1}__mean": 1e5})
    claim = rule_claim(rest, RULES["SlowDevice"], gone)
    assert claim == "The evidence fits SlowDevice; the value of storage.disk.await was not read"


@pytest.mark.parametrize(
    ("rule", "metric", "value", "stated"),
    [
        ("CPUContention", "cpu.busy", 1.9e9, "cpu.pressure.some"),
        ("StolenCPU", "cpu.pressure.some", 9e8, "cpu.steal"),
        ("MemoryLeak", "memory.anon_pages", 3e9, "memory.mem_available"),
        ("KernelMemoryGrowth", "memory.mem_available", 9e9, "memory.s_unreclaim"),
        ("IntrinsicRetransmission", "network.tcp.in_bursts", 1e6, "network.tcp.retransmit_share"),
        ("ForkStorm", "memory.vm.pgfault", 9e4, "cpu.forks"),
    ],
)
def test_the_value_of_another_metric_is_not_stated(
    rule: str, metric: str, value: float, stated: str
) -> None:
    """Such as on a kernel without pressure: how busy CPUs are is no time that tasks waited."""
    kind = "mean"
    trace = trace_of([(metric, "")], {f"{metric}__{kind}": value})
    claim = rule_claim(trace, RULES[rule], None)
    assert claim == f"The evidence fits {rule}; the value of {stated} was not read"


def test_a_metric_that_the_signature_takes_for_the_first_is_stated() -> None:
    label = "memory.vm.pswpin__mean"
    claim = rule_claim(
        trace_of([("memory.vm.pswpin", "")], {label: 500.0}), RULES["Swapping"], None
    )
    assert claim == "500 pages were swapped in every second"


def test_without_a_signature_the_device_that_moved_most_counts() -> None:
    links = [("network.nic.speed", "eth0"), ("network.nic.speed", "eth1")]
    trace = trace_of(links, {"network.nic.speed{eth0}__mean": 1e8})
    trace.excess = np.stack([np.zeros(trace.excess.shape[1]), trace.excess[0]])
    rule = RULES["LinkSlower"]
    expected = rule_claim(trace, rule, None)
    eth0, eth1 = (
        next(c for c in trace.stats.columns if c.label == f"network.nic.speed{{{name}}}__mean")
        for name in ("eth0", "eth1")
    )
    assert trace.stats.index_of(eth0) != trace.stats.index_of(eth1)
    assert expected == rule_claim(trace, rule, SignatureMatch(rule, (eth0,)))


def test_a_change_is_stated_as_a_change_a_second() -> None:
    trace = trace_of([("memory.cached", "")], {"memory.cached__mean_change": -3e8})
    labels = [column.label for column in trace.stats.columns]
    sentence = column_claim(trace, labels.index("memory.cached__mean_change"))
    assert sentence == "memory.cached (Cached) falls by 286 MiB/s"


def test_a_column_of_many_cpus_or_subjects_is_stated_as_such() -> None:
    channels = [("cpu.run_delay", "0"), ("cpu.run_delay", "1"), ("cpu.subject.pressure", "ml/a")]
    moved = {"cpu.run_delay__maximum": 3e9, "cpu.subject.pressure__sum_values": 5e9}
    trace = trace_of(channels, moved)
    labels = [column.label for column in trace.stats.columns]
    delay, waiting = (column_claim(trace, labels.index(label)) for label in moved)
    assert "of the busiest CPU at 3 s/s" in delay
    assert "of all subjects together at 5 s/s" in waiting


def first_column(rule: HypothesisRule) -> Column:
    items = (*rule.certain.conditions, *rule.certain.any) if rule.certain else rule.expects
    metric: Metric = catalogue.find(items[0].metric)
    per_subject = "sum_values" if metric.scope is Scope.SUBJECT else "mean"
    return Column(metric, "", items[0].feature or per_subject)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("value", [0.3, 2.5e9])
def test_no_claim_exceeds_all_the_time_or_states_a_rate_twice(
    rule: HypothesisRule, value: float
) -> None:
    column = first_column(rule)
    if column.metric.harm is Harm.LOWER or column.feature == CHANGE:
        return
    channel = column.metric.name, "ml/a" if "subject" in column.metric.name else ""
    labels = [each.label for each in trace_of([channel], {}).stats.columns]
    trace = trace_of([channel], dict.fromkeys(labels, value))
    found = SignatureMatch(rule, (trace.stats.columns[0],))
    claim = rule_claim(trace, rule, found)
    assert "much" not in claim
    assert not re.search(r"/s\b.*(a|every) second", claim), claim
    assert not re.search(r"(\d+)/s [a-z]", claim), claim
    assert "of the time of" not in claim
    if "together" in rule.claim or "CPU time" in rule.claim:  # a sum over CPUs or requests
        assert "%" not in claim
