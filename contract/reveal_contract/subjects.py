"""Subjects: who stands behind the instance of a subject channel.

A collector announces the *subject table* beside its channel table: as JSON in
``names.SUBJECTS_KEY`` and as a note in recordings.  A subject that is gone stays in it for a
while (``until_ns``), so that the slices it was in can still be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from reveal_contract.names import camel_case

MAX_SUBJECTS = 4096
_LONGEST = 4096


class SubjectsError(ValueError):
    """An announced subject table cannot be used; the text says why."""


class SubjectKind(StrEnum):
    POD = "Pod"
    CONTAINER = "Container"
    JOB = "Job"  # of a batch system
    UNIT = "Unit"
    CGROUP = "Cgroup"


@dataclass(frozen=True, slots=True)
class Identity:
    """One subject; ``instance`` is what its channels carry.

    ``uid`` makes it the one it is: ``metadata.uid`` of a pod, a container's or job's id, the
    inode of any other cgroup.  A subject of another uid under the same instance is another
    one.  ``containers`` are ``name=id`` of a pod; ``parent`` is the instance of the subject
    whose cgroup this one's lies in: the parent's counters include this one's.
    ``host_network``: it has no network namespace of its own.  Times are ns since the epoch;
    0 for ``until_ns`` while it is alive.
    """

    instance: str
    kind: SubjectKind
    uid: str = ""
    namespace: str = ""
    name: str = ""
    container: str = ""
    containers: tuple[str, ...] = ()
    owner: str = ""
    qos: str = ""
    cgroup: str = ""
    parent: str = ""
    host_network: bool = False
    since_ns: int = 0
    until_ns: int = 0


def to_rows(subjects: Iterable[Identity]) -> list[dict[str, Any]]:
    """JSON values: camelCase keys, what is at its default left out."""
    return [
        {
            camel_case(spec.name): list(value) if isinstance(value, tuple) else value
            for spec in fields(one)
            if (value := getattr(one, spec.name)) != spec.default
        }
        for one in subjects
    ]


def from_rows(rows: object) -> tuple[Identity, ...]:
    """What ``to_rows`` made; unknown keys are a newer collector's, bad ones ``SubjectsError``."""
    if not isinstance(rows, list) or len(rows) > MAX_SUBJECTS:
        raise SubjectsError(f"subject table is no list of at most {MAX_SUBJECTS}")
    return tuple(_identity(row) for row in rows)


def _identity(row: object) -> Identity:
    if not isinstance(row, Mapping):
        raise SubjectsError(f"subject table: {ascii(row)[:200]} is not a subject")
    values: dict[str, Any] = {}
    for spec in fields(Identity):
        key = camel_case(spec.name)
        if key in row:
            values[spec.name] = _value(key, row[key], spec.default)
    try:
        return Identity(**{**values, "kind": SubjectKind(values.get("kind", ""))})
    except (TypeError, ValueError) as error:
        raise SubjectsError(f"subject table: {error}") from None


def _value(key: str, value: object, default: object) -> object:
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(item[:_LONGEST] for item in value)
    elif isinstance(default, bool) or not isinstance(default, int):
        wanted = bool if isinstance(default, bool) else str
        if isinstance(value, wanted):
            return value[:_LONGEST] if isinstance(value, str) else value
    elif isinstance(value, int) and not isinstance(value, bool):
        return value
    raise SubjectsError(f"subject table: {key} is {ascii(value)[:80]}")
