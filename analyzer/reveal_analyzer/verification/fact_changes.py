"""What changed in the facts of a node, as short texts: ``cpu governor: powersave -> performance``.

Numbers that move without anybody's act are left out: processes on GPUs, pages in use, lost frames,
links that save power.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from reveal_contract.facts import Facts

MOST_CHANGES = 3  # named one by one
_MOST_TEXT = 40
_MOVING = frozenset({
    "processes", "free", "reserved", "missed", "missedPerMillion", "unread", "served", "link",
    "width", "speed", "node", "version",
})  # fmt: skip
_IDENTITIES = ("name", "address", "uuid", "cpus", "size", "pci")  # of an entry of a list


def fact_changes(before: Facts, now: Facts) -> tuple[str, ...]:
    """Return the facts that differ, at most ``MOST_CHANGES`` of them and how many more."""
    old, new = (dict(_leaves(json.loads(facts.to_json()))) for facts in (before, now))
    unread = {*before.unread, *now.unread}
    found = [
        f"{name}: {_text(old.get(name))} -> {_text(new.get(name))}"
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name) and not _is_unread(name, unread)
    ]
    more = [f"{len(found) - MOST_CHANGES} more facts"] if len(found) > MOST_CHANGES else []
    return (*found[:MOST_CHANGES], *more)


def _leaves(row: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if key in _MOVING:
            continue
        name = f"{path} {key}".lstrip()
        if isinstance(value, dict):
            yield from _leaves(value, name)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, entry in enumerate(value):
                yield from _leaves(entry, f"{name}[{_identity(entry, number)}]")
        else:
            yield name, value


def _identity(entry: dict[str, Any], number: int) -> str:
    known = (str(entry[key]) for key in _IDENTITIES if key in entry)
    return next(known, str(number))


def _is_unread(name: str, unread: set[str]) -> bool:
    """Return whether a fact was left out because it could not be read."""
    return any(name.startswith(each.replace(".", " ")) for each in unread)


def _text(value: Any) -> str:
    if value is None:
        return "none"
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "..."
