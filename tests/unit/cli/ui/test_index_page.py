"""The page of all findings."""

from __future__ import annotations

from reveal_cli.ui import finding_rows as module
from reveal_cli.ui.finding_rows import finding_link
from reveal_cli.ui.index_page import index_page
from reveal_cli.ui.selection import Selection
from reveal_cli.ui.source import ListedFinding, Listing
from reveal_contract.costs import Cost
from reveal_contract.finding import JobLoss, Severity, State
from support.finding_factory import finding
from support.html_pages import ParsedPage

ALL = Selection()
HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e"
OPEN = ListedFinding(
    "r1",
    finding(
        "a", node_name="gpu-1", severity=Severity.HIGH, lost_time=(JobLoss("ml/t-0", 26.0, 9),)
    ),
    "ml/t",
    "r1",
)
OVER = ListedFinding(
    "r2 &",
    finding("b", node_name="gpu-2", severity=Severity.CRITICAL, state=State.RESOLVED),
    "",
    "r2",
)


def parsed(*findings: ListedFinding, selection: Selection = ALL, **more: object) -> ParsedPage:
    listing = Listing(findings, ("gpu-1", "gpu-3"), **more)  # type: ignore[arg-type]
    return ParsedPage(index_page("a cluster", listing, selection, watched=False))


def test_open_findings_are_before_worse_findings_that_are_over() -> None:
    page = parsed(OVER, OPEN)
    assert "1 open finding, 1 resolved" in page.visible
    links = [str(each.attributes.get("href", "")) for each in page.all("a")]
    found = [link for link in links if link.startswith("/finding")]
    assert found == [finding_link("r1"), finding_link("r2 &")]
    assert "its work takes 35 % longer" in page.visible


def test_of_equal_severity_the_finding_that_cost_most_gpu_hours_is_first() -> None:
    costly = finding("c", severity=Severity.HIGH, cost=Cost(8, 0.9, 1.8, 1.2, 2.4))
    page = parsed(OPEN, ListedFinding("r3", costly, "ml/t", "r3"))
    links = [str(each.attributes.get("href", "")) for each in page.all("a")]
    found = [link for link in links if link.startswith("/finding")]
    assert found == [finding_link("r3"), finding_link("r1")]
    assert "1.8 GPU-hours so far (1.2 to 2.4), 0.9 of 8 GPUs" in page.visible


def test_each_node_has_a_tile_with_its_worst_open_finding() -> None:
    tiles = {
        each.attributes["href"]: each.attributes["class"]
        for each in parsed(OVER, OPEN).all("a")
        if "tile" in each.attributes.get("class", "")
    }
    assert tiles == {
        "/?node=gpu-1": "tile high",
        "/?node=gpu-2": "tile calm",
        "/?node=gpu-3": "tile calm",
    }


def test_the_form_keeps_what_was_chosen() -> None:
    page = parsed(OVER, OPEN, selection=Selection(severity="High", text="a<b"))
    chosen = [each.text for each in page.all("option") if "selected" in each.attributes]
    assert "High" in chosen
    [search] = page.all("input", type="search")
    assert search.attributes["value"] == "a<b"


def test_names_of_others_are_inert() -> None:
    hostile = ListedFinding(
        HOSTILE, finding("c", claim=HOSTILE, node_name=HOSTILE), HOSTILE, HOSTILE
    )
    text = index_page(
        HOSTILE, Listing([hostile], [HOSTILE], [HOSTILE]), Selection(job=HOSTILE), watched=True
    )
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_long_list_ends_with_a_sentence() -> None:
    many = [ListedFinding(f"{n}", finding(f"{n}"), "", "") for n in range(module.MOST_ROWS + 3)]
    assert "3 more are not listed" in parsed(*many).visible


def test_without_findings_there_are_sentences() -> None:
    page = ParsedPage(index_page("empty", Listing([], []), Selection(), watched=False))
    for sentence in ("No node is known.", "No finding is selected.", "is about a job."):
        assert sentence in page.visible
