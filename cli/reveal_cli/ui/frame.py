"""What all pages of the server have in common."""

from __future__ import annotations

from reveal_cli.page.markup import Child, element


def page(title: str, *content: Child) -> str:
    """Return the HTML of a page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("link", rel="stylesheet", href="/style.css"),
    )
    return f"<!doctype html>\n{element('html', head, element('body', content), lang='en')}\n"
