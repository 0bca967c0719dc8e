"""The page of all findings: nodes by their health, a form, the findings, and the jobs."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from reveal_cli.page.markup import Child, Markup, element, name, section
from reveal_cli.page.tables import table
from reveal_cli.page.verdict import cost_text
from reveal_cli.ui.finding_rows import findings_table, worst_first
from reveal_cli.ui.frame import page
from reveal_cli.ui.node_page import node_link
from reveal_cli.ui.selection import Selection
from reveal_cli.ui.source import ListedFinding, Listing
from reveal_contract.finding import Severity, State
from reveal_contract.metric import Subsystem


def index_page(title: str, listing: Listing, selection: Selection, *, watched: bool) -> str:
    """Return the HTML; with ``watched`` tiles of nodes lead to the pages of nodes."""
    chosen = sorted(selection.apply(listing.findings), key=worst_first)
    return page(
        f"Reveal: {title}",
        element("a", "Skip to the findings", href="#findings", class_="skip"),
        element("header", element("h1", name(_headline(listing)), class_="verdict"),
                element("p", name(title), class_="extent")),
        element(
            "main",
            [element("p", name(line), role="alert") for line in listing.warnings],
            section("nodes", "Nodes", _nodes(listing, watched=watched)),
            section("findings", "Findings", [_form(listing, selection), findings_table(chosen)]),
            section("jobs", "Jobs", _jobs(chosen)),
        ),
    )  # fmt: skip


def _headline(listing: Listing) -> str:
    count = sum(each.finding.state is State.OPEN for each in listing.findings)
    resolved = len(listing.findings) - count
    return f"{count} open finding{'' if count == 1 else 's'}, {resolved} resolved"


def _nodes(listing: Listing, *, watched: bool) -> Markup:
    """Return a tile for each node, with its worst open finding."""
    names = dict.fromkeys([*listing.nodes, *(each.finding.node_name for each in listing.findings)])
    if not names:
        return element("p", "No node is known.")
    tiles = [
        element("li", _tile(node, listing.findings, watched=watched)) for node in sorted(names)
    ]
    return element("ul", tiles, class_="tiles")


def _tile(node: str, findings: Sequence[ListedFinding], *, watched: bool) -> Markup:
    own = [
        each.finding
        for each in findings
        if each.finding.node_name == node and each.finding.state is State.OPEN
    ]
    worst = max((finding.severity for finding in own), key=lambda each: each.rank, default=None)
    state = f"{worst.value}, {len(own)} open" if worst else "nothing open"
    address = node_link(node) if watched else f"/?{urlencode({'node': node})}"
    return element(
        "a", name(node), " ", element("small", state), href=address,
        class_=f"tile {worst.value.lower() if worst else 'calm'}",
    )  # fmt: skip


def _form(listing: Listing, selection: Selection) -> Markup:
    jobs = sorted({each.job for each in listing.findings if each.job})
    nodes = sorted({*listing.nodes, *(each.finding.node_name for each in listing.findings)})
    fields = [
        _choice("At least", "severity", [each.value for each in Severity], selection.severity),
        _choice("State", "state", [each.value for each in State], selection.state),
        _choice("Subsystem", "subsystem", [each.value for each in Subsystem], selection.subsystem),
        _choice("Node", "node", nodes, selection.node),
        _choice("Job", "job", jobs, selection.job),
        element("label", "Text ",
                element("input", type="search", name="text", value=selection.text)),
    ]  # fmt: skip
    return element(
        "form",
        element("fieldset", element("legend", "Which findings"), fields,
                element("button", "Show", type="submit"), element("a", "all", href="/")),
        method="get", action="/",
    )  # fmt: skip


def _choice(label: str, field: str, values: Sequence[str], chosen: str) -> Markup:
    options = [
        element("option", value or "any", value=value, selected=value == chosen)
        for value in ["", *values]
    ]
    return element("label", f"{label} ", element("select", options, name=field))


def _jobs(chosen: Sequence[ListedFinding]) -> Markup:
    jobs = dict.fromkeys(each.job for each in chosen if each.job)
    if not jobs:
        return element("p", "No selected finding is about a job.")
    rows = [_job_row(job, [each for each in chosen if each.job == job]) for job in jobs]
    return table(
        "Jobs of the selected findings", ("Job", "Open", "Findings", "Worst", "Cost"), rows
    )


def _job_row(job: str, own: Sequence[ListedFinding]) -> list[Child]:
    findings = [each.finding for each in own]
    worst = max(findings, key=lambda each: (each.severity.rank, each.lost_gpu_hours))
    severity = worst.severity.value
    return [
        element("a", name(job), href=f"/?{urlencode({'job': job})}"),
        str(sum(each.finding.state is State.OPEN for each in own)),
        str(len(own)),
        element("span", severity, class_=f"badge {severity.lower()}"),
        name(cost_text(worst) or "not measured"),
    ]
