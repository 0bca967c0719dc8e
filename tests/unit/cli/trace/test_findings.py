from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reveal_cli.errors import CliError
from reveal_cli.trace.findings import JOBS, counters, draw, read
from reveal_cli.trace.timeline import Timeline
from reveal_contract.costs import Cost
from reveal_contract.finding import (
    Confidence,
    Evidence,
    FindingKind,
    Hypothesis,
    JobLoss,
    Pod,
    Subject,
)
from support.finding_factory import START_NS, finding
from support.perfetto_trace import DecodedTrace, decoded

SECOND = 1_000_000_000


def row(**other: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "hypothesis": Hypothesis("ForkStorm", 99, "Stop it."),
        "pods": (
            Pod("a", "storm", "u", "c", 80, 70, Confidence.MEASURED),
            Pod("a", "quiet", "v", "c", 1, 0, Confidence.CO_LOCATED),
        ),
        "subjects": (Subject("Unit", "shrunk.service", 2, -9, Confidence.MEASURED),),
        "share_metric": "cpu.subject.usage",
        "victims": ("b/train",),
        "lost_time": (JobLoss("b/train", 12.5, 10),),
        "notes": ("a note",),
        "evidence": (
            Evidence("cpu.forks", "mean", "", "800", "3", "events/s", "up"),
            Evidence("cpu.user", "maximum", "eth0", "1", "", "ns/s", "up"),
        ),
    }
    return finding(**given | other).to_dict()


def drawn(*rows: dict[str, Any]) -> DecodedTrace:
    timeline = Timeline()
    for each in rows:
        draw(timeline, each)
    return decoded(timeline.packets(0, 0))


def test_flows_lead_from_the_cause_to_the_finding_and_to_whom_it_slows() -> None:
    cause, found, victim = drawn(row()).slices
    assert cause.path == ("n1", JOBS, "a/storm")
    assert (found.path, found.name) == (("n1", "CPU"), "ForkStorm (Medium)")
    assert victim.path == ("n1", JOBS, "b/train")
    assert cause.flows_out == found.flows_in
    assert found.flows_out == victim.flows_in
    assert set(cause.flows_out).isdisjoint(found.flows_out)
    assert len(cause.flows_out) == len(found.flows_out) == 1
    assert (cause.flows_in, victim.flows_out) == ([], [])
    assert cause.details == {"share": "80 % of cpu.subject.usage", "confidence": "Measured"}
    assert victim.details == {"lost time": "12.5 %"}


def test_a_finding_has_its_cost_among_its_details() -> None:
    [costly] = drawn(row(cost=Cost(8, 0.9, 1.8, 1.2, 2.4))).of("finding")
    assert costly.details["cost"] == "1.800 GPU-hours"
    [plain] = drawn(row()).of("finding")
    assert "cost" not in plain.details


def test_a_finding_is_as_long_as_it_was_observed_and_no_shorter_than_a_second() -> None:
    short = row(last_observed_ns=START_NS)
    lengths = [each.end - each.begin for each in drawn(row(), short).of("finding")]
    assert lengths == [5 * SECOND, SECOND]
    assert {each.begin // 1_000_000 for each in drawn(row()).slices} == {START_NS // 1_000_000}


def test_a_selected_finding_has_its_claim_remedy_notes_and_evidence() -> None:
    [found] = drawn(row()).of("finding")
    assert found.details["claim"] == "CPU is slow"
    assert found.details["remedy"] == "Stop it."
    assert found.details["note 1"] == "a note"
    assert found.details["evidence cpu.forks"] == "800 events/s, baseline 3"
    assert found.details["evidence cpu.user{eth0} maximum"] == "1 ns/s, baseline -"


def test_the_metrics_of_the_evidence_are_counters() -> None:
    assert [(path, unit) for path, _, unit in counters(row())] == [
        (("n1", "CPU", "cpu.forks"), "events/s"),
        (("n1", "CPU", "cpu.user{eth0} maximum"), "ns/s"),
    ]


def test_a_rule_on_the_configuration_is_not_drawn() -> None:
    hint = row(kind=FindingKind.CONFIGURATION)
    assert drawn(hint).slices == []
    assert list(counters(hint)) == []


def test_a_file_has_the_last_state_of_each_finding(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text("".join(json.dumps(row(claim=claim)) + "\n" for claim in ("old", "new")))
    assert [each["claim"] for each in read(path)] == ["new"]


@pytest.mark.parametrize(
    "broken",
    ["{", "[]", "{}", json.dumps(row() | {"firstSeenTime": "today"}),
     json.dumps(row() | {"subsystem": 7}), json.dumps(row() | {"pods": [{}]})],
)  # fmt: skip
def test_a_line_that_is_no_finding_is_named(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(f"{json.dumps(row())}\n{broken}\n")
    with pytest.raises(CliError, match="line 2 is not a finding"):
        read(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="cannot read"):
        read(tmp_path / "missing.jsonl")
