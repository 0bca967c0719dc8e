"""Configuration findings as the commands keep and print them, apart from the anomalies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from reveal_contract.facts import Facts
from reveal_contract.finding import Finding

if TYPE_CHECKING:
    from rich.console import RenderableType

    from reveal_analyzer.configuration.watch import ConfigurationTracker


class ConfigurationHints:
    """The configuration findings of the nodes, both open and resolved."""

    def __init__(self) -> None:
        self._nodes: dict[str, ConfigurationTracker] = {}
        self._findings: dict[str, Finding] = {}

    @property
    def findings(self) -> list[Finding]:
        """Return the findings, the most severe first."""
        return sorted(self._findings.values(), key=lambda finding: -finding.severity.rank)

    def update(self, facts: Facts, time_ns: int) -> None:
        """Compare the rules with a node's facts, as they were read at this time."""
        from reveal_analyzer.configuration.watch import ConfigurationTracker  # noqa: PLC0415 - an extra

        node = self._nodes.setdefault(facts.node, ConfigurationTracker())
        for update in node.update(facts, time_ns):
            self._findings[update.finding.id] = update.finding
        for finding in node.findings:
            self._findings[finding.id] = finding


def hint_blocks(hints: Sequence[Finding]) -> list[RenderableType]:
    """Return ``Configuration: 2 hints``, and each hint with its fix; nothing without hints."""
    from reveal_cli.terminal import grid  # noqa: PLC0415 - rich is an extra

    if not hints:
        return []
    title = f"Configuration: {len(hints)} hint{'s' if len(hints) > 1 else ''}"
    return [title, grid(_rows(hints), indent=2)]


def _rows(hints: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    several_nodes = len({hint.node_name for hint in hints}) > 1
    for hint in hints:
        node = f"{hint.node_name}: " if several_nodes else ""
        fixed = "" if hint.resolved_ns is None else " (fixed meanwhile)"
        yield hint.severity.value, f"{node}{hint.claim}.{fixed}"
        if hint.hypothesis is not None and hint.resolved_ns is None:
            yield "", f"fix: {hint.hypothesis.remediation}"
