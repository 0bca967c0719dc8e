"""Directory of the subjects of a node: pods, units, cgroups and process groups by their channels.

The collector announces subjects.  A collector that restarts, for example after its node was lost,
does not know the subjects that ended meanwhile; findings that are still open must name them, so
earlier announcements are kept for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from reveal_contract.subjects import Identity
from reveal_contract.time_units import NS_PER_SECOND

SubjectSource = Callable[[], Iterable[Identity]]
KEPT_S = 150  # as long as the history of their counters


def no_subjects() -> Iterable[Identity]:
    """Return no subjects: the source where there is no subject table."""
    return ()


@dataclass(frozen=True, slots=True)
class SubjectKey:
    """Identifies a subject: the instance of its channels, and a uid, as instances are reused."""

    instance: str
    uid: str = ""


class Directory:
    """Identities of the subjects of a node, by instance and time."""

    def __init__(self, subjects: Iterable[Identity] = ()) -> None:
        self._by_instance: dict[str, list[Identity]] = {}
        self.parents: dict[str, str] = {}
        for identity in sorted(subjects, key=lambda identity: identity.since_ns):
            self._by_instance.setdefault(identity.instance, []).append(identity)
            if identity.parent:
                key = SubjectKey(identity.instance, identity.uid)
                self.parents[self.unique_name(key)] = identity.parent

    def key(self, instance: str, time_ns: int) -> SubjectKey:
        """Return the latest subject of an instance that had begun by ``at_ns``, else the first."""
        known = self._by_instance.get(instance)
        if known is None:
            return SubjectKey(instance)
        begun = [identity for identity in known if identity.since_ns <= time_ns]
        return SubjectKey(instance, (begun[-1] if begun else known[0]).uid)

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

    def unique_name(self, key: SubjectKey) -> str:
        """Return the instance for its latest subject, and with the uid for earlier ones."""
        return key.instance if self.is_latest(key) else f"{key.instance}~{key.uid}"

    def existed_after(self, key: SubjectKey, since_ns: int) -> bool:
        """Return whether the subject is not known to have ended before ``since_ns``."""
        identity = self.identity(key)
        return identity is None or not identity.until_ns or identity.until_ns >= since_ns

    def is_latest(self, key: SubjectKey) -> bool:
        """Return whether no later subject uses the same instance."""
        known = self._by_instance.get(key.instance, ())
        return not known or known[-1].uid == key.uid


class KnownSubjects:
    """Subjects announced now, and those announced earlier that have ended since."""

    def __init__(self, source: SubjectSource = no_subjects) -> None:
        self._source = source
        self._known: dict[tuple[str, str], Identity] = {}

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
        return tuple(self._known.values())
