"""What could not be read, and what limits the verdict."""

from __future__ import annotations

from reveal_cli.page.markup import Markup, element, fragment, name
from reveal_cli.page.tables import table
from reveal_cli.page_data.model import PageData

_COLUMNS = ("source", "reason", "remedy")


def unread(data: PageData) -> Markup:
    """Return sentences, and the sources that the host does not have."""
    if not data.limits and not data.missing:
        return element("p", "Nothing is known to be missing.")
    sentences = element("ul", [element("li", name(line)) for line in data.limits])
    rows = [[name(str(row.get(key, ""))) for key in _COLUMNS] for row in data.missing]
    sources = table("Sources that could not be read", [key.capitalize() for key in _COLUMNS], rows)
    return fragment(sentences if data.limits else None, sources if rows else None)
