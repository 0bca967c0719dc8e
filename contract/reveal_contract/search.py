"""Metrics found by any name somebody may know: ours, the kernel's, a tool's, or what it means."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reveal_contract.metric import Metric

_WORD = re.compile(r"[^\s,;/()*]+")
_FAR = 4


def search(wanted: str, rows: Iterable[Metric]) -> list[Metric]:
    """The rows that fit ``wanted``, the nearest first.

    Nearest is the name itself or one the field uses (``Busy%``, ``TcpRetransSegs``), then an
    origin that holds the text, a name that does, and a meaning that does.
    """
    text = wanted.strip().casefold()
    known = {row.name: row for row in rows}
    ranked = sorted((_distance(row, text), name) for name, row in known.items())
    return [known[name] for distance, name in ranked if text and distance < _FAR]


def field_names(row: Metric) -> tuple[str, ...]:
    """The names under which the field knows this metric: the parts of its origin."""
    return tuple(part.strip() for part in re.split(r",| or ", row.origin) if part.strip())


def _distance(row: Metric, text: str) -> int:
    origin = row.origin.casefold()
    if text in (row.name, origin) or text in _WORD.findall(origin):
        return 0
    if text in origin:
        return 1
    if text in row.name:
        return 2
    return 3 if text in row.meaning.casefold() else _FAR
