"""Search of metrics by our name, the name of the kernel or of a tool, or by meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reveal_contract.aliases import ALIASES
from reveal_contract.metric import Metric

_WORD = re.compile(r"[^\s,;()*]+")
# not within brackets: "instructions (inst_retired, ex_ret_instr)" is one name with its variants
_BETWEEN = re.compile(r",(?![^()]*\))| or ")
_FAR = 4


def search(query: str, rows: Iterable[Metric]) -> list[Metric]:
    """Return the rows that match ``query``, the best first.

    Best is the name itself or an alias (``Busy%``, ``TcpRetransSegs``), then an origin, a name and
    a meaning that contain the text.
    """
    text = query.strip().casefold()
    known = {row.name: row for row in rows}
    ranked = sorted((_distance(row, text), name) for name, row in known.items())
    return [known[name] for distance, name in ranked if text and distance < _FAR]


def field_names(row: Metric) -> tuple[str, ...]:
    """Return other names of the metric: the parts of its origin, and its aliases."""
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
