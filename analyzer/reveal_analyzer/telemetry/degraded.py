"""What collectors go without, from what each says of itself in ``names.NODES_KEY``: pure.

A source that a host simply has not (no GPU, no InfiniBand) is none of it: only what was refused,
is broken, or was given up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from reveal_contract.kube.names import clipped

REDUCED = "CollectorReduced"  # it runs, in a lesser way: over its budget, or a sink in trouble
_MESSAGE_BYTES = 512
# words of refusal in the reasons of sources; those of absence are others
_REFUSED = re.compile(
    r"may not be|refuse|denied|not permitted|needs CAP_|seccomp|cannot be opened"
    r"|different versions|too few file descriptors|security module",
    re.IGNORECASE,
)
_NOT_WORD = re.compile(r"[^A-Za-z0-9]+")


class Lack(NamedTuple):
    """One reason, on how many nodes, and in words of one of them."""

    reason: str
    nodes: int
    message: str


def lacks(node: str, data: bytes) -> list[Lack]:
    """What one node's collector goes without; nothing where it cannot be read."""
    try:
        said: Any = json.loads(data)
    except (ValueError, RecursionError):
        return []
    if not isinstance(said, dict):
        return []
    found: dict[str, str] = {}
    for row in _rows(said.get("missing")):
        source, why = str(row.get("source", "")), str(row.get("reason", ""))
        if source and _REFUSED.search(why):
            found.setdefault(_reason(source), f"{node}: {source}: {why}; {row.get('remedy', '')}")
    phrases = said.get("degraded")
    if isinstance(phrases, list) and phrases:
        found[REDUCED] = f"{node}: {'; '.join(map(str, phrases))}"
    return [Lack(reason, 1, clipped(text.rstrip("; "), _MESSAGE_BYTES)) for reason, text in
            found.items()]  # fmt: skip


def summed(lists: Iterable[Iterable[Lack]], most: int) -> list[Lack]:
    """All by reason, most nodes first; the message is of the first that said it."""
    found: dict[str, Lack] = {}
    for one in (lack for some in lists for lack in some):
        before = found.get(one.reason)
        found[one.reason] = one if before is None else before._replace(
            nodes=before.nodes + one.nodes
        )  # fmt: skip
    return sorted(found.values(), key=lambda one: (-one.nodes, one.reason))[:most]


def _reason(source: str) -> str:
    """``perf.cache`` -> ``PerfUnavailable``."""
    words = [word for word in _NOT_WORD.split(source.split(".", maxsplit=1)[0]) if word]
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return f"{name if name[:1].isalpha() else f'Source{name}'}Unavailable"


def _rows(given: Any) -> list[dict[str, Any]]:
    return [row for row in given if isinstance(row, dict)] if isinstance(given, list) else []
