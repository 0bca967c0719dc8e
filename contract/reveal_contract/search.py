"""Metrics found by any name somebody may know: ours, the kernel's, a tool's, or what it means."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reveal_contract.aliases import ALIASES
from reveal_contract.metric import Metric

_WORD = re.compile(r"[^\s,;()*]+")
# not within brackets: "instructions (inst_retired, ex_ret_instr)" is one name with its variants
_BETWEEN = re.compile(r",(?![^()]*\))| or ")
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
    """The names under which the field knows this metric: the parts of its origin, and others'."""
    parts = (part.strip() for part in _BETWEEN.split(row.origin))
    return (*(part for part in parts if part), *ALIASES.get(row.name, ()))


def _distance(row: Metric, text: str) -> int:
    known = [name.casefold() for name in (row.origin, *ALIASES.get(row.name, ()))]
    if text == row.name or any(text == name or text in _WORD.findall(name) for name in known):
        return 0
    if any(text in name for name in known):
        return 1
    if text in row.name:
        return 2
    return 3 if text in row.meaning.casefold() else _FAR
