"""The judgement of a whole recording, its merge with live findings, and numbers for people."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reveal_analyzer.formatting import decimal, human
from reveal_analyzer.offline import judgement
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import Finding, Hypothesis, Severity, State
from reveal_contract.metric import Kind, Subsystem
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.wire import Message
from support.synthetic_node import Node

LOSS = {"network.tcp.retrans_segs": 80.0, "network.tcp.out_segs": 3000.0}


def recording(seconds: int, fault_s: int | None) -> list[tuple[Message, ChannelTable]]:
    node = Node(seed=2)
    return [
        (
            node.slice(LOSS if fault_s is not None and 0 <= second - fault_s < 12 else None),
            node.table,
        )
        for second in range(seconds)
    ]


def test_a_fault_inside_the_warm_up_is_found_offline() -> None:
    (found,) = judgement.judge(recording(200, fault_s=20), AnalyzerSettings())
    assert found.subsystem is Subsystem.NETWORK


def test_a_quiet_or_too_short_recording_gives_nothing() -> None:
    assert judgement.judge(recording(200, None), AnalyzerSettings()) == []
    assert judgement.judge(recording(60, fault_s=20), AnalyzerSettings()) == []
    assert judgement.judge([], AnalyzerSettings()) == []


def test_merge_keeps_online_findings_and_marks_added_offline_findings() -> None:
    (found,) = judgement.judge(recording(200, fault_s=20), AnalyzerSettings())
    assert judgement.merge([found], [found]) == [found]
    hour = 3600 * 10**9
    later = replace(
        found, id="other", first_observed_ns=found.first_observed_ns + hour,
        last_observed_ns=found.last_observed_ns + hour,
    )  # fmt: skip
    merged = judgement.merge([later], [found])
    assert [f.id for f in merged] == [found.id, "other"]
    assert "offline" in _only_note(merged[0])


def _finding(
    identity: str, subsystem: Subsystem, begin_s: int, end_s: int, cause: str = ""
) -> Finding:
    return Finding(
        identity, "n", subsystem, Severity.HIGH, State.OPEN, begin_s * 10**9, end_s * 10**9, "slow",
        hypothesis=Hypothesis(cause, 80, "") if cause else None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("subsystem", "cause", "added"),
    [
        (Subsystem.STORAGE, "", True),  # another subsystem
        (Subsystem.STORAGE, "SlowDisk", True),
        (Subsystem.CPU, "CPUContention", True),  # another cause
        (Subsystem.CPU, "CPUQuotaThrottling", False),
        (Subsystem.CPU, "", False),
    ],
)
def test_a_finding_that_lasts_hides_only_offline_findings_of_its_own_fault(
    subsystem: Subsystem, cause: str, added: bool
) -> None:
    throttled = _finding("cpu-1", Subsystem.CPU, 0, 600, "CPUQuotaThrottling")
    offline = _finding("other", subsystem, 200, 260, cause)
    found = judgement.merge([throttled], [offline])
    assert ("other" in [each.id for each in found]) == added


def _only_note(finding: Finding) -> str:
    (note,) = finding.notes
    return note


@pytest.mark.parametrize(
    ("value", "unit", "kind", "text"),
    [
        (3.8e8, "ns", Kind.COUNTER, "38 %"),
        (1.25e8, "ns", Kind.RATIO, "125 ms"),
        (float(1 << 30), "bytes", Kind.GAUGE, "1 GiB"),
        (54_321.0, "1", Kind.COUNTER, "54.3 k/s"),
        (6170.0, "ppm", Kind.RATIO, "0.617 %"),
        (float("nan"), "1", Kind.GAUGE, "unknown"),
        (2.93e9, "Hz", Kind.RATIO, "2.93 GHz"),
        (350.2, "joules", Kind.COUNTER, "350 W"),
        (61.0, "celsius", Kind.GAUGE, "61 C"),
    ],
)
def test_values_are_formatted_with_their_unit(
    value: float, unit: str, kind: Kind, text: str
) -> None:
    assert human(value, unit, kind) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1234567.0, "1234567"),
        (0.0123412, "0.01234"),
        (12.5, "12.5"),
        (float("nan"), ""),
    ],
)
def test_decimals_have_no_exponent(value: float, text: str) -> None:
    assert decimal(value) == text


def test_a_metric_that_is_not_read_for_a_while_is_neither_0_nor_a_change() -> None:
    lost = [channel.metric == "memory.mem_available" for channel in Node().table.fast]
    played = recording(200, None)
    for message, _ in played[80:92]:
        message.fast_missing[:, lost] = True
    assert judgement.judge(played, AnalyzerSettings()) == []
