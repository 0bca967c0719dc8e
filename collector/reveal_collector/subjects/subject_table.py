"""Subject table: the subjects that are alive, and those that ended recently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reveal_contract.subjects import Identity

_REMEMBERED_NS = 120_000_000_000


def updated_identities(
    previous: tuple[Identity, ...], alive: list[Identity], now_ns: int
) -> tuple[Identity, ...]:
    """Return the subject table: subjects that are alive, then those that ended recently.

    Return the object ``previous`` if nothing changed, so that the table is announced only once.
    """
    known = {(identity.instance, identity.uid): identity for identity in previous}
    # The first table cannot know when its subjects started: 0 stands for an unknown time.
    new_since_ns = now_ns if previous else 0
    current = []
    for identity in alive:
        old = known.get((identity.instance, identity.uid))
        current.append(replace(identity, since_ns=old.since_ns if old else new_since_ns))
    keys = {(identity.instance, identity.uid) for identity in current}
    cgroups = {(identity.cgroup, identity.uid) for identity in current}
    ended = [
        identity if identity.until_ns else replace(identity, until_ns=now_ns)
        for key, identity in known.items()
        # A cgroup that only got another instance (its pod was listed) has not ended.
        if key not in keys and (identity.cgroup, identity.uid) not in cgroups
        if not identity.until_ns or now_ns - identity.until_ns < _REMEMBERED_NS
    ]
    updated = (*current, *ended)
    return previous if updated == previous else updated


def with_inner(identities: tuple[Identity, ...], outer: Mapping[str, str]) -> tuple[Identity, ...]:
    """Return the subject table with the process groups in each subject that is alive.

    ``outer`` is the subject of each group, by their instances.
    """
    inner: dict[str, list[str]] = {}
    for group, subject in sorted(outer.items()):
        inner.setdefault(subject, []).append(group)
    return tuple(
        replace(identity, inner=tuple(inner[identity.instance]))
        if identity.instance in inner and not identity.until_ns
        else identity
        for identity in identities
    )
