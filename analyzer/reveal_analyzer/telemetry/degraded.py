"""What collectors cannot measure, from their reports (``names.STATUS``): pure.

Hardware that a host does not have (a GPU, InfiniBand) is no degradation: only a source counts that
was refused, or that could be read and now fails or does not answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from reveal_contract import foreign_json
from reveal_contract.kube.names import clipped

REDUCED = "CollectorReduced"  # it runs with less: over its CPU budget, or a sink fails
_MESSAGE_BYTES = 512
_MOST_REPORT = 1 << 20  # bytes of what a collector publishes
# words of refusals in the reasons of sources; a source that does not exist has others
_REFUSED = re.compile(
    r"may not be|refuse|denied|not permitted|needs CAP_|seccomp|cannot be opened"
    r"|different versions|too few file descriptors|security module",
    re.IGNORECASE,
)
_NOT_WORD = re.compile(r"[^A-Za-z0-9]+")


class Degradation(NamedTuple):
    """One reason, the number of nodes that it holds on, and the message of one of them."""

    reason: str
    nodes: int
    message: str


def degradations(node: str, data: bytes) -> list[Degradation]:
    """Return the degradations of one node; none where its report cannot be read."""
    try:
        report: Any = foreign_json.loads(data, _MOST_REPORT)
    except ValueError:
        return []
    if not isinstance(report, dict):
        return []
    found: dict[str, str] = {}
    for row in _rows(report.get("missing")):
        source, why = str(row.get("source", "")), str(row.get("reason", ""))
        if source and _REFUSED.search(why):
            found.setdefault(_reason(source), f"{node}: {source}: {why}; {row.get('remedy', '')}")
    failing = set()
    for row in _rows(report.get("failing")):
        source, why = str(row.get("source", "")), str(row.get("reason", ""))
        if source:
            failing.add(f"{source}: {why}")
            found.setdefault(_reason(source), f"{node}: {source}: {why}")
    phrases = report.get("degraded")
    others = list(map(str, phrases)) if isinstance(phrases, list) else []
    # a failing source has a reason of its own
    if others := [phrase for phrase in others if phrase not in failing]:
        found[REDUCED] = f"{node}: {'; '.join(others)}"
    return [
        Degradation(reason, 1, clipped(text.rstrip("; "), _MESSAGE_BYTES))
        for reason, text in found.items()
    ]


def summed(lists: Iterable[Iterable[Degradation]], most: int) -> list[Degradation]:
    """Return at most ``most`` degradations by reason, those on most nodes first.

    The message is the first of each reason.
    """
    found: dict[str, Degradation] = {}
    for degradation in chain.from_iterable(lists):
        first = found.setdefault(degradation.reason, degradation._replace(nodes=0))
        nodes = first.nodes + degradation.nodes
        found[degradation.reason] = first._replace(nodes=nodes)
    return sorted(found.values(), key=lambda each: (-each.nodes, each.reason))[:most]


def _reason(source: str) -> str:
    """Return ``PerfUnavailable`` for ``perf.cache``."""
    words = [word for word in _NOT_WORD.split(source.split(".", maxsplit=1)[0]) if word]
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return f"{name if name[:1].isalpha() else f'Source{name}'}Unavailable"


def _rows(given: Any) -> list[dict[str, Any]]:
    return [row for row in given if isinstance(row, dict)] if isinstance(given, list) else []
