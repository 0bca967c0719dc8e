"""CPU shares: what each subject of the lost-time ledger is entitled to, as the host is configured.

The scheduler divides CPU time in a tree.  Its inner nodes are *groups*: cgroups, and autogroups of
sessions.  Siblings share by weight.  The weight of a thread of nice 0, and of a group with the
kernel's default, is ``DEFAULT_WEIGHT``.  *Members* are subjects; each belongs to one group.

A collector announces them together with its subject table: as JSON in ``names.node_key``, and as a
note in recordings.  What is not announced has the default, so without any of them all are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from reveal_contract.foreign_names import make_printable

DEFAULT_WEIGHT = 1024
MOST_ROWS = 4096


class SharesError(ValueError):
    """Announced CPU shares cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class CpuGroup:
    """A group; ``parent`` is the path of the next group above, "" for the root.

    ``limit`` is its quota in CPUs, 0 without one (cgroup-v2.rst: cpu.weight, cpu.max).
    """

    path: str = ""
    parent: str = ""
    weight: float = DEFAULT_WEIGHT
    limit: float = 0.0

    def __post_init__(self) -> None:
        make_printable(self, ("path", "parent"))


@dataclass(frozen=True, slots=True)
class CpuMember:
    """A subject: the group of its threads, their weight beside subgroups and other members of it.

    ``cpus`` are those that its cpuset permits, like ``0-3,8``; "" for all.
    """

    subject: str = ""  # the instance of its channels
    group: str = ""
    weight: float = DEFAULT_WEIGHT
    cpus: str = ""

    def __post_init__(self) -> None:
        make_printable(self, ("subject", "group", "cpus"))


@dataclass(frozen=True, slots=True)
class CpuShares:
    """The groups of a node, each after its parent, and the members that are announced."""

    groups: tuple[CpuGroup, ...] = ()
    members: tuple[CpuMember, ...] = ()

    def to_rows(self) -> dict[str, list[dict[str, Any]]]:
        """Return JSON values; fields with their default are left out."""
        return {
            "groups": [_row(group) for group in self.groups],
            "members": [_row(member) for member in self.members],
        }

    @classmethod
    def from_rows(cls, rows: object) -> CpuShares:
        """Parse what ``to_rows`` returned, ignoring unknown keys; raises ``SharesError``."""
        if not isinstance(rows, Mapping):
            raise SharesError(f"CPU shares: {ascii(rows)[:80]} is not an object")
        return cls(_records(CpuGroup, rows, "groups"), _records(CpuMember, rows, "members"))


EQUAL_SHARES = CpuShares()
Record = TypeVar("Record", CpuGroup, CpuMember)


def _row(record: CpuGroup | CpuMember) -> dict[str, Any]:
    return {
        spec.name: value
        for spec in fields(record)
        if (value := getattr(record, spec.name)) != spec.default
    }


def _records(kind: type[Record], rows: Mapping[object, object], name: str) -> tuple[Record, ...]:
    found = rows.get(name, [])
    if not isinstance(found, list) or len(found) > MOST_ROWS:
        raise SharesError(f"CPU shares: {name} is not a list of at most {MOST_ROWS}")
    return tuple(_record(kind, row, name) for row in found)


def _record(kind: type[Record], row: object, name: str) -> Record:
    if not isinstance(row, Mapping):
        raise SharesError(f"CPU shares: {ascii(row)[:80]} in {name} is not an object")
    values = {spec.name: row[spec.name] for spec in fields(kind) if spec.name in row}
    for key, value in values.items():
        if not (_is_amount(value) if key in ("weight", "limit") else isinstance(value, str)):
            raise SharesError(f"CPU shares: {key} in {name} is {ascii(value)[:80]}")
    return kind(**values)


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
