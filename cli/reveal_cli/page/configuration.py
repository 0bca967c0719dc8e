"""The configuration of the nodes: hints with their fixes, and the facts."""

from __future__ import annotations

from collections.abc import Sequence

from reveal_cli.facts_text import fact_topics
from reveal_cli.page.markup import Markup, element, fragment, name
from reveal_cli.page.tables import table
from reveal_cli.page_data.model import PageData
from reveal_contract.facts import Facts
from reveal_contract.finding import Finding


def configuration(data: PageData) -> Markup:
    """Return hints and facts."""
    if not data.hints and not data.facts:
        return element("p", "The recording has no facts of its nodes.")
    facts = [_facts(node, facts) for node, facts in data.facts.items()]
    return fragment(_hints(data.hints), facts)


def _hints(hints: Sequence[Finding]) -> Markup:
    if not hints:
        return element("p", "No setting of these nodes is known to cost performance.")
    rows = [
        (
            name(hint.claim),
            hint.severity.value,
            "fixed meanwhile" if hint.resolved_ns is not None else "open",
            name(hint.hypothesis.remediation if hint.hypothesis else ""),
        )
        for hint in hints
    ]
    return table("Settings that cost performance", ["Claim", "Severity", "State", "Fix"], rows)


def _facts(node: str, facts: Facts) -> Markup:
    rows = [(label, name(text)) for label, text in fact_topics(facts)]
    return table(fragment("Facts of ", name(node)), ["Topic", "Facts"], rows)
