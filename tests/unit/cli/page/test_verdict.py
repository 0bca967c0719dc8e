"""The verdict: one line with the cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reveal_analyzer.ledger.lost_time import Loss, LostTime
from reveal_cli.page.verdict import cost_text, findings_list, verdict
from reveal_contract import ledger
from reveal_contract.costs import Cost
from reveal_contract.finding import Finding, Impact, JobLoss
from support.finding_factory import ONSET_NS, SECOND, scan_finding
from support.html_pages import ParsedPage, page_of

FINDING = replace(scan_finding(), last_observed_ns=ONSET_NS + 60 * SECOND)
IMPACT = Impact("job", 25.0, 20.0, 30.0, 100.0, 80.0, ONSET_NS, 30, "c", 90)
COST = Cost(8, 1.6, 0.0266, 0.02, 0.03)


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (FINDING, ""),
        (
            replace(FINDING, lost_time=(JobLoss("job", 50.0, 60),)),
            "job lost 50 % of its time, its work takes 100 % longer, about 30s of 1m00s",
        ),
        (
            replace(FINDING, impact=IMPACT),
            "steps of job take 25.0 % longer (20.0 to 30.0), about 12s of 1m00s",
        ),
        (
            replace(FINDING, impact=replace(IMPACT, slowdown_percent=-3.0)),
            "steps of job take -3.0 % longer (20.0 to 30.0)",
        ),
        (
            replace(FINDING, impact=IMPACT, cost=COST),
            "steps of job take 25.0 % longer (20.0 to 30.0), about 12s of 1m00s;"
            " 0.027 GPU-hours so far (0.02 to 0.03), 1.6 of 8 GPUs",
        ),
    ],
)
def test_the_cost_is_what_the_job_lost(finding: Finding, expected: str) -> None:
    assert cost_text(finding) == expected


def test_the_verdict_has_claim_and_cost_in_its_first_line() -> None:
    page = ParsedPage(verdict(page_of([FINDING, FINDING])))
    [heading] = page.all("h1")
    line = heading.text + "".join(each.text for each in page.all("bdi"))
    assert "waiting for CPU rose" in line
    assert "what it costs was not measured" in line
    assert "And 1 more finding." in line


def test_each_finding_leads_to_its_evidence() -> None:
    listed = findings_list(page_of([FINDING, FINDING]))
    assert listed is not None
    links = ParsedPage(listed).all("a")
    assert [each.attributes["href"] for each in links] == ["#finding-1", "#finding-2"]


def test_lost_time_is_listed_where_nothing_was_found() -> None:
    calm = replace(page_of(), findings=[])
    lost = {"n": [LostTime("job", 1.0, 0.4, (Loss(ledger.THROTTLED, 0.4),))]}
    coverage = replace(calm.coverage, lost_time=lost)
    page = ParsedPage(verdict(replace(calm, coverage=coverage)))
    assert "No finding, but time was lost, see below" in page.all("p")[0].text
    [line] = page.all("li")
    assert "job lost 40 % of the time that it wanted" in page.all("bdi")[0].text + line.text
    assert not ParsedPage(verdict(calm)).all("li")
