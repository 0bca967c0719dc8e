"""Configuration findings over time, for any facts, and in the output of a scan."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.configuration.evaluate import evaluate
from reveal_analyzer.configuration.watch import ConfigurationTracker
from reveal_cli.configuration_hints import ConfigurationHints, hint_blocks
from reveal_cli.errors import DONE, FOUND
from reveal_cli.summary_text import exit_code
from reveal_cli.terminal import plain_text
from reveal_contract.facts import (
    Cpu,
    DeviceFacts,
    Facts,
    FrequencyPolicy,
    GpuProcess,
    HugePool,
    InterruptVectors,
    Kernel,
    Memory,
    Nic,
    NumaNode,
    PcieLink,
)
from reveal_contract.finding import Severity
from support.property_tests import examples

GPU = "0000:3b:00.0"
SOUND = Facts(node="n", kernel=Kernel(virtual=False))
HALF = DeviceFacts(GPU, "gpu", "10de:2330", link=PcieLink(8, 16, 16))
NARROW = replace(SOUND, devices=(HALF,))
BUSY = replace(NARROW, processes=(GpuProcess(7, "python", (GPU,)),))


def test_a_finding_opens_once_and_resolves_when_the_fact_is_fixed() -> None:
    node = ConfigurationTracker()
    [opened] = node.update(NARROW, 1)
    assert (opened.change, opened.finding.first_observed_ns) == ("Opened", 1)
    assert node.update(NARROW, 2) == []
    assert [finding.last_observed_ns for finding in node.findings] == [2]
    [resolved] = node.update(SOUND, 3)
    assert (resolved.change, resolved.finding.id) == ("Resolved", opened.finding.id)
    assert (resolved.finding.first_observed_ns, resolved.finding.resolved_ns) == (1, 3)
    assert resolved.finding.resolution == "Ended"
    assert node.findings == []
    assert node.update(SOUND, 4) == []


def test_a_finding_that_grows_worse_is_updated() -> None:
    node = ConfigurationTracker()
    node.update(NARROW, 1)
    [worse] = node.update(BUSY, 2)
    assert (worse.change, worse.finding.severity) == ("Changed", Severity.MEDIUM)
    assert worse.finding.first_observed_ns == 1


texts = st.text(max_size=4) | st.sampled_from(["0-3", "0", "always", "powersave", "half", "-1"])
numbers = st.none() | st.integers(-5, 2**40)
FACTS = st.builds(
    Facts,
    node=texts,
    cpu=st.builds(Cpu, present=texts, online=texts, policies=st.tuples(
        st.builds(FrequencyPolicy, driver=texts, governor=texts, lowest=numbers, highest=numbers,
                  possible=numbers))),
    memory=st.builds(Memory, total=numbers, nodes=st.tuples(
        st.builds(NumaNode, cpus=texts, memory=numbers, distances=st.tuples(st.integers()))),
        huge=st.tuples(st.builds(HugePool, size=st.integers(0, 2**40), total=st.integers(0, 999),
                                 free=st.integers(0, 2**50)))),
    kernel=st.builds(Kernel, virtual=st.booleans(), sysctl=st.dictionaries(
        st.sampled_from(["vm.swappiness", "vm.zone_reclaim_mode"]), texts)),
    devices=st.tuples(st.builds(
        DeviceFacts, address=texts, kind=st.sampled_from(["gpu", "network", "storage", "odd"]),
        node=numbers,
        link=st.builds(PcieLink, width=numbers, device_width=numbers, port_width=numbers),
        vectors=st.builds(InterruptVectors, count=st.integers(0, 9), served=texts, allowed=texts))),
    nics=st.tuples(st.builds(Nic, name=texts, pci=texts, up=st.just(True), channels=numbers,
                             channels_most=numbers, missed=numbers, duplex=texts)),
    processes=st.tuples(st.builds(GpuProcess, gpus=st.tuples(texts), cpus=texts, memory=texts)),
)  # fmt: skip


@given(FACTS)
@examples(300)
def test_any_facts_are_judged(facts: Facts) -> None:
    for finding in evaluate(facts, 1):
        # a single brace can be part of a name that the host gives
        assert not re.search(r"\{\w+\}", finding.claim)
        assert finding.to_dict()["kind"] == "Configuration"


def test_hints_are_displayed_worst_first_and_fixed_hints_are_marked() -> None:
    hints = ConfigurationHints()
    slow = replace(SOUND, node="m", cpu=Cpu(clock_flags=("constant_tsc",)),
                   kernel=Kernel(clocksource="hpet"))  # fmt: skip
    hints.update(NARROW, 1)
    hints.update(slow, 1)
    hints.update(SOUND, 2)
    text = plain_text(*hint_blocks(hints.findings))
    assert text.startswith("Configuration: 2 hints\n  Medium  m: The kernel keeps time with hpet")
    assert "fix: the kernel rejected the TSC" in text
    assert "n: The PCIe link of GPU 0000:3b:00.0 runs on 8 of 16 lanes" in text
    assert text.count("(fixed meanwhile)") == text.count("fix: ") == 1
    assert hint_blocks([]) == []


def test_configuration_findings_count_for_fail_on_low_only() -> None:
    findings = evaluate(BUSY, 1)
    assert [finding.severity for finding in findings] == [Severity.MEDIUM]
    assert exit_code(findings, Severity.LOW) == FOUND
    assert exit_code(findings, Severity.MEDIUM) == exit_code(findings, None) == DONE
