"""Names of columns: unique within a table, and with what they are about."""

from __future__ import annotations

from collections.abc import Sequence


def unique_names(fields: Sequence[str]) -> tuple[str, ...]:
    """Return unique names: a repeated name gets a number, as in ``user``, ``user#2``."""
    counts: dict[str, int] = {}
    names = []
    for field in fields:
        counts[field] = count = counts.get(field, 0) + 1
        names.append(field if count == 1 else f"{field}#{count}")
    return tuple(names)


def labelled(metrics: Sequence[str], label: str) -> list[str]:
    """Return the names of an entity's metrics; a single one is named after what it is about."""
    if not label:
        return list(metrics)
    return [label] if len(metrics) == 1 else [f"{name}{{{label}}}" for name in metrics]
