"""Configuration findings as the commands keep and show them: apart from the anomalies."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reveal_contract.facts import Facts
from reveal_contract.finding import Finding

if TYPE_CHECKING:
    from reveal_analyzer.configuration.watch import ConfigurationTracker


class Hints:
    """The configuration findings of the nodes looked at, open ones and mended ones."""

    def __init__(self) -> None:
        self._nodes: dict[str, ConfigurationTracker] = {}
        self._findings: dict[str, Finding] = {}

    @property
    def findings(self) -> list[Finding]:
        """The worst first, as far as severities differ."""
        return sorted(self._findings.values(), key=lambda finding: -finding.severity.rank)

    def take(self, facts: Facts, at_ns: int) -> None:
        """Hold the rules against a node's facts as they were found at this time."""
        from reveal_analyzer.configuration.watch import ConfigurationTracker  # noqa: PLC0415 - an extra

        node = self._nodes.setdefault(facts.node, ConfigurationTracker())
        for news in node.update(facts, at_ns):
            self._findings[news.finding.id] = news.finding
        for finding in node.findings:
            self._findings[finding.id] = finding


def hint_lines(hints: Sequence[Finding], columns: int) -> list[str]:
    """``Configuration: 2 hints`` and each with what mends it; nothing where there are none."""
    if not hints:
        return []
    lines = [f"Configuration: {len(hints)} hint{'s' if len(hints) > 1 else ''}"]
    several = len({hint.node_name for hint in hints}) > 1
    for hint in hints:
        where = f"{hint.node_name}: " if several else ""
        mended = "" if hint.resolved_ns is None else " (mended meanwhile)"
        lines += _wrapped(f"{hint.severity}: {where}{hint.claim}.{mended}", columns, "  ")
        if hint.hypothesis is not None and hint.resolved_ns is None:
            lines += _wrapped(f"to mend it: {hint.hypothesis.remediation}", columns, "    ")
    return lines


def _wrapped(text: str, columns: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text, columns, initial_indent=indent, subsequent_indent=indent + "  ",
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip
