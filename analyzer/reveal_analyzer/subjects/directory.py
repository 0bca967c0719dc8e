"""Directory of the subjects of a node: pods, units, cgroups and process groups by their channels.

The collector announces subjects.  A collector that restarts, for example after its node was lost,
does not know the subjects that ended meanwhile; findings that are still open must name them, so
earlier announcements are kept for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from reveal_contract.subjects import Identity, SubjectKind
from reveal_contract.time_units import NS_PER_SECOND

SubjectSource = Callable[[], Iterable[Identity]]
KEPT_S = 150  # as long as the history of their counters
_PROCESS_GROUP_PREFIX = "pgrp:"
# a pod, a container or a job says more than the process groups in it
_OF_GROUPS = (SubjectKind.CGROUP, SubjectKind.UNIT)


def no_subjects() -> Iterable[Identity]:
    """Return no subjects: the source where there is no subject table."""
    return ()


@dataclass(frozen=True, slots=True)
class SubjectKey:
    """Identifies a subject: the instance of its channels, and a uid, as instances are reused."""

    instance: str
    uid: str = ""


def is_process_group(key: SubjectKey) -> bool:
    """Return whether a subject is a group of processes without a cgroup of their own."""
    return key.instance.startswith(_PROCESS_GROUP_PREFIX)


class Directory:
    """Identities of the subjects of a node, by instance and time.

    A cgroup keeps its cgroup path and uid when it is listed under another instance, for example a
    pod whose name became known late.  All its instances have the key of the latest one.
    """

    def __init__(self, subjects: Iterable[Identity] = ()) -> None:
        self._by_instance: dict[str, list[Identity]] = {}
        self._by_cgroup: dict[tuple[str, str], list[Identity]] = {}
        self.parents: dict[str, str] = {}
        ordered = sorted(subjects, key=lambda identity: identity.since_ns)
        for identity in ordered:
            self._by_instance.setdefault(identity.instance, []).append(identity)
            if identity.cgroup:
                same = self._by_cgroup.setdefault((identity.cgroup, identity.uid), [])
                same.append(identity)
        for identity in ordered:
            if identity.parent:
                parent = self.key(identity.parent, identity.since_ns)
                self.parents[self.unique_name(self._key_of(identity))] = parent.instance
            if identity.kind in _OF_GROUPS:
                name = self.unique_name(self._key_of(identity))
                self.parents |= dict.fromkeys(identity.inner, name)

    def key(self, instance: str, time_ns: int) -> SubjectKey:
        """Return the last subject of an instance that began by ``time_ns``, else the first."""
        known = self._by_instance.get(instance)
        if known is None:
            return SubjectKey(instance)
        begun = [identity for identity in known if identity.since_ns <= time_ns]
        return self._key_of(begun[-1] if begun else known[0])

    def current(self, key: SubjectKey, time_ns: int) -> SubjectKey:
        """Return the key that a subject has by now, which may have been announced since."""
        identity = self.identity(key)
        return self._key_of(identity) if identity else self.key(key.instance, time_ns)

    def identity(self, key: SubjectKey) -> Identity | None:
        """Return the announced identity of a subject, if there is one."""
        known = self._by_instance.get(key.instance, ())
        return next((identity for identity in known if identity.uid == key.uid), None)

    def display_name(self, key: SubjectKey) -> str:
        """Return the name that people use: of a pod its namespace and name."""
        identity = self.identity(key)
        if identity is None or not identity.namespace:
            return key.instance
        return f"{identity.namespace}/{identity.name}"

    def parents_of(self, names: Collection[str]) -> Mapping[str, str]:
        """Return the parents of subjects; of unannounced cgroups by their paths."""
        by_path = {
            name: above
            for name in names
            if name.startswith("/") and name not in self._by_instance
            if (above := _nearest_path(name, names))
        }
        return {**self.parents, **by_path} if by_path else self.parents

    def is_inside(self, group: SubjectKey, key: SubjectKey) -> bool:
        """Return whether a process group is in the cgroup of a subject."""
        around = self.parents.get(self.unique_name(group), "")
        return is_process_group(group) and around == self.unique_name(key)

    def unique_name(self, key: SubjectKey) -> str:
        """Return the instance for its latest subject, and with the uid for earlier ones."""
        return key.instance if self.is_latest(key) else f"{key.instance}~{key.uid}"

    def started_after(self, key: SubjectKey, time_ns: int) -> bool:
        """Return whether the subject is known to have started after ``time_ns``."""
        identity = self.identity(key)
        if identity is None:
            return False
        return min(known.since_ns for known in self._instances_of(identity)) > time_ns

    def may_live(self, key: SubjectKey, time_ns: int) -> bool:
        """Return whether the subject is announced, and may have lived at a time."""
        announced = self.identity(key) is not None
        ended = not self.existed_after(key, time_ns + 1)
        return announced and not ended and not self.started_after(key, time_ns)

    def existed_after(self, key: SubjectKey, since_ns: int) -> bool:
        """Return whether the subject is not known to have ended before ``since_ns``."""
        identity = self.identity(key)
        return identity is None or identity.is_alive(since_ns)

    def is_latest(self, key: SubjectKey) -> bool:
        """Return whether no later subject uses the same instance."""
        known = self._by_instance.get(key.instance, ())
        return not known or known[-1].uid == key.uid

    def _key_of(self, identity: Identity) -> SubjectKey:
        latest = max(
            self._instances_of(identity), key=lambda known: (not known.until_ns, known.since_ns)
        )
        return SubjectKey(latest.instance, latest.uid)

    def _instances_of(self, identity: Identity) -> list[Identity]:
        """Return what one cgroup was announced as."""
        return self._by_cgroup.get((identity.cgroup, identity.uid), [identity])


def _nearest_path(path: str, names: Collection[str]) -> str:
    """Return the nearest of the paths around one; "" if there is none."""
    above = path.rpartition("/")[0]
    while above and above not in names:
        above = above.rpartition("/")[0]
    return above


class KnownSubjects:
    """Subjects announced now, and those announced earlier that have ended since."""

    def __init__(self, source: SubjectSource = no_subjects) -> None:
        self._source = source
        self._known: dict[tuple[str, str], Identity] = {}

    @property
    def last(self) -> tuple[Identity, ...]:
        """What ``current`` returned last; this asks nobody."""
        return tuple(self._known.values())

    def current(self, now_ns: int) -> tuple[Identity, ...]:
        """Return them; a subject that is no longer announced counts as ended at ``now_ns``."""
        announced = {(identity.instance, identity.uid): identity for identity in self._source()}
        since_ns = now_ns - KEPT_S * NS_PER_SECOND
        gone = {
            key: identity if identity.until_ns else replace(identity, until_ns=now_ns)
            for key, identity in self._known.items()
            if key not in announced and (not identity.until_ns or identity.until_ns > since_ns)
        }
        self._known = gone | announced
        return self.last
