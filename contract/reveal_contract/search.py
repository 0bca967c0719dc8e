"""Search for metrics by any known name: of this project, the kernel or a tool, or by meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reveal_contract.aliases import ALIASES
from reveal_contract.metric import Metric

_WORD = re.compile(r"[^\s,;()*]+")
# Not within brackets: "instructions (inst_retired, ex_ret_instr)" is one name with its variants.
_SEPARATOR = re.compile(r",(?![^()]*\))| or ")
_NO_MATCH = 4


def search(query: str, rows: Iterable[Metric]) -> list[Metric]:
    """Return the rows that match ``query``, the best match first.

    The best match is the name itself or a name in common use (``Busy%``, ``TcpRetransSegs``).  Then
    follow origins, names and meanings that contain the text.
    """
    text = query.strip().casefold()
    known = {row.name: row for row in rows}
    ranked = sorted((_distance(row, text), name) for name, row in known.items())
    return [known[name] for distance, name in ranked if text and distance < _NO_MATCH]


def known_names(row: Metric) -> tuple[str, ...]:
    """Return the names of a metric in common use: the parts of its origin, and its aliases."""
    parts = (part.strip() for part in _SEPARATOR.split(row.origin))
    return (*(part for part in parts if part), *ALIASES.get(row.name, ()))


def _distance(row: Metric, text: str) -> int:
    known = [name.casefold() for name in (row.origin, *ALIASES.get(row.name, ()))]
    if text == row.name or any(text == name or text in _WORD.findall(name) for name in known):
        return 0
    if any(text in name for name in known):
        return 1
    if text in row.name:
        return 2
    return 3 if text in row.meaning.casefold() else _NO_MATCH
