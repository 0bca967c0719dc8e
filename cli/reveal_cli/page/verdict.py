"""The verdict with its cost in one line, and the list of findings."""

from __future__ import annotations

from collections.abc import Sequence

from reveal_cli.findings_table import claim_text, gpu_hours_text, state_text
from reveal_cli.lost_time_text import lost_time_lines
from reveal_cli.options import format_duration
from reveal_cli.page.markup import Child, Markup, element, fragment, name
from reveal_cli.page.tables import table
from reveal_cli.page.times import clock, day_and_clock
from reveal_cli.page_data.model import FindingPart, PageData
from reveal_cli.summary_text import verdict_text
from reveal_contract.finding import Finding


def anchor(index: int) -> str:
    """Return the id of the evidence of a finding, by its position among the findings."""
    return f"finding-{index + 1}"


def verdict(data: PageData) -> Markup:
    """Return the top of the page."""
    findings = [part.finding for part in data.findings]
    extent = element("p", verdict_text(findings, data.coverage), class_="extent")
    when = element(
        "p", _nodes(data.nodes), " from ", day_and_clock(data.start_ns), " for ",
        format_duration(data.seconds), ". All times are UTC.",
    )  # fmt: skip
    lines = [element("li", name(line)) for line in lost_time_lines(data.coverage.lost_time)]
    lost = element("ul", *lines, class_="extent") if lines else ""
    return element("header", _headline(data), extent, lost, when)


def findings_list(data: PageData) -> Markup | None:
    """Return the table of all findings, the worst first; None without findings."""
    if not data.findings:
        return None
    several = len(data.nodes) > 1
    columns = ["Claim", *(["Node"] if several else []), "Begin", "Lasted", "Subsystem", "Severity",
               "State", "Cost"]  # fmt: skip
    rows = [_row(index, part, data) for index, part in enumerate(data.findings)]
    return table("Findings, the worst first", columns, rows)


def cost_text(finding: Finding) -> str:
    """Return what a finding costs the job that suffers most, and how many GPU-hours that is.

    Return "" where that was not measured.
    """
    return "; ".join(filter(None, (_slowdown_text(finding), gpu_hours_text(finding))))


def _slowdown_text(finding: Finding) -> str:
    duration = _seconds(finding)
    if finding.impact is not None:
        impact = finding.impact
        slower = (
            f"steps of {impact.subject} take {impact.slowdown_percent:.1f} % longer"
            f" ({impact.low_percent:.1f} to {impact.high_percent:.1f})"
        )
        return f"{slower}{_lost_seconds(impact.slowdown_percent, duration)}"
    if finding.lost_time:
        loss = finding.lost_time[0]
        return (
            f"{loss.subject} lost {loss.lost_percent:.0f} % of its time, its work takes"
            f" {loss.slowdown_percent:.0f} % longer{_lost_seconds(loss.slowdown_percent, duration)}"
        )
    return ""


def _headline(data: PageData) -> Markup:
    if not data.findings:
        return element("h1", "No finding", class_="verdict calm")
    worst = data.findings[0].finding
    cost = cost_text(worst) or "what it costs was not measured"
    others = len(data.findings) - 1
    more = f" And {others} more finding{'s' if others > 1 else ''}." if others else ""
    severity = element("span", worst.severity.value, class_=f"badge {worst.severity.value.lower()}")
    return element("h1", severity, " ", name(claim_text(worst)), ": ", name(cost), ".", more,
                   class_="verdict")  # fmt: skip


def _lost_seconds(slowdown_percent: float, duration: float) -> str:
    """Return the time that was lost in a finding: ``, about 8s of 11s``."""
    if slowdown_percent <= 0:
        return ""
    lost = duration * slowdown_percent / (100 + slowdown_percent)
    return f", about {format_duration(lost)} of {format_duration(duration)}" if lost >= 1 else ""


def _seconds(finding: Finding) -> float:
    return max(1.0, (finding.last_observed_ns - finding.first_observed_ns) / 1e9)


def _row(index: int, part: FindingPart, data: PageData) -> list[Child]:
    finding = part.finding
    claim = name(claim_text(finding))
    link = element("a", claim, href=f"#{anchor(index)}") if part.panels else claim
    severity = finding.severity.value
    return [
        link,
        *([name(finding.node_name)] if len(data.nodes) > 1 else []),
        clock(finding.first_observed_ns, data.start_ns),
        format_duration(_seconds(finding)),
        finding.subsystem.value,
        element("span", severity, class_=f"badge {severity.lower()}"),
        state_text(finding),
        name(cost_text(finding) or "not measured"),
    ]


def _nodes(nodes: Sequence[str]) -> Markup:
    label = "Node " if len(nodes) == 1 else f"{len(nodes)} nodes: "
    parts = [fragment(", " if index else "", name(node)) for index, node in enumerate(nodes[:8])]
    return fragment(label, parts, " and more" if len(nodes) > 8 else "")
