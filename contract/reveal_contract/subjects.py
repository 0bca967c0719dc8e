"""Subjects: the identities behind the instances of subject channels.

A collector announces the *subject table* together with its channel table: as JSON in
``names.node_key``, and as a note in recordings.  A subject that ended stays in the table for a
while (``until_ns``), so that readers of its last slices still find it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from reveal_contract.foreign_names import PrintableRecord
from reveal_contract.names import camel_case

MAX_SUBJECTS = 4096
MAX_GPUS = 4096  # of a pod; no host has so many
_MAX_LENGTH = 4096


class SubjectsError(ValueError):
    """An announced subject table cannot be used; the text says why."""


class SubjectKind(StrEnum):
    POD = "Pod"
    CONTAINER = "Container"
    JOB = "Job"  # of a batch system
    UNIT = "Unit"
    CGROUP = "Cgroup"


@dataclass(frozen=True, slots=True)
class Identity(PrintableRecord):
    """One subject; ``instance`` is the instance of its channels.

    ``uid`` identifies it: ``metadata.uid`` of a pod, the id of a container or job, the inode of any
    other cgroup.  The same instance with another uid is another subject.  ``containers`` are
    ``name=id`` of a pod.  ``owner`` is its controller, ``job`` what its labels say that it belongs
    to, as ``Kind/name``.  ``parent`` is the instance of the subject whose cgroup contains this one;
    its counters include those of this subject, as they do those of the process groups ``inner``,
    which it contains in some hierarchies only.  ``host_network`` means that it has no network
    namespace of its own.  ``gpus`` are those of its pod, 0 where they are not known, at most
    ``MAX_GPUS``.  Times are ns since the epoch; ``until_ns`` is 0 while it is alive.  All
    texts are printable: ``cgroup`` may differ from the path that the kernel knows.
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
    job: str = ""
    inner: tuple[str, ...] = ()
    gpus: int = 0

    def __post_init__(self) -> None:
        PrintableRecord.__post_init__(self)
        if not 0 <= self.gpus <= MAX_GPUS:
            object.__setattr__(self, "gpus", min(max(self.gpus, 0), MAX_GPUS))

    def is_alive(self, time_ns: int) -> bool:
        """Return whether it is not known to have ended before a time."""
        return not self.until_ns or self.until_ns >= time_ns


def to_rows(subjects: Iterable[Identity]) -> list[dict[str, Any]]:
    """Return JSON values with camelCase keys; fields with their default are left out."""
    return [
        {
            camel_case(spec.name): list(value) if isinstance(value, tuple) else value
            for spec in fields(identity)
            if (value := getattr(identity, spec.name)) != spec.default
        }
        for identity in subjects
    ]


def from_rows(rows: object) -> tuple[Identity, ...]:
    """Parse rows of ``to_rows``, ignoring unknown keys; raises ``SubjectsError`` for bad ones."""
    if not isinstance(rows, list) or len(rows) > MAX_SUBJECTS:
        raise SubjectsError(f"subject table is not a list of at most {MAX_SUBJECTS}")
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
        return Identity(**{**values, "kind": _kind(values.get("kind", ""))})
    except (TypeError, ValueError) as error:
        raise SubjectsError(f"subject table: {error}") from None


def _kind(name: str) -> SubjectKind:
    """Return the kind; one that only a later version knows is a cgroup, as all of them are."""
    try:
        return SubjectKind(name)
    except ValueError:
        if not name:
            raise
        return SubjectKind.CGROUP


def _value(key: str, value: object, default: object) -> object:
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(item[:_MAX_LENGTH] for item in value)
    elif isinstance(default, bool) or not isinstance(default, int):
        expected = bool if isinstance(default, bool) else str
        if isinstance(value, expected):
            return value[:_MAX_LENGTH] if isinstance(value, str) else value
    elif isinstance(value, int) and not isinstance(value, bool):
        return value
    raise SubjectsError(f"subject table: {key} is {ascii(value)[:80]}")
