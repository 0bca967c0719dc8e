"""Where the findings of ``reveal ui`` come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reveal_cli.progress import ProgressView
from reveal_cli.ranking import SpanRanking
from reveal_cli.time_spans import Span
from reveal_contract.finding import Finding


@dataclass(frozen=True)
class ListedFinding:
    """A finding in a list: ``key`` names it for ``Source.page``, ``origin`` for people.

    ``job`` is the one that it is about, "" without one.
    """

    key: str
    finding: Finding
    job: str
    origin: str


@dataclass(frozen=True)
class Listing:
    """All findings of a source, the nodes that it knows, and sentences on what is missing."""

    findings: Sequence[ListedFinding]
    nodes: Sequence[str]
    warnings: Sequence[str] = ()


class NodeSource(Protocol):
    """Nodes as they are now, and as they were; each method raises ``CliError``."""

    def view(self, node: str) -> ProgressView:
        """Return the state of a node now."""

    def ranking(self, node: str, asked: Span) -> SpanRanking:
        """Return all metrics of a node in a span, the most abnormal first."""


class Source(Protocol):
    """Findings and their pages; each method raises ``CliError``."""

    title: str

    @property
    def nodes(self) -> NodeSource | None:
        """The nodes, None where they cannot be watched."""

    def listing(self) -> Listing:
        """Return the findings as they are now."""

    def page(self, key: str) -> str:
        """Return the page (HTML) of a finding, with its evidence."""
