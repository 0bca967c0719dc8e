"""Names of columns: unique within a table, and with what they are about."""

from __future__ import annotations

from collections.abc import Sequence

_MOST_LETTERS = 4096


def unique_names(fields: Sequence[str]) -> tuple[str, ...]:
    """Return unique names: a repeated name gets a number, as in ``user``, ``user#2``."""
    counts: dict[str, int] = {}
    names = []
    for field in fields:
        counts[field] = count = counts.get(field, 0) + 1
        names.append(field if count == 1 else f"{field}#{count}")
    return tuple(names)


def bounded_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return unique names of bounded length; nearly always the same."""
    if all(len(name) <= _MOST_LETTERS for name in names):
        return tuple(names)
    return unique_names([name[:_MOST_LETTERS] for name in names])


def labelled(metrics: Sequence[str], label: str) -> list[str]:
    """Return the names of an entity's metrics; a single one is named after what it is about."""
    if not label:
        return list(metrics)
    return [label] if len(metrics) == 1 else [f"{name}{{{label}}}" for name in metrics]
