"""The page of all findings: nodes by their health, a form, the findings, and the jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlencode

from reveal_cli.findings_table import claim_text, state_text
from reveal_cli.options import format_duration
from reveal_cli.page.markup import Child, Markup, element, fragment, name, section
from reveal_cli.page.tables import table
from reveal_cli.page.times import day_and_clock
from reveal_cli.page.verdict import cost_text
from reveal_cli.ui.selection import Selection
from reveal_cli.ui.source import ListedFinding, Listing
from reveal_contract.finding import Severity, State
from reveal_contract.metric import Subsystem

MOST_ROWS = 500
_COLUMNS = ("Claim", "Node", "Job", "Severity", "State", "Begin", "Lasted", "Cost", "From")


def index_page(title: str, listing: Listing, selection: Selection) -> str:
    """Return the HTML."""
    chosen = sorted(selection.apply(listing.findings), key=_worst_first)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"Reveal: {title}"),
        element("link", rel="stylesheet", href="/style.css"),
    )
    body = element(
        "body",
        element("a", "Skip to the findings", href="#findings", class_="skip"),
        element("header", element("h1", name(_headline(listing)), class_="verdict"),
                element("p", name(title), class_="extent")),
        element(
            "main",
            [element("p", name(line), role="alert") for line in listing.warnings],
            section("nodes", "Nodes", _nodes(listing)),
            section("findings", "Findings", [_form(listing, selection), _findings(chosen)]),
            section("jobs", "Jobs", _jobs(chosen)),
        ),
    )  # fmt: skip
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def finding_link(key: str) -> str:
    """Return the address of the page of a finding."""
    return f"/finding?{urlencode({'key': key})}"


def _worst_first(listed: ListedFinding) -> tuple[bool, int, int, str]:
    finding = listed.finding
    is_over = finding.state is not State.OPEN
    return is_over, -finding.severity.rank, -finding.first_observed_ns, listed.key


def _headline(listing: Listing) -> str:
    count = sum(each.finding.state is State.OPEN for each in listing.findings)
    resolved = len(listing.findings) - count
    return f"{count} open finding{'' if count == 1 else 's'}, {resolved} resolved"


def _nodes(listing: Listing) -> Markup:
    """Return a tile for each node, with its worst open finding."""
    names = dict.fromkeys([*listing.nodes, *(each.finding.node_name for each in listing.findings)])
    if not names:
        return element("p", "No node is known.")
    tiles = [element("li", _tile(node, listing.findings)) for node in sorted(names)]
    return element("ul", tiles, class_="tiles")


def _tile(node: str, findings: Sequence[ListedFinding]) -> Markup:
    own = [
        each.finding
        for each in findings
        if each.finding.node_name == node and each.finding.state is State.OPEN
    ]
    worst = max((finding.severity for finding in own), key=lambda each: each.rank, default=None)
    state = f"{worst.value}, {len(own)} open" if worst else "nothing open"
    return element(
        "a", name(node), " ", element("small", state), href=f"/?{urlencode({'node': node})}",
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


def _findings(chosen: Sequence[ListedFinding]) -> Markup:
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


def _jobs(chosen: Sequence[ListedFinding]) -> Markup:
    jobs = dict.fromkeys(each.job for each in chosen if each.job)
    if not jobs:
        return element("p", "No selected finding is about a job.")
    rows = [_job_row(job, [each for each in chosen if each.job == job]) for job in jobs]
    return table(
        "Jobs of the selected findings", ("Job", "Open", "Findings", "Worst", "Cost"), rows
    )


def _job_row(job: str, own: Sequence[ListedFinding]) -> list[Child]:
    worst = max((each.finding for each in own), key=lambda finding: finding.severity.rank)
    severity = worst.severity.value
    return [
        element("a", name(job), href=f"/?{urlencode({'job': job})}"),
        str(sum(each.finding.state is State.OPEN for each in own)),
        str(len(own)),
        element("span", severity, class_=f"badge {severity.lower()}"),
        name(cost_text(worst) or "not measured"),
    ]
