"""HTML elements.  Every text and attribute of a page passes here, so that no name can be markup.

Names of pods, cgroups, processes and files are chosen by others: they may hold HTML, terminal
sequences, characters that turn the direction of writing, or thousands of characters.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TypeAlias

from reveal_contract.foreign_names import printable

MOST_CHARACTERS = 400  # of a text; the embedded JSON has all of it
_VOID = frozenset({"br", "col", "hr", "input", "link", "meta"})


class Markup(str):
    """Text that is HTML already; only this module makes it from other texts."""

    __slots__ = ()


Child: TypeAlias = "str | Markup | Iterable[Child] | None"
Attribute: TypeAlias = "str | float | bool | None"


def inert(text: str) -> str:
    """Return a text as it may be displayed: printable, on one line, of bounded length."""
    clean = printable(text)
    if len(clean) <= MOST_CHARACTERS:
        return clean
    return f"{clean[:MOST_CHARACTERS]}… ({len(clean)} characters)"


def element(tag: str, *children: Child, **attributes: Attribute) -> Markup:
    """Return an element; texts that are no ``Markup`` are escaped.

    Attributes are written with ``_`` for ``-`` and behind a name that Python reserves: ``class_``.
    ``None`` and ``False`` leave one out, ``True`` writes its name only.
    """
    words = [tag, *(_attribute(name, value) for name, value in attributes.items())]
    start = f"<{' '.join(filter(None, words))}>"
    if tag in _VOID:
        return Markup(start)
    return Markup(f"{start}{fragment(*children)}</{tag}>")


def fragment(*children: Child) -> Markup:
    """Return children one after the other."""
    return Markup("".join(map(_child, children)))


def section(identity: str, title: str, content: Child) -> Markup:
    """Return a part of a page below its heading."""
    heading = element("h2", title, id=f"{identity}-title")
    return element("section", heading, content, id=identity, aria_labelledby=f"{identity}-title")


def name(text: str) -> Markup:
    """Return a name that others chose; its direction of writing does not reach its surroundings."""
    return element("bdi", text)


def raw_text(tag: str, text: str, **attributes: Attribute) -> Markup:
    """Return ``script`` or ``style`` with a text of this project.

    Raises ``ValueError`` where the text would end the element, or a parser would change it.
    """
    if f"</{tag}" in text.lower() or "<!--" in text or "\r" in text:
        raise ValueError(f"text cannot be in a {tag} element")
    words = [tag, *(_attribute(key, value) for key, value in attributes.items())]
    return Markup(f"<{' '.join(filter(None, words))}>{text}</{tag}>")


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return html.escape(inert(child))
    return "".join(map(_child, child))


def _attribute(key: str, value: Attribute) -> str:
    name_ = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return name_
    text = value if isinstance(value, str) else f"{value:g}"
    return f'{name_}="{html.escape(_inert_value(text))}"'


def _inert_value(text: str) -> str:
    """Return an attribute's value: the paths of charts may be long, names may not."""
    return text if isinstance(text, Markup) else inert(text)
