"""Source: how often a container of a pod, or a subject itself, started again.

The cgroup of a pod stays when one of its containers is restarted: the new container has another id,
and so a cgroup of another path.  A unit or a container of Docker that is restarted has a new cgroup
of the same path, with another inode.  What starts may load much at first, in a known pod as in a
new one, so the analyzer must know it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.textfile import channel
from reveal_collector.subjects.cgroup_paths import SubjectPath
from reveal_collector.subjects.cgroup_walk import FoundCgroup
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

if TYPE_CHECKING:
    from reveal_collector.subjects.tracker import Candidate, CgroupSubject, SubjectTracker

_METRIC = "cpu.subject.starts"
_Inodes = dict[str, frozenset[int]]  # by path


class StartCounts:
    """``by_instance``: how often something started in each subject since it was found.

    A cgroup is the same while it has an inode of before: a hierarchy may get it later, or lose it
    earlier, than another one.
    """

    def __init__(self) -> None:
        self.by_instance: dict[str, int] = {}
        self._noted: dict[str, set[str]] = {}  # cgroups by subject's cgroup, in this walk
        self._known: dict[str, _Inodes] = {}  # cgroups by instance

    def note(self, owner: SubjectPath) -> None:
        """Note a subject that a walk found, with one of its containers if it has any."""
        inside = self._noted.setdefault(owner.root, {owner.root})
        if owner.container_root:
            inside.add(owner.container_root)

    def update(
        self,
        found: Mapping[str, FoundCgroup],
        candidates: Mapping[str, Candidate],
        current: Sequence[CgroupSubject],
    ) -> None:
        """Count the starts since the last walk; ``candidates`` are by the path of the subject."""
        noted, self._noted = self._noted, {}
        remembered = {subject.instance for subject in current}
        for root, candidate in candidates.items():
            instance = candidate.subject.instance
            remembered.add(instance)
            cgroups = {
                path: frozenset(found[path].inodes) for path in noted.get(root, ()) if path in found
            }
            known = self._known.get(instance)
            if known is None:
                self.by_instance[instance] = 0
            else:
                self.by_instance[instance] += _started(known, cgroups)
            # a container without processes is not noted
            kept = {path: inodes for path, inodes in (known or {}).items() if path in found}
            self._known[instance] = kept | cgroups
        for instance in self._known.keys() - remembered:
            del self._known[instance], self.by_instance[instance]


def _started(known: _Inodes, cgroups: _Inodes) -> int:
    return sum(known.get(path, frozenset()).isdisjoint(inodes) for path, inodes in cgroups.items())


class SubjectStarts:
    """The counts of the tracked subjects, once a second."""

    name, lane = "subject-starts", Lane.SLOW

    def __init__(self, tracker: SubjectTracker) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._tracker = tracker
        self._subjects: tuple[CgroupSubject, ...] = ()
        self._opened = False

    def open(self) -> None:
        if not self._tracker.trees:
            raise Unsupported(
                "no cgroup hierarchy is mounted", "mount cgroup2, or set the path of its root"
            )
        self._tracker.start()
        self._opened = True
        self._update_subjects()

    def read(self) -> Sequence[int | None]:
        if self._tracker.current is not self._subjects:
            previous = self.channels
            self._update_subjects()
            if self.channels != previous:
                raise LayoutChanged(self.name)
        counts = self._tracker.starts.by_instance
        return [counts.get(channel.instance) for channel in self.channels]

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self._tracker.stop()
        self._subjects, self.channels = (), ()

    def _update_subjects(self) -> None:
        self._subjects = self._tracker.current
        instances = dict.fromkeys(subject.instance for subject in self._subjects)
        self.channels = tuple(channel(_METRIC, instance) for instance in instances)
