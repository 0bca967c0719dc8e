"""Reports of a cluster as typed values; hostile names become inert."""

from __future__ import annotations

import pytest

from reveal_cli.kubectl.report_json import print_items
from reveal_cli.kubectl.report_text import open_lines, report_blocks
from reveal_cli.kubectl.reports import ClusterReport, ReportList
from reveal_cli.terminal import plain_text
from reveal_contract.finding import Confidence, Evidence, Hypothesis, JobLoss, Pod, Subject
from reveal_contract.kube.silence import Silence
from support.finding_factory import START_NS, finding
from support.reports_api import stored

HOSTILE = "\x1b]0;owned\x07\u202egnp.exe\r\n\u2066<b>"
NOW_NS = START_NS + 60 * 10**9


def hostile() -> ClusterReport:
    found = finding(
        claim=HOSTILE,
        hypothesis=Hypothesis(HOSTILE, 90, HOSTILE),
        evidence=(Evidence(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, "up", HOSTILE),),
        pods=(Pod(HOSTILE, HOSTILE, "", "", 61, 58, Confidence.MEASURED),),
        subjects=(Subject("Cgroup", HOSTILE, 1, 1, Confidence.INFERRED),),
        victims=(HOSTILE,),
        lost_time=(JobLoss(HOSTILE, 10.0, 60),),
        notes=(HOSTILE,),
        share_metric=HOSTILE,
    )
    raw = stored(found)
    raw["metadata"]["annotations"] = Silence(NOW_NS * 2, HOSTILE).to_annotations()
    parsed = ClusterReport.parse(raw)
    assert parsed is not None
    return parsed


def test_no_text_of_a_report_acts_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    item = hostile()
    text = plain_text(*open_lines([item], NOW_NS), *report_blocks(item, NOW_NS))
    print_items([item], NOW_NS)
    for printed in (text, capsys.readouterr().out):
        assert all(line.isprintable() for line in printed.split("\n"))
    assert "\\x1b]0;owned" in text


def test_names_that_differ_stay_different() -> None:
    first, second = (
        ClusterReport.parse(stored(finding(claim=claim))) for claim in ("a\x1b", "a\x07")
    )
    assert first is not None
    assert second is not None
    assert first.finding.claim != second.finding.claim


def test_a_report_that_cannot_be_read_is_counted() -> None:
    newer = stored(finding("cpu-2"))
    newer["status"]["severity"] = "Catastrophic"
    listed = ReportList.of([stored(finding()), newer])
    assert [item.name for item in listed.reports] == ["p-n1-cpu-1"]
    assert listed.unreadable == 1


def test_a_silence_that_is_over_is_none() -> None:
    raw = stored(finding())
    raw["metadata"]["annotations"] = Silence(NOW_NS, "new memory").to_annotations()
    item = ClusterReport.parse(raw)
    assert item is not None
    assert item.active_silence(NOW_NS + 1) is None
    before = item.active_silence(NOW_NS - 10**9)
    assert before is not None
    assert before.reason == "new memory"
