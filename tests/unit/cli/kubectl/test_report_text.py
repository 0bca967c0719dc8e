"""The table of open findings, and all that is known of a finding."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from rich.cells import cell_len

from reveal_cli.kubectl.report_text import (
    open_lines,
    repeated_lines,
    report_blocks,
    worst_first,
)
from reveal_cli.kubectl.reports import ClusterReport
from reveal_cli.terminal import plain_text
from reveal_contract.costs import Cost
from reveal_contract.finding import Finding, Hypothesis, JobLoss, Resolution, Severity, State
from reveal_contract.kube.silence import Silence
from support.finding_factory import (
    MINUTE_NS,
    ONSET_NS,
    START_NS,
    cpu_contention,
    finding,
    gpu_clock_outlier,
    tcp_retransmission,
)
from support.reports_api import stored

NOW_NS = ONSET_NS + 60 * MINUTE_NS
COST = Cost(8, 0.857, 1.8, 1.2, 2.4)


def of(found: Finding, silence: Silence | None = None) -> ClusterReport:
    raw = stored(found)
    if silence is not None:
        raw["metadata"]["annotations"] = silence.to_annotations()
    parsed = ClusterReport.parse(raw)
    assert parsed is not None
    return parsed


def explained(item: ClusterReport) -> str:
    return plain_text(*report_blocks(item, NOW_NS))


def on(job: str, identity: str, severity: Severity) -> ClusterReport:
    return of(finding(identity, severity=severity, victims=(f"ml/{job}-0",)))


def test_jobs_are_together_and_the_worst_finding_is_first() -> None:
    items = [
        on("b", "1", Severity.MEDIUM), on("a", "2", Severity.LOW), on("b", "3", Severity.LOW),
        on("a", "4", Severity.CRITICAL), on("c", "5", Severity.HIGH),
    ]  # fmt: skip
    assert [item.report.identity.finding_id for item in worst_first(items)] == list("42513")


def test_of_equal_findings_the_costliest_is_first_then_the_oldest() -> None:
    cheap, dear = (
        of(finding(name, victims=(f"ml/{name}-0",), lost_time=(JobLoss(f"ml/{name}-0", lost, 60),)))
        for name, lost in (("cheap", 5.0), ("dear", 50.0))
    )
    older = of(finding("older", first_observed_ns=ONSET_NS - MINUTE_NS))
    names = [item.report.identity.finding_id for item in worst_first([older, cheap, dear])]
    assert names == ["dear", "cheap", "older"]


def test_of_equal_severity_the_finding_that_cost_most_gpu_hours_is_first() -> None:
    slowest = of(finding("slowest", victims=("ml/a-0",), lost_time=(JobLoss("ml/a-0", 50.0, 60),)))
    costs = {"dear": 9.0, "cheap": 0.1}
    items = [
        of(finding(name, victims=(f"ml/{name}-0",), cost=replace(COST, lost_gpu_hours=hours)))
        for name, hours in costs.items()
    ]
    names = [item.report.identity.finding_id for item in worst_first([slowest, *items])]
    assert names == ["dear", "cheap", "slowest"]


def test_gpu_hours_are_in_the_row_and_in_the_explanation() -> None:
    item = of(replace(cpu_contention(NOW_NS), cost=COST))
    assert "1.8 GPU-h, steps +11 %" in open_lines([item], NOW_NS)[1]
    words = " ".join(explained(item).split())
    assert "cost 1.8 GPU-hours so far (1.2 to 2.4), 0.9 of 8 GPUs steps of" in words


def test_a_row_names_job_cause_culprit_cost_silence_and_report() -> None:
    silence = Silence(NOW_NS + 90 * MINUTE_NS, "new memory")
    item = of(cpu_contention(NOW_NS), silence)
    [_, row] = open_lines([item], NOW_NS)
    assert re.split(r" {3,}", row) == [
        "training/llm-worker", "High", "gpu-07", "CPUContention", "batch/reindex-5d9f7",
        "steps +11 %", "15m02s", "for 1h30m", item.name,
    ]  # fmt: skip


def test_columns_are_aligned_and_only_the_name_of_the_report_is_always_complete() -> None:
    wide = of(finding("x", node_name="n" * 253, victims=("ml/" + "語" * 40,)))
    lines = open_lines([wide, on("a", "2", Severity.LOW)], NOW_NS)
    begins = {cell_len(line[: line.index(word)]) for line, word in zip(
        lines, ("SEVERITY", "Medium", "Low"), strict=True)}  # fmt: skip
    assert len(begins) == 1
    assert lines[1].endswith(f"   {wide.name}")
    assert cell_len(lines[1]) < len(wide.name) + 200


def test_a_finding_without_a_job_is_listed_with_its_node() -> None:
    [_, row] = open_lines([of(gpu_clock_outlier(NOW_NS))], NOW_NS)
    assert row.startswith("(node gpu-09) ")


def test_why_has_cause_culprit_cost_and_remedy() -> None:
    text = explained(of(cpu_contention(NOW_NS)))
    assert text.splitlines()[0] == "High, Open: CPUContention on gpu-07"
    words = " ".join(text.split())
    for expected in (
        "what Tasks waited for a CPU 38 % of the time",
        "when since 2023-11-14T22:58:18Z, for 15m02s",
        "cause CPUContention (93 % sure)",
        "culprit batch/reindex-5d9f7: 61 % of cpu.subject.usage (+58 points) Measured",
        "victims training/llm-worker-3",
        "cost steps of training/llm-worker-3 take 11.4 % longer (9.8 to 13.1)",
        "training/llm-worker-3 lost 38 % of its time, its work takes 62 % longer",
        "what to do Move or limit the subject that grew",
        "evidence cpu.pressure.some 38 % (baseline 0.21 %)",
        "report p-gpu-07-cpu-",
    ):
        assert expected in words
    assert "silenced" not in text


def test_why_has_end_and_reason_of_a_silence() -> None:
    silence = Silence(NOW_NS + 90 * MINUTE_NS, "new memory")
    words = " ".join(explained(of(cpu_contention(NOW_NS), silence)).split())
    assert "silenced until 2023-11-15T00:43:20Z (for 1h30m): new memory" in words
    over = Silence(NOW_NS - 1, "new memory")
    assert "silenced" not in explained(of(cpu_contention(NOW_NS), over))


def test_pods_that_are_only_there_are_no_culprits() -> None:
    words = " ".join(explained(of(tcp_retransmission(NOW_NS))).split())
    assert "culprit not known; on the node: training/llm-worker-0" in words
    assert "cause no known cause fits" in words


def test_a_resolved_finding_has_its_end_and_resolution() -> None:
    over = finding(
        state=State.RESOLVED, resolved_ns=ONSET_NS + 90 * 10**9, first_observed_ns=ONSET_NS,
        resolution=Resolution.UNOBSERVED,
    )  # fmt: skip
    text = explained(of(over))
    assert text.startswith("Medium, Unobserved: ")
    assert "2023-11-14T22:13:20Z to 2023-11-14T22:14:50Z, 1m30s" in text


def test_causes_that_came_back_on_a_node_are_counted() -> None:
    def of_cause(identity: str, minute: int, **given: Any) -> ClusterReport:
        onset_ns = START_NS + minute * MINUTE_NS
        return of(finding(identity, first_observed_ns=onset_ns, **given))

    loss, slow = Hypothesis("PacketLoss", 90, ""), Hypothesis("CPUContention", 90, "")
    items = [
        of_cause("a", 9, hypothesis=slow), of_cause("b", 3, hypothesis=slow),
        of_cause("c", 5, hypothesis=loss), of_cause("d", 0, hypothesis=loss),
        of_cause("e", 7, hypothesis=loss), of_cause("f", 7, hypothesis=loss, node_name="n2"),
    ]  # fmt: skip
    assert repeated_lines(items) == [
        "repeated: PacketLoss on n1, 3 findings since 2023-11-14T22:13:20Z",
        "repeated: CPUContention on n1, 2 findings since 2023-11-14T22:16:20Z",
    ]
    assert repeated_lines(items[-1:]) == []
