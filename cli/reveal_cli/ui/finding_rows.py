"""Findings as a table of links to their pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlencode

from reveal_cli.findings_table import claim_text, state_text
from reveal_cli.options import format_duration
from reveal_cli.page.markup import Child, Markup, element, fragment, name
from reveal_cli.page.tables import table
from reveal_cli.page.times import day_and_clock
from reveal_cli.page.verdict import cost_text
from reveal_cli.ui.source import ListedFinding
from reveal_contract.finding import State

MOST_ROWS = 500
_COLUMNS = ("Claim", "Node", "Job", "Severity", "State", "Begin", "Lasted", "Cost", "From")


def finding_link(key: str) -> str:
    """Return the address of the page of a finding."""
    return f"/finding?{urlencode({'key': key})}"


def worst_first(listed: ListedFinding) -> tuple[bool, int, float, float, int, str]:
    """Return the sorting key of the order of a list."""
    finding = listed.finding
    is_over = finding.state is not State.OPEN
    return is_over, *finding.worst_first, -finding.first_observed_ns, listed.key


def findings_table(chosen: Sequence[ListedFinding]) -> Markup:
    """Return the table of some findings, in their order."""
    if not chosen:
        return element("p", "No finding is selected.")
    more = len(chosen) - MOST_ROWS
    left_out = element("p", f"{more} more are not listed: select fewer.") if more > 0 else None
    rows = [[*_cells(each)] for each in chosen[:MOST_ROWS]]
    return fragment(table("Findings, open ones first, the worst first", _COLUMNS, rows), left_out)


def _cells(listed: ListedFinding) -> Iterator[Child]:
    finding = listed.finding
    severity = finding.severity.value
    seconds = max(1.0, (finding.last_observed_ns - finding.first_observed_ns) / 1e9)
    yield element("a", name(claim_text(finding)), href=finding_link(listed.key))
    yield name(finding.node_name)
    yield name(listed.job or "-")
    yield element("span", severity, class_=f"badge {severity.lower()}")
    yield state_text(finding)
    yield day_and_clock(finding.first_observed_ns)
    yield format_duration(seconds)
    yield name(cost_text(finding) or "not measured")
    yield name(listed.origin)
