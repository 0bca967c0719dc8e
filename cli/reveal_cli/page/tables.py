"""Tables of a page: each has a caption, and headers that a screen reader connects with cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reveal_cli.page.markup import Child, Markup, element


def table(
    caption: Child, columns: Sequence[str], rows: Iterable[Sequence[Child]], **attributes: str
) -> Markup:
    """Return a table whose first cells are the headers of their rows."""
    head = element("tr", [element("th", column, scope="col") for column in columns])
    body = [element("tr", _cells(row)) for row in rows]
    content = element(
        "table",
        element("caption", caption),
        element("thead", head),
        element("tbody", body),
        **attributes,
    )
    # wide tables scroll by themselves; focus makes that possible with the keyboard
    return element("div", content, class_="scroll", tabindex="0", role="group", aria_label="Table")


def _cells(row: Sequence[Child]) -> list[Markup]:
    first, *others = row
    return [element("th", first, scope="row"), *(element("td", each) for each in others)]
