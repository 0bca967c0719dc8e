"""The whole page: its sections in their order, its style and script, and the policy for both."""

from __future__ import annotations

import hashlib
import html
from base64 import b64encode
from collections.abc import Iterator
from importlib.resources import files

from reveal_cli.page.advice import advice
from reveal_cli.page.configuration import configuration
from reveal_cli.page.embedded import brush_json, findings_json
from reveal_cli.page.evidence import evidence
from reveal_cli.page.markup import Markup, element, fragment, name, raw_text, section
from reveal_cli.page.peers import peers
from reveal_cli.page.subjects import subjects
from reveal_cli.page.timeline import timeline
from reveal_cli.page.unread import unread
from reveal_cli.page.verdict import findings_list, verdict
from reveal_cli.page_data.model import PageData
from reveal_contract import VERSION


def document(data: PageData) -> str:
    """Return the HTML of a page."""
    style, script = _asset("style.css"), _asset("script.js")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Markup(_policy(style, script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"Reveal report: {data.title}"),
        raw_text("style", style),
    )
    sections = [*_sections(data)]
    body = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="skip"),
        verdict(data),
        _navigation(sections),
        element("main", findings_list(data), [section(*each) for each in sections], id="content"),
        element("footer", element("p", f"Written by reveal {VERSION}.")),
        brush_json(data),
        findings_json(data),
        raw_text("script", script),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _sections(data: PageData) -> Iterator[tuple[str, str, Markup]]:
    yield "advice", "What to do", advice(data)
    yield "timeline", "Timeline", timeline(data)
    yield "evidence", "Evidence", evidence(data)
    yield "subjects", "Subjects", subjects(data)
    strips = peers(data)
    if strips is not None:
        yield "peers", "Peers", strips
    yield "configuration", "Configuration", configuration(data)
    yield "unread", "What could not be read", unread(data)
    yield "json", "Data", _json_note(data)


def _navigation(sections: list[tuple[str, str, Markup]]) -> Markup:
    links = [
        element("li", element("a", title, href=f"#{identity}")) for identity, title, _ in sections
    ]
    return element("nav", element("ul", links), aria_label="Sections")


def _json_note(data: PageData) -> Markup:
    """Return where the findings are for programs."""
    count = len(data.findings) + len(data.hints)
    identity = data.findings[0].finding.id if data.findings else ""
    worst = fragment(" The worst has the id ", name(identity), ".") if identity else None
    return element(
        "p", f"This file holds its {count} findings as JSON in the element ",
        element("code", "script#findings-json"),
        ", with the fields of findings.jsonl.", worst,
    )  # fmt: skip


def _policy(style: str, script: str) -> str:
    """Return the policy: nothing is loaded, and only this style and this script run."""
    rules = "; ".join((
        "default-src 'none'",
        f"style-src '{_digest(style)}'",
        f"script-src '{_digest(script)}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ))  # fmt: skip
    content = html.escape(rules, quote=False)
    return f'<meta http-equiv="Content-Security-Policy" content="{content}">'


def _digest(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _asset(file: str) -> str:
    return files("reveal_cli.page").joinpath(file).read_text("utf-8")
