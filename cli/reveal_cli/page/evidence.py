"""The evidence of each finding: one small chart for each metric, on the same time."""

from __future__ import annotations

from collections.abc import Iterator

from reveal_cli.findings_table import claim_text, evidence_text
from reveal_cli.page import charts
from reveal_cli.page.markup import Markup, element, fragment, name
from reveal_cli.page.tables import table
from reveal_cli.page.times import clock
from reveal_cli.page.verdict import anchor
from reveal_cli.page_data.model import FindingPart, PageData, Panel


def evidence(data: PageData) -> Markup:
    """Return the charts of the findings that have some."""
    parts = [
        _finding(index, part, data.start_ns)
        for index, part in enumerate(data.findings)
        if part.panels or part.ranking
    ]
    if not parts:
        return element("p", "No finding has samples in this recording.")
    help_ = element(
        "p", "Shaded across: the range of nine of ten samples outside of findings. Shaded from top"
        " to bottom: the finding. With scripts, the pointer or the arrow keys move a cursor through"
        " all charts of a finding; dragging or the keys + and - zoom, 0 shows all.",
    )  # fmt: skip
    return fragment(help_, parts)


def _finding(index: int, part: FindingPart, start_ns: int) -> Markup:
    identity = anchor(index)
    return element(
        "article",
        element("h3", name(claim_text(part.finding)), id=f"{identity}-title"),
        element("ul", [element("li", name(evidence_text(each))) for each in part.finding.evidence],
                class_="facts"),
        element("ul", [element("li", name(note)) for note in part.finding.notes], class_="notes")
        if part.finding.notes
        else None,
        _multiples(part, start_ns) if part.panels else None,
        _ranking(part),
        id=identity,
        aria_labelledby=f"{identity}-title",
    )  # fmt: skip


def _multiples(part: FindingPart, start_ns: int) -> Markup:
    first, last = part.window
    axis = element(
        "p",
        element("span", clock(start_ns + round(first * 1e9), start_ns)),
        element("span", "finding from ", clock(part.finding.first_observed_ns, start_ns)),
        element("span", clock(start_ns + round(last * 1e9), start_ns)),
        class_="axis",
    )
    return element(
        "div",
        element("div", [_panel(each, part) for each in part.panels], class_="multiples"),
        axis,
        class_="linked",
        tabindex="0",
        role="group",
        aria_label="Charts of this finding: arrow keys move the cursor, + and - zoom, 0 shows all",
        data_width=f"{charts.Frame(first, last, 0.0, 1.0).width}",
    )


def _panel(panel: Panel, part: FindingPart) -> Markup:
    frame = charts.frame_of(panel.lines, part.window, panel.band or ())
    picture = charts.svg(
        frame,
        _description(panel),
        charts.span_rect(frame, part.span, "during"),
        charts.band_rect(frame, panel.band) if panel.band else None,
        charts.line(frame, panel.lines),
    )
    known_as = fragment(" ", element("small", panel.known_as)) if panel.known_as else None
    return charts.chart(fragment(name(panel.title), known_as), picture, frame, panel.unit)


def _description(panel: Panel) -> str:
    values = [value for line in panel.lines for _, value in line]
    low, high = panel.unit.text(min(values)), panel.unit.text(max(values))
    band = ""
    if panel.band:
        band = f", otherwise {panel.unit.text(panel.band[0])} to {panel.unit.text(panel.band[1])}"
    return f"{panel.title}: {low} to {high}{band}; a sample every {panel.period_s:g} s"


def _ranking(part: FindingPart) -> Markup | None:
    if not part.ranking:
        return None
    rows = _ranking_rows(part)
    columns = ["Metric", "Subsystem", "Spreads", "Value", "Baseline"]
    return element(
        "details",
        element("summary", "Metrics that left their baseline most in this time"),
        table("Metrics by how far they left their baseline in this finding", columns, rows),
    )


def _ranking_rows(part: FindingPart) -> Iterator[list[Markup | str]]:
    for row in part.ranking:
        yield [name(row.label), row.subsystem, f"{row.score:.1f}", row.value, row.baseline]
