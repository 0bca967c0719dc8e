"""Subjects of each finding, with what they used and lost before it and in it."""

from __future__ import annotations

from reveal_cli.findings_table import claim_text
from reveal_cli.page.markup import Child, Markup, element, fragment, name
from reveal_cli.page.tables import table
from reveal_cli.page_data.model import FindingPart, PageData, SubjectRow

_COLUMNS = (
    "Subject", "Part", "CPUs before", "CPUs in it", "Lost before", "Lost in it", "Lost most to"
)  # fmt: skip


def subjects(data: PageData) -> Markup:
    """Return a table for each finding that has subjects."""
    tables = [_table(part) for part in data.findings if part.subjects]
    if not tables:
        return element("p", "No finding names a subject.")
    help_ = element(
        "p", "Before is the minute before the finding. Lost is the share of the time that a subject"
        " wanted and did not get; it needs the lost-time ledger.",
    )  # fmt: skip
    return fragment(help_, tables)


def _table(part: FindingPart) -> Markup:
    caption = name(claim_text(part.finding))
    return table(caption, _COLUMNS, [_row(row) for row in part.subjects])


def _row(row: SubjectRow) -> list[Child]:
    return [
        name(row.name), row.role,
        _cpus(row.cpus_before), _cpus(row.cpus_during),
        _share(row.lost_before), _share(row.lost_during), name(row.lost_to),
    ]  # fmt: skip


def _cpus(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"
